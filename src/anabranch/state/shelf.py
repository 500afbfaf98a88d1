"""A shelf: the live segments of one subquery, and what can be told of them without looking at each.

A shelf never changes; an epoch makes the next one by a `ShelfChange`, at the cost of the change and of a copy
of what is told of all (6 ms with 10,000 segments).
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import numpy as np

from anabranch.routing.ranges import subtract
from anabranch.routing.sorting import distinct
from anabranch.state.segment import SegmentRef, along, slots_in

_NUMBERS = itertools.count()
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
            coming = [left for ref in coming for left in _outlived(ref, passed, spared)]
            numbers, dues, _ = self._times.T
            for number in numbers[dues <= passed].tolist():
                ref = self._refs[number]
                kept = _outlived(ref, passed, spared)
                if (ref.file, ref.batch) not in masks and kept != [ref]:
                    gone.append((ref.file, ref.batch))
                    coming += kept
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
        for ref in map(self._refs.pop, leaving):
            self._count(ref, -1)
            if not self.files[ref.file]:
                del self.files[ref.file]
        if leaving:
            # What was added and is taken away again leaves a trace in the last bits
            self.bytes_by_slot = np.maximum(self.bytes_by_slot, 0.0)
            self._spans = self._spans[~np.isin(self._spans[:, 0], leaving)]
            self._times = self._times[~np.isin(self._times[:, 0], leaving)]

    def _put(self, added: Sequence[SegmentRef]) -> None:
        if not added:
            return
        missing = max(ref.live[-1][1] for ref in added) - len(self.bytes_by_slot)
        self.bytes_by_slot = np.append(self.bytes_by_slot, np.zeros(max(0, missing)))
        numbered = list(enumerate(added, self._next))
        for number, ref in numbered:
            self._refs[number] = ref
            self._numbers[ref.file, ref.batch] = number
            self._count(ref, 1)
        self._next += len(numbered)
        spans = [(number, first, end) for number, ref in numbered for first, end in ref.live]
        self._spans = np.concatenate([self._spans, np.asarray(spans, dtype=np.int64)])
        times = [(number, ref.max_due, ref.born[0]) for number, ref in numbered]
        self._times = np.concatenate([self._times, np.asarray(times, dtype=np.int64)])

    def _count(self, ref: SegmentRef, sign: int) -> None:
        self.bytes_by_slot[slots_in(ref.live)] += sign * _by_slot(ref)
        self.rows_by_table[ref.table] = self.rows_by_table.get(ref.table, 0) + sign * ref.rows
        self.bytes += sign * ref.bytes
        self.packed_bytes += sign * ref.bytes * ref.packed
        self.files[ref.file] = self.files.get(ref.file, 0) + sign

    def __contains__(self, file: str) -> bool:
        """Whether a segment of this file is live."""
        return file in self.files


def _outlived(ref: SegmentRef, passed: int, spared: Sequence[tuple[int, int]]) -> list[SegmentRef]:
    """What a watermark leaves of a segment: all of it, nothing, or its rows in slots that are spared."""
    if ref.max_due > passed:
        return [ref]
    gone = subtract(ref.live, spared)
    left = without(ref, gone) if gone else ref
    return [] if left is None else [left]


def without(ref: SegmentRef, slots: Sequence[tuple[int, int]]) -> SegmentRef | None:
    """A segment without some of its slots; None if it has no others."""
    live = subtract(ref.live, slots)
    if not live:
        return None
    per_slot = np.zeros(ref.live[-1][1])
    per_slot[slots_in(ref.live)] = np.repeat(*_rows_and_widths(ref))
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


def _rows_and_widths(ref: SegmentRef) -> tuple[np.ndarray, np.ndarray]:
    """The rows of a slot, and the number of slots, in each step along a segment's slots."""
    slots = sum(end - first for first, end in ref.live)
    count = len(ref.along)
    widths = np.diff(np.arange(count + 1) * slots // count)
    return np.asarray(ref.along) / widths, widths


def _by_slot(ref: SegmentRef) -> np.ndarray:
    """The bytes of each live slot of a segment."""
    found: np.ndarray = np.repeat(*_rows_and_widths(ref))
    return found * (ref.bytes / max(1, ref.rows))
