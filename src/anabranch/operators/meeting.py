"""Where rows of several inputs meet: the locators that all of them have, and the combinations there.

Rows are looked up by locator, in sorted arrays; the keys themselves are compared afterwards, since two
keys can have the same locator. Each input in turn leaves fewer locators for the next, so the one that
the fewest can be found in, by a sample, is asked first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from anabranch.language.bounds import Bounds
from anabranch.operators.partials import TIME
from anabranch.routing.partition_map import changes, distinct, expand
from anabranch.state.group import SiteState, sort_by_locator
from anabranch.state.segment import LOCATOR

CHUNK = 500_000
"""Combinations made at a time: what a key with very many matches takes of the memory."""
HOT = 1_000_000
"""Combinations of one key in one epoch that are worth a warning."""
SAMPLE = 1_000
_ORIGIN = "__origin"


@dataclass(frozen=True)
class Side:
    """One input: its table, its key columns, and its rows of this epoch, sorted by locator."""

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

    In the rows of an input those with the same locator are side by side, the remembered before the new.
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

    def combinations(self) -> Iterator[list[np.ndarray]]:
        """The places of the rows of each combination with a new row, so many at a time."""
        # Counted once: a new row meets the remembered rows of all inputs, the new ones of those before
        for first in range(len(self.sides)):
            new = self.end[first] - self.middle[first]
            group = np.repeat(np.arange(len(new)), new)
            places = expand(self.middle[first], new)
            if len(places):
                others = [number for number in range(len(self.sides)) if number != first]
                yield from self._extend({first: places}, group, others, first)

    def _extend(
        self, chosen: dict[int, np.ndarray], group: np.ndarray, others: list[int], first: int
    ) -> Iterator[list[np.ndarray]]:
        if not others:
            yield [chosen[number] for number in range(len(self.sides))]
            return
        begin = [self.start[number][group] for number in others]
        length = [
            (self.end[number] if number < first else self.middle[number])[group] - at
            for number, at in zip(others, begin, strict=True)
        ]
        # The one with the fewest rows first: what the bounds drop is not combined with the rest
        best = min(range(len(others)), key=lambda place: int(length[place].sum()))
        number, rest = others[best], [other for other in others if other != others[best]]
        for which, places in _chunks(begin[best], length[best]):
            taken = {other: known[which] for other, known in chosen.items()}
            taken[number] = places
            fits = self._fits(taken, number)
            if fits is not None:
                which = which[fits]
                taken = {other: known[fits] for other, known in taken.items()}
            if len(which):
                yield from self._extend(taken, group[which], rest, first)

    def _fits(self, chosen: dict[int, np.ndarray], number: int) -> np.ndarray | None:
        """Which combinations are within the bounds of time and have equal keys; None: all of them."""
        fits: np.ndarray | None = None
        time = self.rows[number][TIME].to_numpy()[chosen[number]]
        for other, places in chosen.items():
            if other == number:
                continue
            after, before = self.bounds[other][number], self.bounds[number][other]
            if after is not None or before is not None:
                later = time - self.rows[other][TIME].to_numpy()[places]
                if after is not None:
                    fits = _both(fits, later <= after)
                if before is not None:
                    fits = _both(fits, later >= -before)
            if self.mixed:
                fits = _both(fits, self._same_keys(number, chosen[number], other, places))
        return fits

    def _same_keys(
        self, number: int, places: np.ndarray, other: int, theirs: np.ndarray
    ) -> np.ndarray:
        same = np.ones(len(places), dtype=bool)
        pairs = zip(self.sides[number].keys, self.sides[other].keys, strict=True)
        for key, their in pairs:
            ours = self.rows[number][key][pl.Series(places.astype(np.uint32))]
            same &= (
                ours == self.rows[other][their][pl.Series(theirs.astype(np.uint32))]
            ).to_numpy()
        return same

    def warnings(self) -> list[str]:
        """A word about the key with the most combinations, if it has very many."""
        whole, old = 1.0, 1.0
        for start, middle, end in zip(self.start, self.middle, self.end, strict=True):
            whole, old = whole * (end - start), old * (middle - start)
        new = np.asarray(whole - old)
        hottest = int(new.argmax())
        if new[hottest] < HOT:
            return []
        head = self.rows[0].select(self.sides[0].keys)[int(self.start[0][hottest])].row(0)
        sizes = " x ".join(
            f"{int(end[hottest] - start[hottest]):,}"
            for start, end in zip(self.start, self.end, strict=True)
        )
        shown = ", ".join(repr(value) for value in head)
        return [
            f"the key {shown} alone has {sizes} rows that may meet, {int(new[hottest]):,} new "
            "combinations to look at in this epoch. If that is not meant, leave the key out"
        ]


def meet(
    sides: Sequence[Side], state: SiteState, after: int | None, bounds: Bounds
) -> Meeting | None:
    """Where rows of this epoch meet others; None if they do nowhere."""
    own = [side.locators() for side in sides]
    asked = distinct(np.concatenate(own))
    known: dict[int, list[pl.DataFrame]] = {}
    for number in _order(sides, own, asked, state):
        others = [locators for other, locators in enumerate(own) if other != number]
        # What only this input has new is no reason to look into what it remembers
        new = asked[_found(asked, np.concatenate(others))]
        known[number] = state.probe(sides[number].table, new, after) if len(new) else []
        have = [part[LOCATOR].to_numpy() for part in known[number]]
        asked = asked[_found(asked, np.concatenate([own[number], *have]))]
        if len(asked) == 0:
            return None
    return _meeting(sides, [known[number] for number in range(len(sides))], asked, bounds)


def _order(
    sides: Sequence[Side], own: Sequence[np.ndarray], asked: np.ndarray, state: SiteState
) -> list[int]:
    """The inputs, those first in which the fewest of a sample of the locators are found."""
    if len(sides) == 2 or len(asked) == 0:
        return list(range(len(sides)))
    sample = asked[:: max(1, len(asked) // SAMPLE)]
    found = [
        int((_found(sample, locators) | state.holds(side.table, sample)).sum())
        for side, locators in zip(sides, own, strict=True)
    ]
    return sorted(range(len(sides)), key=lambda number: found[number])


def _meeting(
    sides: Sequence[Side], known: Sequence[list[pl.DataFrame]], asked: np.ndarray, bounds: Bounds
) -> Meeting:
    rows, origin, start, middle, end = [], [], [], [], []
    for side, old in zip(sides, known, strict=True):
        parts = [part.with_columns(pl.lit(-1, pl.Int64).alias(_ORIGIN)) for part in old]
        if side.arrived is not None:
            number = pl.int_range(side.arrived.height, eager=True).alias(_ORIGIN)
            parts.append(side.arrived.with_columns(number))
        names = parts[-1].columns
        # Of two inputs, what was looked up is all asked for: nothing has been left out since
        sure = len(old) if len(sides) == 2 else 0
        parts = [
            part.select(names)
            if place < sure
            else part.select(names).filter(pl.Series(_places(asked, part[LOCATOR].to_numpy())[1]))
            for place, part in enumerate(parts)
        ]
        # Sorting keeps the order of equals: the remembered ones stay before the new
        whole = sort_by_locator(pl.concat(parts))
        where = whole[_ORIGIN].to_numpy()
        # Every input has every locator that is asked for: they begin where the locator changes
        start.append(np.flatnonzero(changes(whole[LOCATOR].to_numpy())))
        end.append(np.append(start[-1][1:], whole.height))
        fresh = np.append(0, np.cumsum(where >= 0))
        middle.append(end[-1] - (fresh[end[-1]] - fresh[start[-1]]))
        rows.append(whole.drop(_ORIGIN))
        origin.append(where)
    made = Meeting(sides, bounds, rows, origin, start, middle, end, mixed=True)
    return made if _mixed(made) else Meeting(sides, bounds, rows, origin, start, middle, end, False)


def _mixed(made: Meeting) -> bool:
    """Whether rows that share a locator have different keys."""
    first = pl.Series(made.start[0].astype(np.uint32))
    heads = [made.rows[0][key][first] for key in made.sides[0].keys]
    for side, rows, start, end in zip(made.sides, made.rows, made.start, made.end, strict=True):
        group = pl.Series(np.repeat(np.arange(len(start), dtype=np.uint32), end - start))
        for key, head in zip(side.keys, heads, strict=True):
            if not (rows[key] == head[group]).all():
                return True
    return False


def _chunks(start: np.ndarray, length: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For ranges of places: which range, and which place, for so many at a time."""
    which = np.arange(len(length))
    if len(length) and int(length.max()) > CHUNK:
        pieces = np.maximum(1, -(-length // CHUNK))
        which = np.repeat(which, pieces)
        inner = expand(np.zeros(len(length), dtype=np.int64), pieces) * CHUNK
        start, length = start[which] + inner, np.minimum(length[which] - inner, CHUNK)
    ends = np.cumsum(length)
    at = 0
    while at < len(length):
        before = ends[at - 1] if at else 0
        upto = max(at + 1, int(np.searchsorted(ends, before + CHUNK, side="right")))
        part = slice(at, upto)
        if ends[upto - 1] > before:
            yield np.repeat(which[part], length[part]), expand(start[part], length[part])
        at = upto


def _places(asked: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each value its place among the sorted ones that are asked for, and whether it is there."""
    at = np.minimum(np.searchsorted(asked, values), len(asked) - 1)
    return at, asked[at] == values


def _found(asked: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Which of the sorted ones that are asked for are among the values."""
    found = np.zeros(len(asked), dtype=bool)
    if len(asked):
        at, there = _places(asked, values)
        found[at[there]] = True
    return found


def _both(known: np.ndarray | None, more: np.ndarray) -> np.ndarray:
    return more if known is None else known & more
