"""Reach: how far the slots of an exchange have come, and what they still owe because their rows wait.

Flux's transient skew buffer (F2) lets rows of slow or paused partitions wait before the exchange; all others
flow. A hold keeps the rows of a range of slots in the order in which they came, and with them the watermark
that these slots had reached: what waits is not late when it is let go. Where the rows wait is the engine's
matter; here is which.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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


class Spilled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of slots [first, end) part of whose state is put aside, in generations.

    What has come since meets only what has come since. What rows of different generations give with each
    other is owed until the slots are cleaned up. Where results would be wrong meanwhile there are no
    generations, and the rows wait.
    """

    first: int
    end: int
    watermark: int | None
    """What the input of these slots had reached when the first generation was put aside."""
    since: int
    """The first epoch in which it was aside."""
    cuts: tuple[int, ...]
    """The last epoch of each generation that is put aside, in order; none if the rows of these slots wait."""

    def goes_in(self, epoch: int) -> bool:
        """Whether something of it is put aside in this very epoch."""
        return self.cuts[-1] == epoch - 1 if self.cuts else self.since == epoch


@dataclass(frozen=True)
class SlotFlow:
    """Slots that are worked on together in an epoch."""

    slots: list[tuple[int, int]]
    before: int | None
    """The watermark that they had reached before."""
    after: int | None
    """The one that they reach with it."""
    newest: tuple[tuple[int, tuple[int, int]], ...] = ()
    """Slots that owe results and go on: only what has come after this epoch takes part."""
    cuts: tuple[int, ...] = ()
    """The last epochs of generations that come together again: what they owe is to be given."""


class Reach(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far the input of an exchange has come, and what it still owes."""

    watermark: int | None = None
    """Of all slots but those whose rows wait."""
    behind: tuple[Hold, ...] = ()
    """The slots whose rows wait, in order: they have come less far."""
    spilled: tuple[Spilled, ...] = ()
    """The slots whose state is put aside, in order; those without generations wait as well."""

    @property
    def watermarks(self) -> list[int | None]:
        """All that its slots have reached."""
        return [
            self.watermark,
            *(hold.watermark for hold in self.behind),
            *(one.watermark for one in self.owing),
        ]

    @property
    def owing(self) -> tuple[Spilled, ...]:
        """The slots that owe results; none of them waits."""
        return tuple(one for one in self.spilled if one.cuts)

    @property
    def least(self) -> int | None:
        """How far all of it has come: what reads it can count on no more."""
        return least(self.watermarks)

    def flowing(
        self, owned: Sequence[tuple[int, int]], released: Sequence[Hold], cleaned: Sequence[Spilled],
        after: int | None,
    ) -> Iterator[SlotFlow]:  # fmt: skip
        """The slots, of those that are owned, whose rows flow now, by how far they had come.

        Nearly always one. Slots whose rows waited and are released had come less far than the others, and so
        have those that are cleaned up; those that go on owing get no further.
        """
        # What only waited is released like all that waits
        settled = [one for one in cleaned if one.cuts]
        apart: list[Hold | Spilled] = [*self.behind, *released, *self.owing, *settled]
        yield SlotFlow(subtract(owned, sorted(slots_of(apart))), self.watermark, after)
        others: dict[tuple[int | None, tuple[int, ...]], list[tuple[int, int]]] = {}
        for hold in released:
            others.setdefault((hold.watermark, ()), []).append((hold.first, hold.end))
        for one in settled:
            others.setdefault((one.watermark, one.cuts), []).append((one.first, one.end))
        for (watermark, cuts), ranges in others.items():
            slots = intersect(owned, sorted(ranges))
            if slots:
                yield SlotFlow(slots, watermark, after, cuts=cuts)
        slots = intersect(owned, slots_of(self.owing))
        if slots:
            # Each of these lies in one of the ranges that owe
            firsts = [one.first for one in self.owing]
            last = (self.owing[bisect_right(firsts, first) - 1].cuts[-1] for first, _ in slots)
            newest = tuple(zip(last, slots, strict=True))
            yield SlotFlow(slots, least([one.watermark for one in self.owing]), None, newest)

    def renewed(
        self, wanted: Sequence[tuple[int, int]], epoch: int
    ) -> tuple[tuple[Hold, ...], tuple[Hold, ...]]:
        """What waits in an epoch that wants these slots to wait, and what is let go in it."""
        return renew(self.behind, wanted, self.watermark, epoch)


Holds = Mapping[str, tuple[Hold, ...]]
"""The holds of each exchange, in order of their slots."""
Apart = Mapping[str, tuple[Spilled, ...]]
"""What is put aside of each exchange, in order of their slots."""


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


def put_aside(
    reach: Reach, wanted: Sequence[tuple[int, int]], epoch: int, waits: bool
) -> tuple[Spilled, ...]:
    """What is put aside from an epoch on, when all earlier rows of these slots are, too.

    If their later rows wait, there are no generations. Slots whose rows wait already have come less far.

    >>> owing = Reach(20, spilled=(Spilled(0, 4, 10, 2, (1,)),))
    >>> put_aside(owing, [(2, 6)], epoch=4, waits=False)[1]
    Spilled(first=2, end=4, watermark=10, since=2, cuts=(1, 3))
    >>> put_aside(Reach(20, behind=(Hold(0, 4, 10, 1),)), [(2, 6)], epoch=4, waits=True)[0]
    Spilled(first=2, end=4, watermark=10, since=4, cuts=())
    """
    if not wanted:
        return reach.spilled
    asked = sorted(wanted)
    cut = () if waits else (epoch - 1,)
    fresh = subtract(asked, sorted(slots_of(reach.spilled)))
    found = [
        Spilled(hold.first, hold.end, hold.watermark, epoch, cut)
        for hold in reach.renewed(fresh, epoch)[0]
    ]
    for one, near in _beside(reach.spilled, asked):
        again = near if cut and one.cuts[-1:] < cut else []
        if again:
            found += [Spilled(*part, one.watermark, one.since, one.cuts + cut) for part in again]
            found += _parts(one, subtract([(one.first, one.end)], again))
        else:
            found.append(one)
    return tuple(sorted(found, key=lambda one: one.first))


def _parts(one: Spilled, ranges: Sequence[tuple[int, int]]) -> list[Spilled]:
    return [Spilled(*part, one.watermark, one.since, one.cuts) for part in ranges]


def brought_together(
    before: Sequence[Spilled], wanted: Sequence[tuple[int, int]]
) -> tuple[tuple[Spilled, ...], tuple[Spilled, ...]]:
    """What is still put aside after these slots are cleaned up, and what is cleaned up."""
    if not wanted:
        return tuple(before), ()
    left: list[Spilled] = []
    cleaned: list[Spilled] = []
    for one, near in _beside(before, sorted(wanted)):
        if near:
            left += _parts(one, subtract([(one.first, one.end)], near))
            cleaned += _parts(one, near)
        else:
            left.append(one)
    return tuple(left), tuple(cleaned)


def _beside(
    before: Sequence[Spilled], asked: Sequence[tuple[int, int]]
) -> Iterator[tuple[Spilled, list[tuple[int, int]]]]:
    """Each of what is put aside, with those of its slots that are asked for."""
    met: dict[int, list[tuple[int, int]]] = {}
    firsts = [one.first for one in before]
    for first, end in intersect(slots_of(before), asked):
        met.setdefault(bisect_right(firsts, first) - 1, []).append((first, end))
    return ((one, met.get(number, [])) for number, one in enumerate(before))


def slots_of(holds: Sequence[Hold | Spilled]) -> list[tuple[int, int]]:
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
