"""The partition groups a site holds: what an operator sees of its state during one epoch.

Reads go to the segments the manifest of the last epoch names, cut to the partitions of this site.
Writes are collected and become new segments at the end. Nothing that exists is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from anabranch.routing.ranges import intersect, ranges_of, subtract
from anabranch.routing.reach import within
from anabranch.routing.shaped import Track
from anabranch.state.place import Place
from anabranch.state.segment import (
    DUE,
    LOCATOR,
    Part,
    Ranges,
    SegmentRef,
    found_in_slots,
    open_segment,
    probe_slots,
    read_slots,
    slots_in,
    write_segments,
)
from anabranch.state.shelf import Key, Shelf
from anabranch.state.stretch import Stretches

PIECE_BYTES, LEAST_PIECE = 32 * 1024 * 1024, 256 * 1024
"""How much state is looked at at once where all of it is: by default, and with very little memory."""
OVERSIZED = 2
"""How many times as much as a piece should have makes a slot too large for one."""
MAX_CLASSES = 8
"""Segments written per table and epoch at most: one per class of due times."""


def piece_size(limit: float) -> int:
    """How much state a site looks at at once that may keep so many bytes."""
    return int(min(PIECE_BYTES, max(LEAST_PIECE, limit / 4)))


@dataclass(frozen=True)
class Masked:
    """Slots of a segment that a merged one replaces."""

    file: str
    batch: int
    slots: tuple[tuple[int, int], ...]


@dataclass
class SiteState:
    """The state of one subquery on one site."""

    place: Place
    refs: Sequence[SegmentRef]
    owned: Ranges
    epoch: int = 0
    piece_bytes: int = PIECE_BYTES
    """How much of it is looked at at once where all of it is."""
    newest: Sequence[tuple[int, tuple[int, int]]] = ()
    """Of these slots only what has come after an epoch takes part."""
    shape: str = ""
    """The shape in which a join of several inputs works on these slots; empty for the flat one."""
    track: Track | None = None
    """The second shape of these slots, if they are on a parallel track."""
    new: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    older: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    """New combinations, on a track, in which a row from before its cut takes part."""
    expired: list[Masked] = field(default_factory=list)
    groups: int = 0
    """Groups that had rows in this epoch, as the operator counted them."""
    opened: dict[tuple[str, int, bool], pl.DataFrame] = field(default_factory=dict)
    """Segments that were looked into: where something was looked up, and where slots were read."""
    unpacks: bool = False
    """Whether those that are packed are kept, too, once they are unpacked: it is little that is looked at."""
    oversized: bool = False
    """Whether this is one slot that has much more than a piece should have."""
    compared: int = 0
    """Pairs of rows that a join looked at."""
    warnings: list[str] = field(default_factory=list)
    """What the operator has to say about its input."""
    since: dict[str, int] = field(default_factory=dict)
    """The first epoch in which rows came that are among the new ones of a table, if not this one."""
    cells: Ranges = field(default_factory=list)
    """Slots that are perhaps not of this site, into which it has written rows of its own."""
    elsewhere: Ranges | None = None
    """The slots that all rows are written for, if slots mean something else from the next epoch on."""
    copies: Mapping[int, Ranges] = field(default_factory=dict)
    """Cells in which rows of an input are only met, and have no results of their own."""
    _wanted: dict[Key, Ranges] = field(default_factory=dict, init=False)

    def wanted(self, ref: SegmentRef) -> Ranges:
        """The slots of a segment that take part."""
        known = self._wanted.get((ref.file, ref.batch))
        if known is None:
            known = intersect(ref.live, self.owned)
            aside = [slots for epoch, slots in self.newest if ref.born[1] <= epoch]
            known = subtract(known, aside) if aside else known
            self._wanted[ref.file, ref.batch] = known
        return known

    def mine(self, table: str) -> list[tuple[SegmentRef, Ranges]]:
        """The segments of a table, and the slots of each that take part."""
        pairs = ((ref, self.wanted(ref)) for ref in self.refs if ref.table == table)
        return [(ref, wanted) for ref, wanted in pairs if wanted]

    def _open(self, ref: SegmentRef, wanted: Ranges | None = None) -> pl.DataFrame:
        """A segment to look something up in, or to read the slots that are wanted."""
        key = ref.file, ref.batch, wanted is not None and not ref.packed
        found = self.opened.get(key)
        if found is None:
            found = open_segment(self.place, ref, wanted)
            if self.unpacks or not ref.packed:
                self.opened[key] = found
        return found

    def read(self, ref: SegmentRef, wanted: Ranges) -> list[pl.DataFrame]:
        """The rows of these slots of a segment, in a frame or several."""
        return read_slots(self._open(ref, wanted), wanted)

    def due(self, table: str, after: int | None, upto: int) -> list[pl.DataFrame]:
        """The rows whose due time lies in (after, upto]."""
        found: list[pl.DataFrame] = []
        if after is not None and after >= upto:
            return found
        for ref, wanted in self.mine(table):
            if ref.min_due > upto or (after is not None and ref.max_due <= after):
                continue
            whole = ref.max_due <= upto and (after is None or ref.min_due > after)
            for frame in self.read(ref, wanted):
                kept = frame if whole else frame.filter(_between(after, upto))
                if kept.height:
                    found.append(kept)
        return found

    def probe(
        self, table: str, asked: np.ndarray | Stretches, after: int | None
    ) -> list[pl.DataFrame]:
        """The rows with one of these sorted, distinct locators, or in these stretches, due later."""
        found = []
        for ref, wanted in self.mine(table):
            if after is not None and ref.max_due <= after:
                continue
            rows = probe_slots(self._open(ref), wanted, asked)
            if rows is not None and after is not None and ref.min_due <= after:
                rows = rows.filter(pl.col(DUE) > after)
            if rows is not None and rows.height:
                found.append(rows)
        return found

    def of_slot(self, table: str, slot: int) -> list[pl.DataFrame]:
        """The rows of one slot, a frame for each segment, as they lie there."""
        found = []
        for ref, wanted in self.mine(table):
            cut = intersect(wanted, [(slot, slot + 1)])
            found += self.read(ref, cut) if cut else []
        return found

    def frames(self, table: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """All rows, a frame or several for each segment, with the last epoch in which rows of it came."""
        for ref, wanted in self.mine(table):
            for frame in self.read(ref, wanted):
                yield ref.born[1], frame

    def part(self, owned: Ranges) -> SiteState:
        """The same state of these slots alone, with what comes new kept apart."""
        return SiteState(
            self.place,
            self.refs,
            owned,
            self.epoch,
            self.piece_bytes,
            self.newest,
            self.shape,
            self.track,
            opened=self.opened,
            copies=self.copies,
        )

    def in_pieces(self) -> Iterator[SiteState]:
        """The same state, few slots at a time: of about as many bytes as a piece has, or a single slot."""
        owned = slots_in(self.owned)
        by_slot = self._bytes_of(owned)
        begun = 0
        while begun < len(owned):
            sums = np.cumsum(by_slot[begun:])
            count = max(1, int(np.searchsorted(sums, self.piece_bytes, "right")))
            piece = ranges_of(owned[begun : begun + count])
            oversized = bool(by_slot[begun : begun + count].sum() > OVERSIZED * self.piece_bytes)
            # A slot that is too large is read block by block, and nothing of it kept
            yield replace(self.part(piece), oversized=oversized, opened={}, unpacks=not oversized)
            begun += count

    def _bytes_of(self, slots: np.ndarray) -> np.ndarray:
        """The bytes of each of these sorted slots: exactly, but for what is packed, in small parts."""
        found = np.zeros(len(slots))
        packed = Shelf(ref for ref in self.refs if ref.packed).bytes_by_slot
        known = slots < len(packed)
        found[known] = packed[slots[known]]
        begins = slots.astype(np.uint64) << np.uint64(48)
        lasts = begins | np.uint64((1 << 48) - 1)
        for ref in self.refs:
            if not ref.packed:
                mine = within(slots, self.wanted(ref))
                locators = self._open(ref)[LOCATOR].to_numpy()
                rows = np.searchsorted(locators, lasts[mine], "right")
                rows -= np.searchsorted(locators, begins[mine])
                found[mine] += rows * (ref.bytes / max(1, ref.rows))
        return found

    def blocks(self, table: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """The same, so many rows at a time that they are not much more than a piece."""
        for ref, wanted in self.mine(table):
            rows = max(1, self.piece_bytes * ref.rows // max(1, ref.bytes))
            for frame in self.read(ref, wanted):
                for block in frame.iter_slices(rows):
                    yield ref.born[1], block

    def contains(self, table: str, locators: np.ndarray) -> np.ndarray:
        """Whether there are rows with each of these sorted locators."""
        found = np.zeros(len(locators), dtype=bool)
        for ref, wanted in self.mine(table):
            found |= found_in_slots(self._open(ref), wanted, locators)
        return found

    def is_old(self, ref: SegmentRef) -> bool:
        """Whether a segment, on a track, has rows from before its cut in it."""
        return self.track is not None and self.track.is_old(ref.born)

    def append_older(self, table: str, rows: pl.DataFrame) -> None:
        """Adds combinations, sorted by locator, with a row from before the cut of the track."""
        if rows.height:
            self.older.setdefault(table, []).append(rows)

    def append(self, table: str, rows: pl.DataFrame) -> None:
        """Adds rows, sorted by locator, to the state of the next epoch."""
        if rows.height:
            self.new.setdefault(table, []).append(rows)

    def expire(self, table: str, upto: int) -> None:
        """Gives back segments whose rows were all due by then, where no watermark tells that."""
        for ref, wanted in self.mine(table):
            if ref.max_due <= upto:
                self.expired.append(Masked(ref.file, ref.batch, tuple(wanted)))

    def write(self, name: Callable[[str], str], span: int, fsync: bool) -> list[SegmentRef]:
        """Writes what was appended as segments, one per class of due times."""
        refs = []
        for table, frames in self.new.items():
            born = self.since.get(table, self.epoch), self.epoch
            refs += self._write(name(table), table, frames, born, span, fsync)
        for table, frames in self.older.items():
            assert self.track is not None
            born = self.track.cut, self.epoch
            refs += self._write(name(f"{table}-older"), table, frames, born, span, fsync)
        return refs

    def _write(
        self, file: str, table: str, frames: Sequence[pl.DataFrame], born: tuple[int, int], span: int,
        fsync: bool,
    ) -> list[SegmentRef]:  # fmt: skip
        live = self.elsewhere
        if live is None:
            live = sorted([*self.owned, *subtract(self.cells, self.owned)])
        parts = [Part(0, rows, live) for frame in frames for rows in _by_class(frame, span)]
        return write_segments(self.place, file, table, parts, born, fsync)


def _between(after: int | None, upto: int) -> pl.Expr:
    upper = pl.col(DUE) <= upto
    return upper if after is None else upper & (pl.col(DUE) > after)


def _by_class(rows: pl.DataFrame, span: int) -> list[pl.DataFrame]:
    """The rows cut by class of due time, each still sorted by locator."""
    due = rows[DUE].to_numpy()
    low, high = int(due.min()) // span, int(due.max()) // span
    if low == high:
        return [rows]
    # Where windows are very many, neighbouring ones share a segment
    windows, count = high - low + 1, min(MAX_CLASSES, high - low + 1)
    edges = [(low - (-number * windows // count)) * span for number in range(1, count)]
    classes = np.searchsorted(np.array(edges), due, side="right")
    present = np.flatnonzero(np.bincount(classes)).tolist()
    return [rows.filter(pl.Series(classes == number)) for number in present]
