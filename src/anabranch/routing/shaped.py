"""Which shape a join has on which slots: ranges of them, in order; slots in none have the flat one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from anabranch.routing.ranges import intersect, subtract, union

Slots = Sequence[tuple[int, int]]


class Shaped(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of slots [first, end) and the shape that a join has there, as text."""

    first: int
    end: int
    shape: str


class Track(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A range of slots [first, end) that works in a second shape as well, with rows from after a cut."""

    first: int
    end: int
    shape: str
    """The second one, to which it comes; the flat one is empty."""
    cut: int
    """The last epoch whose rows are old: they are left to the first shape."""

    def is_old(self, born: tuple[int, int]) -> bool:
        """Whether rows, or combinations of rows, of these first and last epochs have an old one in them."""
        return born[0] <= self.cut


class OnTrack(NamedTuple):
    """Partitions that come to a shape on a parallel track."""

    shape: str
    since: int
    """The first epoch in which both shapes work."""
    partitions: int


Shapes = tuple[Shaped, ...]
Tracks = tuple[Track, ...]
FLAT = ""
"""The shape of slots for which there is no other: it keeps no intermediates."""


def reshaped(before: Sequence[Shaped], slots: Slots, shape: str) -> Shapes:
    """The shapes when these slots get another one; neighbours alike are one range.

    >>> reshaped([Shaped(0, 8, "((0,1),2)")], [(2, 4)], FLAT)
    (Shaped(first=0, end=2, shape='((0,1),2)'), Shaped(first=4, end=8, shape='((0,1),2)'))
    """
    known = by_shape(before, [])
    kept = {other: subtract(ranges, slots) for other, ranges in known.items()}
    if shape != FLAT:
        kept[shape] = union(kept.get(shape, []), slots)
    found = [Shaped(*pair, other) for other, ranges in kept.items() for pair in union(ranges, [])]
    return tuple(sorted(found, key=lambda one: one.first))


def by_shape(shapes: Sequence[Shaped], slots: Slots) -> dict[str, list[tuple[int, int]]]:
    """The ranges of each shape; those of the given slots that have none are flat.

    >>> by_shape([Shaped(2, 4, "((0,1),2)")], [(0, 8)])
    {'((0,1),2)': [(2, 4)], '': [(0, 2), (4, 8)]}
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for one in shapes:
        found.setdefault(one.shape, []).append((one.first, one.end))
    rest = subtract(slots, [(one.first, one.end) for one in shapes])
    return {**found, FLAT: rest} if rest else found


def differing(
    now: Sequence[Shaped], wanted: Sequence[Shaped], slots: int
) -> dict[str, list[tuple[int, int]]]:
    """By wanted shape the slots that have another one now."""
    whole = [(0, slots)]
    current = by_shape(now, whole)
    found = {
        shape: subtract(intersect(ranges, whole), current.get(shape, []))
        for shape, ranges in by_shape(wanted, whole).items()
    }
    return {shape: ranges for shape, ranges in found.items() if ranges}


def shapes_in_use(shapes: Sequence[Shaped], starts: Sequence[int], slots: int) -> dict[str, int]:
    """How many partitions work in each shape, told by the shape of their first slot."""
    numbers = _numbers_at(shapes, starts)
    found = dict.fromkeys((*(one.shape for one in shapes), FLAT), 0)
    for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
        found[shapes[number].shape if number >= 0 else FLAT] += int(count)
    return {shape: count for shape, count in found.items() if count}


def _numbers_at(ranges: Sequence[Shaped | Track], slots: Sequence[int]) -> np.ndarray:
    """Which of these ranges, which are in order, each slot is in; -1 for none."""
    edges = np.asarray([(one.first, one.end) for one in ranges], dtype=np.int64).reshape(-1, 2)
    at = np.asarray(slots)
    numbers = np.searchsorted(edges[:, 0], at, "right") - 1
    # Before the first of them is behind the last one, too: nothing ends behind a slot there
    ends = np.append(edges[:, 1], 0)[numbers]
    return np.where(at < ends, numbers, -1)


def tracks_in_use(tracks: Sequence[Track], starts: Sequence[int]) -> list[OnTrack]:
    """How many partitions are on tracks to each shape, told by their first slot; the oldest first.

    >>> tracks_in_use([Track(0, 4, FLAT, 6), Track(4, 8, FLAT, 6)], [0, 2, 4, 9])
    [OnTrack(shape='', since=7, partitions=3)]
    """
    found = {(one.cut + 1, one.shape): 0 for one in tracks}
    numbers = _numbers_at(tracks, starts)
    for number, count in zip(*np.unique(numbers, return_counts=True), strict=True):
        if number >= 0:
            found[tracks[number].cut + 1, tracks[number].shape] += int(count)
    return [OnTrack(shape, since, count) for (since, shape), count in sorted(found.items())]
