"""What a join would do in other shapes, counted on a sample of the keys of an epoch (P2).

The rows of some keys meet in every way in which shapes could have them meet. Of keys with very many rows some
are taken, and count for the others; so a sample takes about the same time whatever it finds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.language.shape import Inputs, JoinShape, joined
from anabranch.operators.lookup import meet
from anabranch.operators.partials import TIME
from anabranch.operators.tree import TreeJoin, table_of
from anabranch.routing.sorting import distinct
from anabranch.state.group import SiteState
from anabranch.state.segment import LOCATOR, sort_by_locator
from anabranch.state.stretch import Stretches

if TYPE_CHECKING:
    from anabranch.operators.join import SymmetricJoin

KEYS = 256
"""Keys that are looked at, of all partitions of a site together."""
LOOK = 4_096
"""Rows by which it is told how many keys there are."""
ROWS = 4
"""Rows of a key in one input that are looked at, of the remembered and of the new ones."""
MOST = 50_000
"""Combinations of all inputs that a sample may have; with more, fewer keys are looked at."""
Split = tuple[Inputs, ...]
Frames = dict[Inputs, pl.DataFrame | None]
Tally = tuple[np.ndarray, np.ndarray]
"""Locators and a number for each."""


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
class SampledRows:
    """The remembered rows of a sample, by table, as a join asks for them."""

    rows: Mapping[str, pl.DataFrame | None]

    def probe(
        self, table: str, asked: np.ndarray | Stretches, after: int | None
    ) -> list[pl.DataFrame]:
        rows = self.rows[table]
        if rows is None:
            return []
        wanted = asked.locators if isinstance(asked, Stretches) else asked
        found = rows.filter(pl.Series(np.isin(rows[LOCATOR].to_numpy(), wanted)))
        return [found] if found.height else []

    def contains(self, table: str, locators: np.ndarray) -> np.ndarray:
        rows = self.rows[table]
        if rows is None:
            return np.zeros(len(locators), dtype=bool)
        return np.isin(locators, rows[LOCATOR].to_numpy())


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
    frames = [_frames(join, number, arrived[number], state, before, chosen) for number in numbers]
    counts = np.stack([_counts(chosen, frame) for pair in frames for frame in pair])
    thinned = np.minimum(counts, ROWS).astype(float)
    combinations = np.prod(thinned[0::2] + thinned[1::2], axis=0).sum()
    stride = max(1, int(np.ceil(combinations / MOST)))
    chosen, counts = chosen[::stride], counts[:, ::stride]
    looked, made, kept = np.zeros((3, len(chosen), len(splits)))
    fresh = counts[1::2].T.astype(float)
    found = Sampled(chosen, one_in * len(every) / len(chosen), fresh, looked, made, kept)
    factor = np.maximum(1.0, counts / ROWS)
    weight = (factor[0::2] + factor[1::2]) / 2
    old: Frames = {(number,): _thin(chosen, frames[number][0]) for number in numbers}
    new: Frames = {(number,): _thin(chosen, frames[number][1]) for number in numbers}
    for place, split in enumerate(splits):
        _count(join, found, place, split, old, new, weight)
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


def _frames(
    join: SymmetricJoin, number: int, fresh: pl.DataFrame | None, state: SiteState,
    before: int | None, chosen: np.ndarray,
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:  # fmt: skip
    """The remembered and the new rows of an input at these locators."""
    parts = state.probe(join.inlets[number].table, chosen, before)
    old = None
    if parts:
        old = sort_by_locator(pl.concat([part.select(parts[0].columns) for part in parts]), TIME)
    if fresh is not None:
        fresh = fresh.filter(pl.Series(np.isin(fresh[LOCATOR].to_numpy(), chosen)))
    return old, sort_by_locator(fresh, TIME) if fresh is not None and fresh.height else None


def _counts(chosen: np.ndarray, rows: pl.DataFrame | None) -> np.ndarray:
    """How many rows there are at each of these locators."""
    if rows is None:
        return np.zeros(len(chosen), dtype=np.int64)
    locators = rows[LOCATOR].to_numpy()
    last = np.searchsorted(locators, chosen, "right")
    found: np.ndarray = last - np.searchsorted(locators, chosen)
    return found


def _thin(chosen: np.ndarray, rows: pl.DataFrame | None) -> pl.DataFrame | None:
    """At most so many rows of each key, evenly along its time, of these keys alone."""
    if rows is None:
        return None
    first = np.searchsorted(rows[LOCATOR].to_numpy(), chosen)
    count = _counts(chosen, rows)
    steps = np.arange(ROWS)
    taken = first[:, None] + steps * np.maximum(count, ROWS)[:, None] // ROWS
    places = taken[steps < np.minimum(count, ROWS)[:, None]]
    return rows[pl.Series(places.astype(np.uint32))] if len(places) else None


def _count(
    join: SymmetricJoin, found: Sampled, place: int, split: Split, old: Frames, new: Frames,
    weight: np.ndarray,
) -> None:  # fmt: skip
    """What a split looks at and makes; the first of some inputs makes their rows for those above."""
    one = TreeJoin(join, joined([part[0] if len(part) == 1 else JoinShape(part) for part in split]))
    scale = np.prod(weight[list(one.inputs)], axis=0)
    wanted = one.inputs not in new and len(one.inputs) < len(join.inlets)
    before, fresh = ({part: rows[part] for part in split} for rows in (old, new))
    if wanted:
        old[one.inputs], made, _ = _met(one, dict.fromkeys(split), before, wanted)
        found.kept[:, place] = _at(found.locators, made) * scale
    rows, made, looked = _met(one, before, fresh, wanted)
    if wanted:
        new[one.inputs] = rows
    found.made[:, place] = _at(found.locators, made) * scale
    found.looked[:, place] = _at(found.locators, looked) * scale


def _met(
    one: TreeJoin, old: Frames, new: Frames, wanted: bool
) -> tuple[pl.DataFrame | None, Tally, Tally]:
    """The new rows of a join, if wanted; how many there are at each locator, how many pairs it looked at."""
    none = np.empty(0, dtype=np.uint64), np.empty(0)
    if all(rows is None for rows in new.values()):
        return None, none, none
    remembered = SampledRows({table_of(part): rows for part, rows in old.items()})
    meeting = meet(one.sides(new), remembered, None, one.bounds)
    if meeting is None:
        return None, none, none
    locators = meeting.rows[0][LOCATOR].to_numpy()
    places, frames = [np.empty(0, dtype=np.uint32)], []
    for chosen in one.combinations(meeting):
        places.append(chosen[0])
        frames += [one.kept(meeting, chosen)] if wanted else []
    where, count = np.unique(locators[np.concatenate(places)], return_counts=True)
    rows = sort_by_locator(pl.concat(frames), TIME) if frames else None
    return rows, (where, count.astype(float)), (locators[meeting.start[0]], meeting.looked_at)


def _at(locators: np.ndarray, tally: Tally) -> np.ndarray:
    """The numbers of a tally at these sorted locators."""
    found = np.zeros(len(locators))
    found[np.searchsorted(locators, tally[0])] = tally[1]
    return found
