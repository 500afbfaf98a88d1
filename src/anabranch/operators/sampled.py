"""What a join would do in other shapes, counted on a sample of the keys of an epoch (P2).

The rows of some keys meet in every way in which shapes could have them meet. Of keys with very many rows some
are taken, and count for the others; so a sample takes about the same time whatever it finds.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.language.shape import Inputs, JoinShape, joined
from anabranch.operators.meeting import Meeting, Side
from anabranch.operators.partials import TIME
from anabranch.operators.tree import TreeJoin, table_of
from anabranch.routing.sorting import distinct
from anabranch.state.group import SiteState
from anabranch.state.segment import LOCATOR

if TYPE_CHECKING:
    from anabranch.operators.join import SymmetricJoin

KEYS = 256
"""Keys that are looked at, of all partitions of a site together."""
LOOK = 4_096
"""Rows by which it is told how many keys there are."""
ROWS = 4
"""Rows of a key in one input that are looked at, of the remembered and of the new ones."""
MOST = 25_000
"""Combinations of all inputs that a sample may have; with more, fewer keys are looked at."""
Split = tuple[Inputs, ...]


@dataclass
class Sampled:
    """What was counted at each of some keys."""

    locators: np.ndarray
    share: float
    """Keys of the epoch for each of these."""
    fresh: np.ndarray
    """New rows by key and input."""
    looked: np.ndarray
    """Pairs looked at by key and split, combinations made, and those that were there before."""
    made: np.ndarray
    kept: np.ndarray


@dataclass(frozen=True)
class AtKeys:
    """Rows of an input, or combinations of rows of several, at the keys of a sample.

    By key, those of before ahead of the new ones, each by time; told by their places in the rows of inputs.
    """

    places: Mapping[int, np.ndarray]
    key: np.ndarray
    """The number of the key of each in the sample."""
    times: np.ndarray
    start: np.ndarray
    """Where those of each key begin; `middle` is where the new ones do, `end` where they end."""
    middle: np.ndarray
    end: np.ndarray

    @classmethod
    def of(
        cls, keys: int, key: np.ndarray, fresh: np.ndarray, times: np.ndarray,
        places: Mapping[int, np.ndarray],
    ) -> AtKeys:  # fmt: skip
        """What is at so many keys, put in order."""
        order = np.lexsort((times, fresh, key))
        count = np.bincount(key, minlength=keys)
        new = np.bincount(key[fresh], minlength=keys)
        end = np.cumsum(count)
        ordered = {number: own[order] for number, own in places.items()}
        return cls(ordered, key[order], times[order], end - count, end - new, end)

    def only(self, taken: np.ndarray, keys: np.ndarray) -> AtKeys:
        """Those that are taken, of these keys alone."""
        number = np.full(len(self.end), -1)
        number[keys] = np.arange(len(keys))
        taken = taken & (number[self.key] >= 0)
        fresh = np.arange(len(self.key)) >= self.middle[self.key]
        places = {one: own[taken] for one, own in self.places.items()}
        key = number[self.key[taken]]
        return AtKeys.of(len(keys), key, fresh[taken], self.times[taken], places)

    def few(self) -> np.ndarray:
        """At most so many rows of each key, of those of before and of the new ones, evenly along its time."""
        taken = np.zeros(len(self.key), dtype=bool)
        for begin, end in ((self.start, self.middle), (self.middle, self.end)):
            count = end - begin
            steps = np.arange(ROWS)
            places = begin[:, None] + steps * np.maximum(count, ROWS)[:, None] // ROWS
            taken[places[steps < np.minimum(count, ROWS)[:, None]]] = True
        return taken


def sample(
    join: SymmetricJoin, arrived: Sequence[pl.DataFrame | None], state: SiteState,
    before: int | None, splits: Sequence[Split],
) -> Sampled | None:  # fmt: skip
    """Counts what each split would do with the rows of an epoch; None if nothing came.

    Of splits with the same inputs the first is that of the inputs themselves.
    """
    own = [rows[LOCATOR].to_numpy() for rows in arrived if rows is not None]
    if not own:
        return None
    one_in = _one_in(own)
    # By the hash of the key, so that no row of the others has to be sorted or looked up
    arrived = [
        None if rows is None else rows.filter(pl.Series(_hash(rows) % one_in == 0))
        for rows in arrived
    ]
    some = [rows[LOCATOR].to_numpy() for rows in arrived if rows is not None]
    every = distinct(np.concatenate(some))
    if not len(every):
        return None
    chosen = every[:: -(-len(every) // KEYS)]
    numbers = range(len(join.inlets))
    rows = [_rows(join, number, arrived[number], state, before, chosen) for number in numbers]
    parts = [_part(chosen, number, *found) for number, found in enumerate(rows)]
    counts = np.stack(
        [count for one in parts for count in (one.middle - one.start, one.end - one.middle)]
    )
    thinned = np.minimum(counts, ROWS).astype(float)
    combinations = np.prod(thinned[0::2] + thinned[1::2], axis=0).sum()
    stride = max(1, int(np.ceil(combinations / MOST)))
    some_keys = np.arange(0, len(chosen), stride)
    chosen, counts = chosen[some_keys], counts[:, some_keys]
    looked, made, kept = np.zeros((3, len(chosen), len(splits)))
    fresh = counts[1::2].T.astype(float)
    found = Sampled(chosen, one_in * len(every) / len(chosen), fresh, looked, made, kept)
    factor = np.maximum(1.0, counts / ROWS)
    weight = (factor[0::2] + factor[1::2]) / 2
    meetings = Meetings(
        join, [own for own, _ in rows],
        {(number,): one.only(one.few(), some_keys) for number, one in enumerate(parts)},
    )  # fmt: skip
    for place, split in enumerate(splits):
        looked[:, place], whole = meetings.take(split)
        made[:, place], kept[:, place] = whole.end - whole.middle, whole.middle - whole.start
        inputs = sorted(itertools.chain(*split))
        for counted in (looked, made, kept):
            counted[:, place] *= np.prod(weight[inputs], axis=0)
    return found


def _hash(rows: pl.DataFrame) -> np.ndarray:
    """A number of 32 bits for the key of each row."""
    found: np.ndarray = rows[LOCATOR].to_numpy().astype(np.uint32)
    return found


def _one_in(locators: Sequence[np.ndarray]) -> int:
    """Of how many keys one is taken, to have about as many as are wanted: told by some of the rows."""
    rows = sum(map(len, locators))
    some = np.concatenate([own[:: max(1, rows // LOOK)] for own in locators])
    keys = len(distinct(some))
    # If most of these rows have keys of their own, so have most of the others
    many = rows * keys / max(1, len(some)) if 2 * keys > len(some) else keys
    return max(1, int(many / KEYS))


def _rows(
    join: SymmetricJoin, number: int, fresh: pl.DataFrame | None, state: SiteState,
    before: int | None, chosen: np.ndarray,
) -> tuple[pl.DataFrame, int]:  # fmt: skip
    """The rows of an input at these locators, with what conditions read; and how many are of before."""
    inlet = join.inlets[number]
    names = [LOCATOR, TIME, *(own for own, shown in inlet.names.items() if shown in join.read)]
    frames = [part.select(names) for part in state.probe(inlet.table, chosen, before)]
    there = sum(frame.height for frame in frames)
    if fresh is not None:
        wanted = np.isin(fresh[LOCATOR].to_numpy(), chosen)
        frames.append(fresh.select(names).filter(pl.Series(wanted)))
    if not frames:
        return pl.DataFrame(schema={LOCATOR: pl.UInt64, TIME: pl.Int64}), 0
    return pl.concat(frames, rechunk=True).rename(inlet.names, strict=False), there


def _part(chosen: np.ndarray, number: int, rows: pl.DataFrame, there: int) -> AtKeys:
    places = np.arange(rows.height, dtype=np.uint32)
    key = np.searchsorted(chosen, rows[LOCATOR].to_numpy())
    times = rows[TIME].to_numpy()
    return AtKeys.of(len(chosen), key, places >= there, times, {number: places})


class Meetings:
    """How the rows of a sample meet, input by input and together with what others have made."""

    def __init__(
        self, join: SymmetricJoin, rows: Sequence[pl.DataFrame], known: dict[Inputs, AtKeys]
    ) -> None:
        self._join, self._rows, self._known = join, rows, known
        self._times = [own[TIME].to_numpy() for own in rows]

    def take(self, split: Split) -> tuple[np.ndarray, AtKeys]:
        """The pairs that a split looks at for each key, and what it makes."""
        shape = joined([part[0] if len(part) == 1 else JoinShape(part) for part in split])
        one = self._join.tree(shape).joins[-1]
        parts = [self._known[part] for part in one.parts]
        both = np.logical_and.reduce([part.end > part.start for part in parts])
        meeting = self._meeting(one, parts, both)
        if one.inputs in self._known:
            for _ in meeting.combinations():  # what they make is known: it is only looked at
                pass
        else:
            old = self._meeting(one, parts, both, before=True)
            whole = len(one.inputs) == len(self._rows)
            meetings = [(meeting, True)] if whole else [(old, False), (meeting, True)]
            self._known[one.inputs] = self._made(one, parts, meetings)
        looked = np.zeros(len(both))
        looked[both] = meeting.looked_at
        return looked, self._known[one.inputs]

    def _meeting(
        self, one: TreeJoin, parts: Sequence[AtKeys], both: np.ndarray, before: bool = False
    ) -> Meeting:
        """Where rows of the parts meet at these keys; with `before`, those of before as if they were new."""
        sides = [Side(table_of(inputs), (), None) for inputs in one.parts]
        start, middle, end = (
            [getattr(part, name)[both] for part in parts] for name in ("start", "middle", "end")
        )
        if before:
            middle, end = start, middle
        rows = [pl.DataFrame({TIME: part.times}) for part in parts]
        # That two keys have one locator is so rare that a sample need not know of it
        return Meeting(sides, one.bounds, rows, [], start, middle, end, mixed=False)

    def _made(
        self, one: TreeJoin, parts: Sequence[AtKeys], meetings: Sequence[tuple[Meeting, bool]]
    ) -> AtKeys:
        """The combinations of meetings, of each of which it is told whether they are new."""
        nothing = [np.empty(0, dtype=np.uint32)] * len(parts)
        found = [(nothing, False)]
        found += [(chosen, new) for meeting, new in meetings for chosen in meeting.combinations()]
        fresh = np.concatenate([np.full(len(chosen[0]), new) for chosen, new in found])
        places: dict[int, np.ndarray] = {}
        for at, part in enumerate(parts):
            chosen = np.concatenate([some[at] for some, _ in found])
            places |= {number: own[chosen] for number, own in part.places.items()}
            key = part.key[chosen]
        held = self._held(one, places)
        places = {number: own[held] for number, own in places.items()}
        times = self._times[one.inputs[0]][places[one.inputs[0]]]
        return AtKeys.of(len(parts[0].end), key[held], fresh[held], times, places)

    def _held(self, one: TreeJoin, places: Mapping[int, np.ndarray]) -> np.ndarray:
        """Which combinations meet the bounds that no look-up says, and the conditions."""
        held = np.ones(len(places[one.inputs[0]]), dtype=bool)
        for i, j, most in one.limits:
            held &= self._times[j][places[j]] - self._times[i][places[i]] <= most
        if one.condition:
            some = np.flatnonzero(held)
            rows = [pl.DataFrame({LOCATOR: some})]
            for number in one.inputs:
                read = [name for name in self._rows[number].columns if name in one.condition.read]
                if read:
                    taken = pl.Series(places[number][some])
                    rows.append(self._rows[number].select(read)[taken])
            held[some] = one.condition.holds(pl.concat(rows, how="horizontal"))
        return held
