"""Which remembered rows the rows of an epoch can meet: looked up by locator and time.

Each input in turn leaves fewer locators for the next, so the one that the fewest can be found in, by a
sample, is asked first. Of a locator only the stretches of time are looked up in which the new rows of
the other inputs can meet anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import polars as pl

from anabranch.language.bounds import Bounds
from anabranch.operators.meeting import Meeting, Side
from anabranch.operators.partials import TIME
from anabranch.routing.sorting import changes, distinct, sort_locators
from anabranch.state.segment import LOCATOR
from anabranch.state.stretch import Stretches, around, order_within, together

SAMPLE = 1_000


class Remembered(Protocol):
    """Where remembered rows are looked up: the state of a site, or a sample of it."""

    def probe(
        self, table: str, asked: np.ndarray | Stretches, after: int | None
    ) -> list[pl.DataFrame]:
        """The rows in these stretches, due later."""

    def contains(self, table: str, locators: np.ndarray) -> np.ndarray:
        """Whether there are rows with each of these sorted locators."""


def meet(
    sides: Sequence[Side], state: Remembered, after: int | None, bounds: Bounds
) -> Meeting | None:
    """Where rows of this epoch meet others; None if they do nowhere."""
    own = [side.locators() for side in sides]
    everything = asked = distinct(np.concatenate(own))
    remembered: dict[int, list[pl.DataFrame]] = {}
    for number in _order(sides, own, asked, state):
        # What only this input has new is no reason to look into what it remembers
        fewer = asked if len(sides) > 2 and len(asked) < len(everything) else None
        wanted = _wanted(sides, number, fewer, bounds)
        remembered[number] = state.probe(sides[number].table, wanted, after) if wanted else []
        have = [rows[LOCATOR].to_numpy() for rows in remembered[number]]
        asked = asked[_found(asked, np.concatenate([own[number], *have]))]
        if len(asked) == 0:
            return None
    return _meeting(sides, [remembered[number] for number in range(len(sides))], asked, bounds)


def _wanted(
    sides: Sequence[Side], number: int, asked: np.ndarray | None, bounds: Bounds
) -> Stretches | None:
    """What rows of an input the new rows of all others can meet, at the locators asked for; None: at all."""
    wanted = []
    for other, side in enumerate(sides):
        if other != number and side.arrived is not None:
            times = side.arrived[TIME].to_numpy()
            locators = side.arrived[LOCATOR].to_numpy()
            reach = bounds[number][other], bounds[other][number]
            wanted.append(around(TIME, locators, times, *reach))
    if asked is not None:
        wanted = [one.of(np.flatnonzero(_places(asked, one.locators)[1])) for one in wanted]
    wanted = [one for one in wanted if len(one.locators)]
    return together(wanted) if wanted else None


def _order(
    sides: Sequence[Side], own: Sequence[np.ndarray], asked: np.ndarray, state: Remembered
) -> list[int]:
    """The inputs, those first in which the fewest of a sample of the locators are found."""
    if len(sides) == 2 or len(asked) == 0:
        return list(range(len(sides)))
    sample = asked[:: max(1, len(asked) // SAMPLE)]
    found = [
        int((_found(sample, locators) | state.contains(side.table, sample)).sum())
        for side, locators in zip(sides, own, strict=True)
    ]
    return sorted(range(len(sides)), key=lambda number: found[number])


def _meeting(
    sides: Sequence[Side], remembered: Sequence[list[pl.DataFrame]], asked: np.ndarray,
    bounds: Bounds,
) -> Meeting:  # fmt: skip
    rows, origin, start, middle, end = [], [], [], [], []
    for side, old in zip(sides, remembered, strict=True):
        parts = [*old, *(() if side.arrived is None else (side.arrived,))]
        names = parts[-1].columns
        numbers = [np.full(part.height, -1) for part in old]
        numbers += [] if side.arrived is None else [np.arange(side.arrived.height)]
        # Of two inputs, what was looked up is all asked for: nothing has been left out since
        for place in range(len(old) if len(sides) == 2 else 0, len(parts)):
            there = _places(asked, parts[place][LOCATOR].to_numpy())[1]
            if not there.all():
                parts[place] = parts[place].filter(pl.Series(there))
                numbers[place] = numbers[place][there]
        parts = [part if part.columns == names else part.select(names) for part in parts]
        whole, where = parts[0].rechunk(), numbers[0]
        if len(parts) > 1:
            whole, where = _in_order(pl.concat(parts, rechunk=True), np.concatenate(numbers))
        # Every input has every locator that is asked for: they begin where the locator changes
        start.append(np.flatnonzero(changes(whole[LOCATOR].to_numpy())))
        end.append(np.append(start[-1][1:], whole.height))
        fresh = np.append(0, np.cumsum(where >= 0))
        middle.append(end[-1] - (fresh[end[-1]] - fresh[start[-1]]))
        rows.append(whole)
        origin.append(where)
    mixed = _mixed(sides, rows, start, end)
    return Meeting(sides, bounds, rows, origin, start, middle, end, mixed)


def _in_order(rows: pl.DataFrame, origin: np.ndarray) -> tuple[pl.DataFrame, np.ndarray]:
    """By locator, the remembered before the new, each by time; with where each row came from."""
    # Sorting keeps the order of equals, and the remembered ones come first
    order, locators = sort_locators(rows[LOCATOR].to_numpy())
    begins = changes(locators)
    begins |= changes(origin[order] >= 0)
    order_within(order, begins, rows[TIME].to_numpy())
    return rows[pl.Series(order.astype(np.uint32))], origin[order]


def _mixed(
    sides: Sequence[Side], rows: Sequence[pl.DataFrame], start: Sequence[np.ndarray],
    end: Sequence[np.ndarray],
) -> bool:  # fmt: skip
    """Whether rows that share a locator have different keys."""
    first = pl.Series(start[0].astype(np.uint32))
    heads = [rows[0][key][first] for key in sides[0].keys]
    for side, frame, begin, stop in zip(sides, rows, start, end, strict=True):
        group = pl.Series(np.repeat(np.arange(len(begin), dtype=np.uint32), stop - begin))
        for key, head in zip(side.keys, heads, strict=True):
            if not (frame[key] == head[group]).all():
                return True
    return False


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
