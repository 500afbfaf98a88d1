"""The partition groups a site holds: what an operator sees of its state during one epoch.

Reads go to the segments the manifest of the last epoch names, cut to the partitions of this site.
Writes are collected and become new segments at the end. Nothing that exists is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from anabranch.routing.grid import Scattered
from anabranch.routing.ranges import intersect, ranges_where, subtract
from anabranch.routing.sorting import distinct
from anabranch.state.place import Place
from anabranch.state.scattering import scatter
from anabranch.state.segment import (
    DUE,
    Ranges,
    SegmentRef,
    Unpacked,
    found_in_segment,
    probe_segment,
    read_segment,
    slots_in,
    write_segments,
)
from anabranch.state.shelf import Shelf
from anabranch.state.stretch import Stretches
from anabranch.state.table import StateTable

PIECE_BYTES, LEAST_PIECE = 32 * 1024 * 1024, 256 * 1024
"""How much state is looked at at once where all of it is: by default, and with very little memory."""
OVERSIZED = 2
"""How many times as much as a piece should have makes a slot too large for one."""
MAX_CLASSES = 8
"""Segments written per table and epoch at most: one per class of due times."""


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
    new: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    expired: list[Masked] = field(default_factory=list)
    groups: int = 0
    """Groups that had rows in this epoch, as the operator counted them."""
    unpacked: Unpacked | None = None
    """Packed segments that were looked into, where that is done again and again."""
    oversized: bool = False
    """Whether this is one slot that has much more than a piece should have."""
    compared: int = 0
    """Pairs of rows that a join looked at."""
    warnings: list[str] = field(default_factory=list)
    """What the operator has to say about its input."""
    since: dict[str, int] = field(default_factory=dict)
    """The first epoch in which rows came that are among the new ones of a table, if not this one."""
    cells: Ranges = field(default_factory=list)
    """Slots that are not of this site, into which it has scattered rows of its own."""

    def wanted(self, ref: SegmentRef) -> Ranges:
        """The slots of a segment that take part."""
        aside = [slots for epoch, slots in self.newest if ref.born[1] <= epoch]
        return subtract(intersect(ref.live, self.owned), aside)

    def _mine(self, table: str) -> list[tuple[SegmentRef, Ranges]]:
        pairs = ((ref, self.wanted(ref)) for ref in self.refs if ref.table == table)
        return [(ref, wanted) for ref, wanted in pairs if wanted]

    def _read(self, ref: SegmentRef, wanted: Ranges) -> list[pl.DataFrame]:
        return read_segment(self.place, ref, wanted, self.unpacked)

    def due(self, table: str, after: int | None, upto: int) -> list[pl.DataFrame]:
        """The rows whose due time lies in (after, upto]."""
        found = []
        for ref, wanted in self._mine(table):
            if ref.min_due > upto or (after is not None and ref.max_due <= after):
                continue
            whole = ref.max_due <= upto and (after is None or ref.min_due > after)
            for frame in self._read(ref, wanted):
                kept = frame if whole else frame.filter(_between(after, upto))
                if kept.height:
                    found.append(kept)
        return found

    def probe(
        self, table: str, asked: np.ndarray | Stretches, after: int | None
    ) -> list[pl.DataFrame]:
        """The rows with one of these sorted, distinct locators, or in these stretches, due later."""
        found = []
        for ref, wanted in self._mine(table):
            if after is not None and ref.max_due <= after:
                continue
            rows = probe_segment(self.place, ref, wanted, asked, self.unpacked)
            if rows is not None and after is not None and ref.min_due <= after:
                rows = rows.filter(pl.col(DUE) > after)
            if rows is not None and rows.height:
                found.append(rows)
        return found

    def of_slot(self, table: str, slot: int) -> list[pl.DataFrame]:
        """The rows of one slot, a frame for each segment, as they lie there."""
        found = []
        for ref, wanted in self._mine(table):
            cut = intersect(wanted, [(slot, slot + 1)])
            found += self._read(ref, cut) if cut else []
        return found

    def frames(self, table: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """All rows, a frame or several for each segment, with the last epoch in which rows of it came."""
        for ref, wanted in self._mine(table):
            for frame in self._read(ref, wanted):
                yield ref.born[1], frame

    def in_pieces(self) -> Iterator[SiteState]:
        """The same state, few slots at a time: of about as many bytes as a piece has, or a single slot."""
        owned = slots_in(self.owned)
        known = Shelf(self.refs).bytes_by_slot
        by_slot = np.zeros(len(owned))
        by_slot[owned < len(known)] = known[owned[owned < len(known)]]
        begun = 0
        while begun < len(owned):
            sums = np.cumsum(by_slot[begun:])
            count = max(1, int(np.searchsorted(sums, self.piece_bytes, "right")))
            piece = owned[begun : begun + count]
            mine = np.zeros(int(piece[-1]) + 1, dtype=bool)
            mine[piece] = True
            oversized = bool(by_slot[begun : begun + count].sum() > OVERSIZED * self.piece_bytes)
            # A slot that is too large is read block by block, and nothing of it kept
            unpacked: Unpacked | None = None if oversized else {}
            yield replace(
                self, owned=ranges_where(mine), compared=0, oversized=oversized, unpacked=unpacked
            )
            begun += count

    def blocks(self, table: str) -> Iterator[tuple[int, pl.DataFrame]]:
        """The same, so many rows at a time that they are not much more than a piece."""
        for ref, wanted in self._mine(table):
            rows = max(1, self.piece_bytes * ref.rows // max(1, ref.bytes))
            for frame in self._read(ref, wanted):
                for block in frame.iter_slices(rows):
                    yield ref.born[1], block

    def contains(self, table: str, locators: np.ndarray) -> np.ndarray:
        """Whether there are rows with each of these sorted locators."""
        found = np.zeros(len(locators), dtype=bool)
        for ref, wanted in self._mine(table):
            found |= found_in_segment(self.place, ref, wanted, locators, self.unpacked)
        return found

    def append(self, table: str, rows: pl.DataFrame) -> None:
        """Adds rows, sorted by locator, to the state of the next epoch."""
        if rows.height:
            self.new.setdefault(table, []).append(rows)

    def expire(self, table: str, upto: int) -> None:
        """Gives back segments whose rows were all due by then, where no watermark tells that."""
        for ref, wanted in self._mine(table):
            if ref.max_due <= upto:
                self.expired.append(Masked(ref.file, ref.batch, tuple(wanted)))

    def write(self, name: Callable[[str], str], span: int, fsync: bool) -> list[SegmentRef]:
        """Writes what was appended as segments, one per class of due times."""
        refs = []
        for table, frames in self.new.items():
            parts = [(0, part) for frame in frames for part in _by_class(frame, span)]
            live = sorted([*self.owned, *subtract(self.cells, self.owned)])
            born = self.since.get(table, self.epoch), self.epoch
            refs += write_segments(self.place, name(table), table, parts, live, born, fsync)
        return refs

    def scatter(self, declared: StateTable, scattered: Scattered) -> None:
        """Takes the rows of a slot to its cells, as of the next epoch."""
        assert declared.input is not None
        table = declared.name
        slot = [(scattered.slot, scattered.slot + 1)]
        found = self.of_slot(table, scattered.slot)
        for ref, wanted in self._mine(table):
            if intersect(wanted, slot):
                self.expired.append(Masked(ref.file, ref.batch, tuple(slot)))
                self.since[table] = min(ref.born[0], self.since.get(table, self.epoch))
        fresh = self.new.pop(table, [])
        rows = [*found, *(frame.select(found[0].columns) if found else frame for frame in fresh)]
        if rows:
            spread = scatter(pl.concat(rows), scattered, declared.input, 0)
            self.append(table, declared.merge(spread))
        cells = (scattered.first, scattered.first + sum(scattered.bands))
        self.cells = sorted({*self.cells, cells})

    def compact(
        self, tables: Sequence[StateTable], after: int | None, span: int, fan: int, budget: int,
        name: Callable[[str], str], fsync: bool,
    ) -> tuple[list[SegmentRef], list[Masked]]:  # fmt: skip
        """Merges slices where `fan` segments of one tier overlap, at most `budget` rows per tier."""
        merges = {table.name: table.merge for table in tables}
        written: list[SegmentRef] = []
        masked: list[Masked] = []
        left: dict[int, int] = {}
        groups: dict[tuple[str, int, int], list[tuple[SegmentRef, Ranges]]] = {}
        for ref in self.refs:
            wanted = self.wanted(ref)
            if wanted and (after is None or ref.max_due > after):
                key = (ref.table, ref.max_due // span, ref.tier)
                groups.setdefault(key, []).append((ref, wanted))
        for (table, _, tier), members in groups.items():
            chosen, rewritten = _crowded(members, fan, left.get(tier, max(1, budget)))
            if not chosen:
                continue
            left[tier] = left.get(tier, max(1, budget)) - rewritten
            frames = []
            births: list[int] = []
            for ref, wanted in members:
                cut = intersect(wanted, chosen)
                if cut:
                    frames += self._read(ref, cut)
                    masked.append(Masked(ref.file, ref.batch, tuple(cut)))
                    births += ref.born
            names = frames[0].columns if frames else []
            rows = pl.concat([frame.select(names) for frame in frames]) if frames else None
            if rows is not None and after is not None:
                rows = rows.filter(pl.col(DUE) > after)
            if rows is not None and rows.height:
                merged = [(tier + 1, merges[table](rows))]
                file = name(f"{table}-merged-{len(written)}")
                born = min(births), max(births)
                # Only the chosen slots: what a segment claims decides what is merged next
                written += write_segments(self.place, file, table, merged, chosen, born, fsync)
        return written, masked


def _between(after: int | None, upto: int) -> pl.Expr:
    upper = pl.col(DUE) <= upto
    return upper if after is None else upper & (pl.col(DUE) > after)


def _by_class(rows: pl.DataFrame, span: int) -> list[pl.DataFrame]:
    """The rows cut by class of due time, each still sorted by locator."""
    due = rows[DUE].to_numpy()
    low, high = int(due.min()) // span, int(due.max()) // span
    if low == high:
        return [rows]
    classes = due // span
    if high - low >= MAX_CLASSES:
        # Very many open windows: neighbouring ones share a segment
        classes = (classes - low) * MAX_CLASSES // (high - low + 1)
    return [rows.filter(pl.Series(classes == number)) for number in distinct(classes).tolist()]


def _crowded(members: list[tuple[SegmentRef, Ranges]], fan: int, budget: int) -> tuple[Ranges, int]:
    """The slots that at least `fan` segments cover, lowest first, up to about `budget` rows.

    Also how many rows these are. Of any budget that is left, at least one slot is taken.
    """
    if len(members) < fan or budget <= 0:
        return [], 0
    end = max(last for _, wanted in members for _, last in wanted)
    covers = np.zeros(end, dtype=np.int64)
    rows = np.zeros(end)
    for ref, wanted in members:
        density = ref.rows / max(1, sum(last - first for first, last in ref.live))
        for first, last in wanted:
            covers[first:last] += 1
            rows[first:last] += density
    chosen = covers >= fan
    if not chosen.any():
        return [], 0
    rows[~chosen] = 0
    chosen &= np.cumsum(rows) <= max(budget, rows[np.argmax(chosen)])
    return ranges_where(chosen), int(rows[chosen].sum())
