"""The combinations of rows of several inputs with equal keys, within their bounds of time.

Rows of one key lie by time, so those of another input that a row can meet are a run of neighbours: work
follows the combinations that are within the bounds. Two keys can have the same locator; where they do,
the keys themselves are compared afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.language.bounds import Bounds
from anabranch.operators.partials import TIME
from anabranch.operators.runs import CHUNK, Runs, in_chunks, joined
from anabranch.routing.sorting import distinct
from anabranch.state.segment import LOCATOR
from anabranch.state.stretch import bisect

ROWS = 1 << 20
"""Rows at a time whose runs are looked up."""
FEW = 8
"""Pairs of each row that are looked at first where one that holds is enough."""
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
            for places, group in in_chunks(self.middle[first], self.end[first], ROWS):
                yield from self._extend({first: places}, group, others, first)

    def _extend(
        self, chosen: dict[int, np.ndarray], group: np.ndarray, others: list[int], first: int
    ) -> Iterator[list[np.ndarray]]:
        if not others:
            yield [chosen[number] for number in range(len(self.sides))]
            return
        runs = {
            number: self._within(chosen, group, number, old=True, new=number < first)
            for number in others
        }
        # The one with the fewest rows first: less is combined with the rest
        number = min(others, key=lambda other: runs[other].rows)
        rest = [other for other in others if other != number]
        self._count(group[runs[number].which], runs[number].length)
        for run in runs[number].chunks(CHUNK):
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
        self, chosen: dict[int, np.ndarray], group: np.ndarray, number: int, old: bool, new: bool
    ) -> Runs:
        """The rows of an input that each combination can meet: the remembered, the new, or both."""
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
        start, middle, end = self.start[number], self.middle[number], self.end[number]
        found = []
        for asked, begin, stop in ((old, start, middle), (new, middle, end)):
            if not asked or (begin == stop).all():
                continue
            begin, stop = begin[group], stop[group]
            if low is not None:
                begin = bisect(self.times[number], begin, stop, low)
            if high is not None:
                stop = bisect(self.times[number], begin, stop, high, after=True)
            some = np.flatnonzero(stop > begin)
            begin = begin[some]
            found.append(Runs(some, begin, stop[some] - begin))
        return joined(found)

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

    def met(self, that_hold: Callable[[list[np.ndarray]], list[np.ndarray]] | None) -> np.ndarray:
        """Which rows of the first of two inputs are in a pair that holds; None: all pairs do.

        Of a row no more pairs are looked at once one holds; of all rows few at first.
        """
        met = np.zeros(self.rows[0].height, dtype=bool)
        start, middle, end = self.start[0], self.middle[0], self.end[0]
        for new, begin, stop in ((False, start, middle), (True, middle, end)):
            for places, group in in_chunks(begin, stop, ROWS):
                runs = self._within({0: places}, group, 1, old=new, new=True)
                if that_hold is None and not self.mixed:
                    met[places[runs.which]] = True
                    continue
                some = FEW
                while len(runs.which):
                    head, runs = runs.cut(some)
                    self._count(group[head.which], head.length)
                    for run in head.chunks(CHUNK):
                        pairs = [np.repeat(places[run.which], run.length), run.places]
                        if self.mixed:
                            same = self._same_keys({0: pairs[0], 1: pairs[1]}, 1)
                            pairs = [theirs[same] for theirs in pairs]
                        met[(that_hold(pairs) if that_hold else pairs)[0]] = True
                    runs = runs.of(~met[places[runs.which]])
                    some *= 4
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
