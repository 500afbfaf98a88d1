"""Reach: how far the slots of an exchange have come, and what they still owe because their rows wait.

Flux's transient skew buffer (F2) lets rows of slow or paused partitions wait before the exchange; all others
flow. A hold keeps the rows of a range of slots in the order in which they came, and with them the watermark
that these slots had reached: what waits is not late when it is let go. Where the rows wait is the engine's
matter; here is which.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from anabranch.routing.ranges import intersect, subtract


class Hold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of slots [first, end) whose rows wait."""

    first: int
    end: int
    watermark: int | None
    """What the input of these slots had reached when it was stopped."""
    since: int
    """The first epoch in which rows waited."""


class Reach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far the input of an exchange has come, and what it still owes."""

    watermark: int | None = None
    """Of all slots but those whose rows wait."""
    behind: tuple[Hold, ...] = ()
    """The slots whose rows wait, in order: they have come less far."""

    @property
    def watermarks(self) -> list[int | None]:
        """All that its slots have reached."""
        return [self.watermark, *(hold.watermark for hold in self.behind)]

    @property
    def least(self) -> int | None:
        """How far all of it has come: what reads it can count on no more."""
        return least(self.watermarks)

    def flowing(
        self, owned: Sequence[tuple[int, int]], released: Sequence[Hold]
    ) -> Iterator[tuple[list[tuple[int, int]], int | None]]:
        """The slots, of those that are owned, whose rows flow now, by the watermark they had reached.

        Nearly always one. Slots whose rows waited and are released had come less far than the others.
        """
        yield subtract(owned, slots_of([*self.behind, *released])), self.watermark
        late: dict[int | None, list[tuple[int, int]]] = {}
        for hold in released:
            late.setdefault(hold.watermark, []).append((hold.first, hold.end))
        for watermark, ranges in late.items():
            slots = intersect(owned, sorted(ranges))
            if slots:
                yield slots, watermark

    def renewed(
        self, wanted: Sequence[tuple[int, int]], epoch: int
    ) -> tuple[tuple[Hold, ...], tuple[Hold, ...]]:
        """What waits in an epoch that wants these slots to wait, and what is let go in it."""
        return renew(self.behind, wanted, self.watermark, epoch)


Holds = Mapping[str, tuple[Hold, ...]]
"""The holds of each exchange, in order of their slots."""


def renew(
    before: Sequence[Hold], wanted: Sequence[tuple[int, int]], watermark: int | None, epoch: int
) -> tuple[tuple[Hold, ...], tuple[Hold, ...]]:
    """The holds of an epoch, given those of the last and the slots that are to wait; and what is let go.

    Slots that go on waiting keep their watermark; new ones have the one of now.

    >>> renew([Hold(0, 4, 10, 1)], [(2, 6)], watermark=20, epoch=2)[0]
    (Hold(first=2, end=4, watermark=10, since=1), Hold(first=4, end=6, watermark=20, since=2))
    """
    asked = sorted(wanted)
    kept = [Hold(first, end, watermark, epoch) for first, end in subtract(asked, slots_of(before))]
    released: list[Hold] = []
    for hold in before:
        slots = [(hold.first, hold.end)]
        begin = bisect_right(asked, hold.first, key=lambda one: one[1])
        near = asked[begin : bisect_left(asked, hold.end, key=lambda one: one[0])]
        for found, ranges in (kept, intersect(slots, near)), (released, subtract(slots, near)):
            found += [Hold(first, end, hold.watermark, hold.since) for first, end in ranges]
    return tuple(sorted(kept, key=lambda hold: hold.first)), tuple(released)


def slots_of(holds: Sequence[Hold]) -> list[tuple[int, int]]:
    return [(hold.first, hold.end) for hold in holds]


def within(slots: np.ndarray, ranges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Whether each slot is in one of these ranges.

    >>> within(np.array([1, 4, 5]), [(0, 2), (5, 6)]).tolist()
    [True, False, True]
    """
    edges = np.asarray([edge for pair in ranges for edge in pair])
    inside: np.ndarray = np.searchsorted(edges, slots, side="right") % 2 == 1
    return inside


def least(values: Sequence[int | None]) -> int | None:
    """The least of several watermarks; None, which is before all others, if there is one."""
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None
