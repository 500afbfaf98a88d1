"""A shelf: the live segments of one subquery, and what can be told of them without looking at each.

A shelf never changes; an epoch makes the next one by a `ShelfChange`, at the cost of the change and of a copy
of what is told of all (6 ms with 10,000 segments).
"""

from __future__ import annotations

import copy
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

import msgspec
import numpy as np

from anabranch.routing.ranges import expand, subtract
from anabranch.routing.sorting import distinct
from anabranch.state.segment import SegmentRef, along, slots_in

_NUMBERS = itertools.count()
AT_ONCE = 1 << 20
"""Slots of segments that are looked at at once."""
Key = tuple[str, int]
"""A segment, told by its file and the number of its batch in it."""


class ShelfChange(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What an epoch does to a shelf: first some segments go, then others come."""

    gone: list[Key]
    added: list[SegmentRef]
    """New ones, and those that have lost some of their slots."""

    def __bool__(self) -> bool:
        return bool(self.gone or self.added)


class Shelf:
    """The live segments of one subquery."""

    # No dataclass: manifests have it as the list of its segments
    def __init__(self, refs: Iterable[SegmentRef] = ()) -> None:
        self.number = next(_NUMBERS)
        """Another one for every shelf of this process."""
        self.made_of: int | None = None
        """The number of the shelf that it was made of, if it was, by this change."""
        self.made_by = ShelfChange([], [])
        self._refs: dict[int, SegmentRef] = {}
        """By a number that only grows."""
        self._numbers: dict[Key, int] = {}
        self._next = 0
        self._spans = np.empty((0, 3), dtype=np.int64)
        """For each range of live slots its segment's number, its first slot and its end."""
        self._times = np.empty((0, 3), dtype=np.int64)
        """For each segment its number, the latest due time and the first epoch in which rows of it came."""
        self.bytes_by_slot = np.zeros(0)
        """What the rows of each slot take; slots that are not there take nothing."""
        self.rows_by_table: dict[str, int] = {}
        self.bytes = 0
        self.packed_bytes = 0
        """Of segments that are put aside."""
        self.files: dict[str, int] = {}
        """The files there are segments of, with the number of these."""
        self._put(list(refs))

    def __len__(self) -> int:
        return len(self._refs)

    def __iter__(self) -> Iterator[SegmentRef]:
        return iter(self._refs.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shelf) and self._by_key() == other._by_key()

    __hash__ = None  # type: ignore[assignment]

    def _by_key(self) -> dict[Key, SegmentRef]:
        return {key: self._refs[number] for key, number in self._numbers.items()}

    @property
    def rows(self) -> int:
        return sum(self.rows_by_table.values())

    def within(self, slots: Sequence[tuple[int, int]]) -> list[SegmentRef]:
        """The segments with rows of these sorted ranges of slots, oldest first."""
        if not slots or not len(self._spans):
            return []
        numbers, first, end = self._spans.T
        edges = np.asarray(slots)
        # The first range that ends behind a span's beginning is the only one that may begin before its end
        nearest = np.searchsorted(edges[:, 1], first, "right")
        candidate = np.minimum(nearest, len(edges) - 1)
        met = (nearest < len(edges)) & (edges[candidate, 0] < end)
        return [self._refs[number] for number in distinct(numbers[met]).tolist()]

    def born_until(self, epoch: int) -> list[SegmentRef]:
        """The segments with rows that came in this epoch or before, oldest first."""
        numbers, _, births = self._times.T
        return [self._refs[number] for number in numbers[births <= epoch].tolist()]

    def change(
        self, added: Iterable[SegmentRef], masked: Iterable[tuple[str, int, Sequence[tuple[int, int]]]],
        passed: int | None, spared: Sequence[tuple[int, int]] = (),
    ) -> ShelfChange:  # fmt: skip
        """What becomes of it when some slots of segments are replaced and a watermark has passed.

        That takes nothing away in the slots that are spared.
        """
        masks: dict[Key, list[tuple[int, int]]] = {}
        for file, batch, slots in masked:
            masks.setdefault((file, batch), []).extend(slots)
        fresh: dict[Key, SegmentRef] = {(ref.file, ref.batch): ref for ref in added}
        gone, coming = [key for key in masks if key not in fresh], []
        for key, slots in masks.items():
            # What was written in this epoch may be replaced in it, too
            known = fresh.pop(key, None) or self._refs[self._numbers[key]]
            left = without(known, slots)
            coming += [] if left is None else [left]
        coming += fresh.values()
        if passed is not None:
            coming = [left for _, left in _outlived(coming, passed, spared) if left is not None]
            numbers, dues, _ = self._times.T
            past = [self._refs[number] for number in numbers[dues <= passed].tolist()]
            others = [ref for ref in past if (ref.file, ref.batch) not in masks]
            for ref, left in _outlived(others, passed, spared):
                if left is not ref:
                    gone.append((ref.file, ref.batch))
                    coming += [] if left is None else [left]
        return ShelfChange(gone, coming)

    def after(self, change: ShelfChange) -> Shelf:
        """The shelf of the next epoch."""
        if not change:
            return self
        shelf = copy.copy(self)
        shelf.number, shelf.made_of, shelf.made_by = next(_NUMBERS), self.number, change
        for name in ("_refs", "_numbers", "rows_by_table", "files", "bytes_by_slot"):
            setattr(shelf, name, getattr(self, name).copy())
        shelf._take_away(change.gone)
        shelf._put(change.added)
        return shelf

    def _take_away(self, gone: Sequence[Key]) -> None:
        leaving = [self._numbers.pop((file, batch)) for file, batch in gone]
        if leaving:
            self._count([self._refs.pop(number) for number in leaving], -1)
            # What was added and is taken away again leaves a trace in the last bits
            self.bytes_by_slot = np.maximum(self.bytes_by_slot, 0.0)
            self._spans = self._spans[~np.isin(self._spans[:, 0], leaving)]
            self._times = self._times[~np.isin(self._times[:, 0], leaving)]

    def _put(self, added: Sequence[SegmentRef]) -> None:
        if not added:
            return
        missing = max(ref.live[-1][1] for ref in added) - len(self.bytes_by_slot)
        self.bytes_by_slot = np.append(self.bytes_by_slot, np.zeros(max(0, missing)))
        numbers = np.arange(self._next, self._next + len(added))
        self._next += len(added)
        self._refs.update(zip(numbers.tolist(), added, strict=True))
        keys = ((ref.file, ref.batch) for ref in added)
        self._numbers.update(zip(keys, numbers.tolist(), strict=True))
        self._count(added, 1)
        counts, live = _ranges(added)
        spans = np.column_stack((np.repeat(numbers, counts), live))
        self._spans = np.concatenate([self._spans, spans])
        told = [(ref.max_due, ref.born[0]) for ref in added]
        times = np.column_stack((numbers, np.asarray(told, dtype=np.int64)))
        self._times = np.concatenate([self._times, times])

    def _count(self, refs: Sequence[SegmentRef], sign: int) -> None:
        """Takes in what segments add, or take away."""
        rows, files = self.rows_by_table, self.files
        for ref in refs:
            rows[ref.table] = rows.get(ref.table, 0) + sign * ref.rows
            self.bytes += sign * ref.bytes
            self.packed_bytes += sign * ref.bytes * ref.packed
            files[ref.file] = files.get(ref.file, 0) + sign
            if not files[ref.file]:
                del files[ref.file]
        for slots, size in _bytes_by_slot(refs):
            np.add.at(self.bytes_by_slot, slots, sign * size)

    def __contains__(self, file: str) -> bool:
        """Whether a segment of this file is live."""
        return file in self.files


def _outlived(
    refs: Sequence[SegmentRef], passed: int, spared: Sequence[tuple[int, int]]
) -> Iterator[tuple[SegmentRef, SegmentRef | None]]:
    """What a watermark leaves of each segment: itself, nothing, or its rows in slots that are spared."""
    slots, stay = _spared(refs, spared) if spared else (np.ones(len(refs)), np.zeros(len(refs)))
    for ref, count, kept in zip(refs, slots.tolist(), stay.tolist(), strict=True):
        if ref.max_due > passed or kept == count:
            yield ref, ref
        else:
            begin = bisect_right(spared, ref.live[0][0], key=lambda one: one[1])
            near = spared[begin : bisect_left(spared, ref.live[-1][1], key=lambda one: one[0])]
            yield ref, without(ref, subtract(ref.live, near)) if kept else None


def _spared(
    refs: Sequence[SegmentRef], spared: Sequence[tuple[int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """How many slots each segment has, and how many of them are among the spared ones, which are in order."""
    counts, live = _ranges(refs)
    segment = np.repeat(np.arange(len(refs)), counts)
    edges = np.asarray(spared)
    # Of the spared slots, those before a slot: all of the ranges before it, and of its own what lies before
    before = np.concatenate(([0], np.cumsum(edges[:, 1] - edges[:, 0])))
    begun = np.searchsorted(edges[:, 0], live, "right")
    inside = np.maximum(edges[np.maximum(begun - 1, 0), 1] - live, 0)
    passed = np.where(begun > 0, before[begun] - inside, 0)
    total = np.bincount(segment, live[:, 1] - live[:, 0], len(refs))
    return total, np.bincount(segment, passed[:, 1] - passed[:, 0], len(refs))


def without(ref: SegmentRef, slots: Sequence[tuple[int, int]]) -> SegmentRef | None:
    """A segment without some of its slots; None if it has no others."""
    live = [] if tuple(slots) == ref.live else subtract(ref.live, slots)
    if not live:
        return None
    per_slot = np.zeros(ref.live[-1][1])
    before = slots_in(ref.live)
    per_slot[before] = np.repeat(*_rows_and_widths([ref], np.asarray([len(before)])))
    kept = per_slot[slots_in(live)]
    steps = along(kept)
    rows = min(ref.rows, round(float(kept.sum())))
    size = int(ref.bytes * rows / max(1, ref.rows))
    return msgspec.structs.replace(ref, live=tuple(live), along=steps, rows=rows, bytes=size)


def bytes_of(shelves: Iterable[Shelf], starts: np.ndarray, slots: int) -> np.ndarray:
    """The bytes of each partition over several shelves, partitions told by their first slots."""
    by_slot = np.zeros(slots)
    for shelf in shelves:
        known = shelf.bytes_by_slot[:slots]
        by_slot[: len(known)] += known
    found: np.ndarray = np.add.reduceat(by_slot, starts)
    return found


def _ranges(refs: Sequence[SegmentRef]) -> tuple[np.ndarray, np.ndarray]:
    """How many ranges of slots each segment has, and all of them, one below another."""
    counts = np.fromiter((len(ref.live) for ref in refs), dtype=np.int64, count=len(refs))
    edges = chain.from_iterable(chain.from_iterable(ref.live for ref in refs))
    return counts, np.fromiter(edges, dtype=np.int64).reshape(-1, 2)


def _rows_and_widths(
    refs: Sequence[SegmentRef], slots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a slot, and the number of slots, in each step along each segment's so many slots."""
    counts = np.fromiter((len(ref.along) for ref in refs), dtype=np.int64, count=len(refs))
    rows = np.fromiter(chain.from_iterable(ref.along for ref in refs), dtype=np.int64)
    number = expand(np.zeros(len(refs), dtype=np.int64), counts)
    count, slots = np.repeat(counts, counts), np.repeat(slots, counts)
    widths = (number + 1) * slots // count - number * slots // count
    return rows / widths, widths


def _bytes_by_slot(refs: Sequence[SegmentRef]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The live slots of segments, one after another, and the bytes of each; of so many at a time."""
    counts, live = _ranges(refs)
    first, ranges = np.cumsum(counts) - counts, live[:, 1] - live[:, 0]
    slots = np.add.reduceat(ranges, first)
    groups = (np.cumsum(slots) - 1) // AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(groups)) + 1).tolist(), len(refs)]
    for begin, end in pairwise(edges):
        some = refs[begin:end]
        rows, widths = _rows_and_widths(some, slots[begin:end])
        steps = np.fromiter((len(ref.along) for ref in some), dtype=np.int64, count=len(some))
        row_bytes = np.asarray([ref.bytes / max(1, ref.rows) for ref in some])
        part = slice(first[begin], first[end] if end < len(refs) else None)
        size = np.repeat(rows, widths) * np.repeat(np.repeat(row_bytes, steps), widths)
        yield expand(live[part, 0], ranges[part]), size
