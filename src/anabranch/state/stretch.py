"""Stretches of time asked of keys, in state whose rows of one key lie in the order of time.

Rows with the same locator are a run of neighbours; where they lie by time, so are those of a stretch of
time, and its ends are found by halving.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anabranch.routing.ranges import expand
from anabranch.routing.sorting import changes, distinct

EARLIEST, LATEST = -(1 << 63), (1 << 63) - 1
BLOCK = 1 << 14
"""Runs halved at a time: all that is looked at stays in a core's own cache."""


@dataclass(frozen=True)
class Stretches:
    """Rows that are asked for: of these sorted locators those whose time is in [low, high].

    A locator may have several stretches; where they may overlap, `apart` is False.
    """

    column: str
    """The column that has the time."""
    locators: np.ndarray
    low: np.ndarray
    high: np.ndarray
    apart: bool = True

    def of(self, wanted: np.ndarray) -> Stretches:
        """Those of the locators that are wanted."""
        return Stretches(
            self.column, self.locators[wanted], self.low[wanted], self.high[wanted], self.apart
        )

    def places(self, locators: np.ndarray, times: np.ndarray) -> np.ndarray:
        """The places of the rows asked for, among rows sorted by locator and then by time."""
        first = np.searchsorted(self.locators, locators[0], side="left")
        last = np.searchsorted(self.locators, locators[-1], side="right")
        asked = self.locators[first:last]
        hit, start, end = runs(locators, asked)
        start = bisect(times, start, end, self.low[first:last][hit])
        end = bisect(times, start, end, self.high[first:last][hit], after=True)
        if not self.apart:
            order = np.argsort(start, kind="stable")
            start, end = start[order], np.maximum.accumulate(end[order])
            start[1:] = np.maximum(start[1:], end[:-1])
        return expand(start, end - start)


def around(
    column: str, locators: np.ndarray, times: np.ndarray, earlier: int | None, later: int | None
) -> Stretches:
    """All times at most so much earlier or later than rows in this order; None: at any time."""
    begins = changes(locators)
    if earlier is not None and later is not None:
        # What two rows ask for is one stretch unless there is a gap between
        begins[1:] |= np.diff(times) > earlier + later
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(times)) - 1
    everywhere = np.ones(len(first), dtype=np.int64)
    return Stretches(
        column,
        locators[first],
        everywhere * EARLIEST if earlier is None else times[first] - earlier,
        everywhere * LATEST if later is None else times[last] + later,
    )


def together(asked: list[Stretches]) -> Stretches:
    """What is in any of several stretches."""
    if len(asked) == 1:
        return asked[0]
    locators = np.concatenate([one.locators for one in asked])
    order = np.argsort(locators, kind="stable")
    low = np.concatenate([one.low for one in asked])[order]
    high = np.concatenate([one.high for one in asked])[order]
    return Stretches(asked[0].column, locators[order], low, high, apart=False)


def runs(locators: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which of the sorted locators that are asked for are there, and where their rows begin and end."""
    start = np.searchsorted(locators, asked, side="left")
    last = len(locators) - 1
    hit = np.flatnonzero(locators[np.minimum(start, last)] == asked)
    start, found = start[hit], asked[hit]
    # Most rows are the only one of their locator: where rows end is looked up only for the others
    end = start + 1
    several = np.flatnonzero(locators[np.minimum(end, last)] == found)
    end[several] = np.searchsorted(locators, found[several], side="right")
    return hit, start, end


def bisect(
    values: np.ndarray, start: np.ndarray, end: np.ndarray, wanted: np.ndarray, after: bool = False
) -> np.ndarray:
    """Where in each run [start, end) of sorted values one that is wanted begins, or ends with `after`.

    >>> bisect(np.array([5, 7, 7, 9, 1, 3]), np.array([0, 4]), np.array([4, 6]), np.array([7, 3])).tolist()
    [1, 5]
    """
    found = np.empty(len(start), dtype=np.int64)
    for at in range(0, len(start), BLOCK):
        block = slice(at, at + BLOCK)
        found[block] = _bisect(values, start[block], end[block], wanted[block], after)
    return found


def _bisect(
    values: np.ndarray, start: np.ndarray, end: np.ndarray, wanted: np.ndarray, after: bool
) -> np.ndarray:
    longest = int((end - start).max(initial=0))
    within = np.less_equal if after else np.less
    for bit in range(longest.bit_length() - 1, -1, -1):
        ahead = start + (1 << bit)
        inside = ahead <= end
        inside &= within(values[np.minimum(ahead, end) - 1], wanted)
        start = np.where(inside, ahead, start)
    return start


def order_within(order: np.ndarray, begins: np.ndarray, values: np.ndarray) -> None:
    """Changes an order of rows so that those of each group lie by these values, equal ones as before.

    `begins` says of each place in the order whether a group begins there.
    """
    ordered = values[order]
    wrong = np.flatnonzero((ordered[1:] < ordered[:-1]) & ~begins[1:])
    if len(wrong) == 0:
        return
    group = np.cumsum(begins) - 1
    start = np.flatnonzero(begins)
    end = np.append(start[1:], len(order))
    mixed = distinct(group[wrong])
    where = expand(start[mixed], end[mixed] - start[mixed])
    order[where] = order[where][np.lexsort((ordered[where], group[where]))]
