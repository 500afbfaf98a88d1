"""State on its way out of memory and back: compressed when it is put aside, plain when it is needed again.

It is written anew, few slots at a time, and merged on the way. Whatever happens in between, the old files
count until the manifest names the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl

from anabranch.routing.ranges import intersect, ranges_of
from anabranch.routing.sorting import distinct
from anabranch.state.group import Masked, SiteState
from anabranch.state.segment import (
    DUE,
    LOCATOR,
    Part,
    Ranges,
    SegmentRef,
    slots_in,
    write_segments,
)
from anabranch.state.table import StateTable

PART_BYTES = 2 * 1024 * 1024
"""What is packed is unpacked whole, so it goes in small parts: who wants few slots unpacks little else."""

Written = tuple[list[SegmentRef], list[Masked]]
"""New segments, and what they replace."""


def put_away(
    state: SiteState, tables: Sequence[StateTable], name: Callable[[str], str], fsync: bool,
    passed: int | None,
) -> Written:  # fmt: skip
    """All state that is not packed yet, compressed.

    Rows due by the watermark that has passed are left out: they have done their work, and must not be merged
    with others.
    """
    written: list[SegmentRef] = []
    masked: list[Masked] = []
    for number, piece in enumerate(state.in_pieces()):
        marked = _marked(name, f"aside-{number}")
        more = _rewrite(piece, tables, marked, fsync, packed=True, after=passed)
        written += more[0]
        masked += more[1]
    return written, masked


def bring_back(
    piece: SiteState, tables: Sequence[StateTable], name: Callable[[str], str], fsync: bool,
    after: int | None,
) -> Written:  # fmt: skip
    """What is packed of a piece, of all generations together, plain again; rows due by then are left out."""
    return _rewrite(piece, tables, _marked(name, "back"), fsync, packed=False, after=after)


def _marked(name: Callable[[str], str], mark: str) -> Callable[[str], str]:
    return lambda table: name(f"{table}-{mark}")


def _rewrite(
    piece: SiteState, tables: Sequence[StateTable], name: Callable[[str], str], fsync: bool,
    packed: bool, after: int | None,
) -> Written:  # fmt: skip
    written: list[SegmentRef] = []
    masked: list[Masked] = []
    for table in tables:
        found = [
            (ref, slots)
            for ref in piece.refs
            if ref.table == table.name and ref.packed != packed
            if (slots := intersect(ref.live, piece.owned))
        ]
        masked += [Masked(ref.file, ref.batch, tuple(slots)) for ref, slots in found]
        # Segments of a slot that is too large stay apart: together they would be too much at once
        for number, some in enumerate([[one] for one in found] if piece.oversized else [found]):
            parts = _parts(piece, table, some, packed, after)
            births = [epoch for ref, _ in some for epoch in ref.born]
            if parts:
                file, born = name(f"{table.name}-{number}"), (min(births), max(births))
                written += write_segments(piece.place, file, table.name, parts, born, fsync, packed)
    return written, masked


def _parts(
    piece: SiteState, table: StateTable, found: Sequence[tuple[SegmentRef, Ranges]], packed: bool,
    after: int | None,
) -> list[Part]:  # fmt: skip
    """The rows of these segments: merged, or block by block where that would be too much."""
    tier = max((ref.tier for ref, _ in found), default=0)
    if piece.oversized:
        some = replace(piece, refs=[ref for ref, _ in found])
        blocks = (_lasting(block, after) for _, block in some.blocks(table.name))
        return [Part(tier, block, piece.owned) for block in blocks if block.height]
    frames = [_lasting(frame, after) for ref, slots in found for frame in piece.read(ref, slots)]
    if not any(frame.height for frame in frames):
        return []
    merged = table.merge(pl.concat([frame.select(frames[0].columns) for frame in frames]))
    count = int(merged.estimated_size()) // PART_BYTES if packed else 0
    return [Part(tier, rows, slots) for rows, slots in _cut(merged, piece.owned, count)]


def _lasting(rows: pl.DataFrame, after: int | None) -> pl.DataFrame:
    return rows if after is None else rows.filter(pl.col(DUE) > after)


def _cut(rows: pl.DataFrame, owned: Ranges, count: int) -> Iterator[tuple[pl.DataFrame, Ranges]]:
    """Sorted rows in about so many parts, each of whole slots, with these slots."""
    slots = slots_in(owned)
    firsts = np.searchsorted(rows[LOCATOR].to_numpy(), slots.astype(np.uint64) << np.uint64(48))
    borders = np.searchsorted(firsts, np.arange(1, count) * rows.height // max(1, count))
    for begin, end in pairwise([0, *distinct(borders[borders > 0]).tolist(), len(slots)]):
        stop = firsts[end] if end < len(slots) else rows.height
        if begin < end and firsts[begin] < stop:
            yield rows[int(firsts[begin]) : int(stop)], ranges_of(slots[begin:end])
