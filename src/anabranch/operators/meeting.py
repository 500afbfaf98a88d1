"""The combinations of rows of several inputs with equal keys, within their bounds of time.

Rows of one key lie by time, so those of another input that a row can meet are a run of neighbours: work
follows the combinations that are within the bounds. Two keys can have the same locator; where they do,
the keys themselves are compared afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.language.bounds import Bounds
from anabranch.operators.partials import TIME
from anabranch.routing.partition_map import distinct, expand
from anabranch.state.segment import LOCATOR
from anabranch.state.stretch import bisect

CHUNK = 500_000
"""Combinations made at a time: what a key with very many matches takes of the memory."""
ROWS = 1 << 20
"""New rows at a time whose runs are looked up."""
HOT = 1_000_000
"""Combinations of one key in one epoch that are worth a warning."""


@dataclass(frozen=True)
class Side:
    """One input: its table, its key columns, and its rows of this epoch, by locator and time."""

    table: str
    keys: Sequence[str]
    arrived: pl.DataFrame | None

    def locators(self) -> np.ndarray:
        if self.arrived is None:
            return np.empty(0, dtype=np.uint64)
        return distinct(self.arrived[LOCATOR].to_numpy())


@dataclass(frozen=True)
class Runs:
    """Runs of neighbours: `start` and `length` of each, and of `which` row it is the run."""

    which: np.ndarray
    start: np.ndarray
    length: np.ndarray

    @property
    def rows(self) -> int:
        return int(self.length.sum())

    @property
    def places(self) -> np.ndarray:
        """The places of all rows, run by run."""
        # Half as wide as NumPy's own, and what Polars takes; that the shift wraps around is made up for
        shift = self.start - (np.cumsum(self.length) - self.length)
        found = np.repeat(shift.astype(np.uint32), self.length)
        found += np.arange(len(found), dtype=np.uint32)
        return found

    def chunks(self) -> Iterator[Runs]:
        """The runs, those with so many rows at a time."""
        which, start, length = self.which, self.start, self.length
        if len(length) and int(length.max()) > CHUNK:
            pieces = np.maximum(1, -(-length // CHUNK))
            piece = np.repeat(np.arange(len(length)), pieces)
            inner = expand(np.zeros(len(length), dtype=np.int64), pieces) * CHUNK
            which, start = which[piece], start[piece] + inner
            length = np.minimum(length[piece] - inner, CHUNK)
        ends = np.cumsum(length)
        at = 0
        while at < len(length):
            before = ends[at - 1] if at else 0
            upto = max(at + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
            cut = slice(at, upto)
            yield Runs(which[cut], start[cut], length[cut])
            at = upto


@dataclass(frozen=True)
class Meeting:
    """Rows of every input that share their locators with rows of all others, some of them new.

    In the rows of an input those with the same locator are side by side: the remembered by time, then
    the new by time.
    """

    sides: Sequence[Side]
    bounds: Bounds
    rows: list[pl.DataFrame]
    origin: list[np.ndarray]
    """For each row its place among those that arrived in this epoch, or -1."""
    start: list[np.ndarray]
    """For each locator where its rows begin; `middle` is where its new rows do, `end` where they end."""
    middle: list[np.ndarray]
    end: list[np.ndarray]
    mixed: bool
    """Whether different keys share a locator somewhere."""
    times: list[np.ndarray] = field(init=False)
    looked_at: np.ndarray = field(init=False)
    """For each locator the pairs that were looked at."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", [rows[TIME].to_numpy() for rows in self.rows])
        object.__setattr__(self, "looked_at", np.zeros(len(self.start[0])))

    @property
    def pairs(self) -> int:
        """How many pairs of rows were looked at."""
        return int(self.looked_at.sum())

    def combinations(self) -> Iterator[list[np.ndarray]]:
        """The places of the rows of each combination with a new row, so many at a time, as 32 bits."""
        # Counted once: a new row meets the remembered rows of all inputs, the new ones of those before
        for first in range(len(self.sides)):
            others = [number for number in range(len(self.sides)) if number != first]
            for places, group in self._new(first):
                yield from self._extend({first: places}, group, others, first)

    def _new(self, number: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The places of the new rows of an input and the numbers of their locators, not too many at once."""
        new = self.end[number] - self.middle[number]
        places = expand(self.middle[number], new).astype(np.uint32)
        group = np.repeat(np.arange(len(new)), new)
        for at in range(0, len(places), ROWS):
            yield places[at : at + ROWS], group[at : at + ROWS]

    def _extend(
        self, chosen: dict[int, np.ndarray], group: np.ndarray, others: list[int], first: int
    ) -> Iterator[list[np.ndarray]]:
        if not others:
            yield [chosen[number] for number in range(len(self.sides))]
            return
        runs = {number: self._within(chosen, group, number, number < first) for number in others}
        # The one with the fewest rows first: less is combined with the rest
        number = min(others, key=lambda other: runs[other].rows)
        rest = [other for other in others if other != number]
        self._count(group[runs[number].which], runs[number].length)
        for run in runs[number].chunks():
            taken = {
                other: np.repeat(theirs[run.which], run.length) for other, theirs in chosen.items()
            }
            taken[number] = run.places
            group_of = np.repeat(group[run.which], run.length) if rest else group[:0]
            if self.mixed:
                same = self._same_keys(taken, number)
                taken = {other: theirs[same] for other, theirs in taken.items()}
                group_of = group_of[same] if rest else group_of
            if len(taken[number]):
                yield from self._extend(taken, group_of, rest, first)

    def _within(
        self, chosen: dict[int, np.ndarray], group: np.ndarray, number: int, new: bool
    ) -> Runs:
        """The rows of an input that each combination can meet; the new ones too, if so asked."""
        low: np.ndarray | None = None
        high: np.ndarray | None = None
        for other, places in chosen.items():
            earlier, later = self.bounds[number][other], self.bounds[other][number]
            if earlier is not None:
                least = self.times[other][places] - earlier
                low = least if low is None else np.maximum(low, least)
            if later is not None:
                most = self.times[other][places] + later
                high = most if high is None else np.minimum(high, most)
        parts = [(self.start[number], self.middle[number])]
        if new:
            parts.append((self.middle[number], self.end[number]))
        found = []
        for begin, stop in parts:
            if (begin == stop).all():
                continue
            start, end = begin[group], stop[group]
            if low is not None:
                start = bisect(self.times[number], start, end, low)
            if high is not None:
                end = bisect(self.times[number], start, end, high, after=True)
            which = np.flatnonzero(end > start)
            found.append((which, start[which], (end - start)[which]))
        if not found:
            nothing = np.empty(0, dtype=np.int64)
            return Runs(nothing, nothing, nothing)
        which, start, length = (np.concatenate(column) for column in zip(*found, strict=True))
        return Runs(which, start, length)

    def _same_keys(self, chosen: dict[int, np.ndarray], number: int) -> np.ndarray:
        """Which combinations have equal keys in this input and another one."""
        other = next(other for other in chosen if other != number)
        ours, theirs = pl.Series(chosen[number]), pl.Series(chosen[other])
        same = np.ones(len(ours), dtype=bool)
        for key, their in zip(self.sides[number].keys, self.sides[other].keys, strict=True):
            mine = self.rows[number][key][ours]
            same &= (mine == self.rows[other][their][theirs]).to_numpy()
        return same

    def _count(self, group: np.ndarray, pairs: np.ndarray) -> None:
        self.looked_at[:] += np.bincount(group, pairs, minlength=len(self.looked_at))

    def met(self) -> list[np.ndarray]:
        """Of the rows of two inputs those that are in some pair, where no keys share a locator."""
        met = [np.zeros(rows.height, dtype=bool) for rows in self.rows]
        for first, other in ((0, 1), (1, 0)):
            for places, group in self._new(first):
                runs = self._within({first: places}, group, other, other < first)
                met[first][places[runs.which]] = True
                # A row is in some run if more runs have begun there than have ended
                edges = np.bincount(runs.start, minlength=len(met[other]) + 1)
                edges -= np.bincount(runs.start + runs.length, minlength=len(edges))
                met[other] |= np.cumsum(edges[:-1]) > 0
        return met

    def warnings(self) -> list[str]:
        """A word about the key with the most combinations, if it has very many."""
        hottest = int(self.looked_at.argmax())
        if self.looked_at[hottest] < HOT:
            return []
        head = self.rows[0].select(self.sides[0].keys)[int(self.start[0][hottest])].row(0)
        sizes = " x ".join(
            f"{int(end[hottest] - start[hottest]):,}"
            for start, end in zip(self.start, self.end, strict=True)
        )
        shown = ", ".join(repr(value) for value in head)
        numbers = range(len(self.sides))
        limits = [self.bounds[a][b] for a in numbers for b in numbers if a != b]
        bounded = None not in limits
        return [
            f"the key {shown} alone has {sizes} rows that may meet, {int(self.looked_at[hottest]):,} "
            f"pairs of them{' within the bounds of time' if bounded else ''} in this epoch, all looked at "
            f"on one site. What helps: {'tighter bounds' if bounded else 'bounds'} on the times of all "
            "inputs, one more equality, or a filter before the join if the key stands for 'unknown'"
        ]
