"""State on its way out of memory and back: compressed when it is put aside, plain when it is needed again.

It is written anew, few slots at a time, and merged on the way. Whatever happens in between, the old files
count until the manifest names the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl

from anabranch.routing.ranges import intersect
from anabranch.state.group import Masked, SiteState
from anabranch.state.segment import Ranges, SegmentRef, read_segment, write_segments
from anabranch.state.table import StateTable

Written = tuple[list[SegmentRef], list[Masked]]
"""New segments, and what they replace."""


def put_away(
    state: SiteState, tables: Sequence[StateTable], name: Callable[[str], str], fsync: bool
) -> Written:
    """All state that is not packed yet, compressed."""
    return _rewrite(state, tables, name, fsync, packed=True)


def bring_back(
    state: SiteState, tables: Sequence[StateTable], name: Callable[[str], str], fsync: bool
) -> Written:
    """All that is packed, of all generations together, plain again."""
    return _rewrite(state, tables, name, fsync, packed=False)


def _rewrite(
    state: SiteState, tables: Sequence[StateTable], name: Callable[[str], str], fsync: bool,
    packed: bool,
) -> Written:  # fmt: skip
    written: list[SegmentRef] = []
    masked: list[Masked] = []
    for piece in state.in_pieces():
        for table in tables:
            found = [
                (ref, slots)
                for ref in piece.refs
                if ref.table == table.name and ref.packed != packed
                if (slots := intersect(ref.live, piece.owned))
            ]
            masked += [Masked(ref.file, ref.batch, tuple(slots)) for ref, slots in found]
            # Segments of a slot that is too large stay apart: together they would be too much at once
            for some in [[one] for one in found] if piece.oversized else [found]:
                parts = _parts(piece, table, some)
                births = [epoch for ref, _ in some for epoch in ref.born]
                file = name(f"{table.name}-{'aside' if packed else 'back'}-{len(written)}")
                if parts:
                    written += write_segments(
                        state.place, file, table.name, parts, piece.owned,
                        (min(births), max(births)), fsync, packed,
                    )  # fmt: skip
    return written, masked


def _parts(
    piece: SiteState, table: StateTable, found: Sequence[tuple[SegmentRef, Ranges]]
) -> list[tuple[int, pl.DataFrame]]:
    """The rows of these segments with their tiers: merged, or block by block where that would be too much."""
    tier = max((ref.tier for ref, _ in found), default=0)
    if piece.oversized:
        some = replace(piece, refs=[ref for ref, _ in found])
        return [(tier, block) for _, block in some.blocks(table.name)]
    frames = [frame for ref, slots in found for frame in read_segment(piece.place, ref, slots)]
    if not frames:
        return []
    rows = pl.concat([frame.select(frames[0].columns) for frame in frames])
    return [(tier, table.merge(rows))]
