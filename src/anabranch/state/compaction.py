"""Merging segments: where many of one tier have the same slots, one of the next takes their place.

What is merged is chosen by slots, not by segments: only those slots are rewritten that have become crowded,
and only so many that an epoch does not wait for it. On a parallel track, what has old rows in it and what has
not are not merged with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from anabranch.routing.ranges import intersect, ranges_where
from anabranch.state.group import Masked, SiteState
from anabranch.state.segment import DUE, Part, Ranges, SegmentRef, write_segments
from anabranch.state.table import StateTable


def compact(
    state: SiteState, tables: Sequence[StateTable], after: int | None, span: int, fan: int, budget: int,
    name: Callable[[str], str], fsync: bool,
) -> tuple[list[SegmentRef], list[Masked]]:  # fmt: skip
    """Merges slices where `fan` segments of one tier overlap, at most `budget` rows per tier."""
    merges = {table.name: table.merge for table in tables}
    written: list[SegmentRef] = []
    masked: list[Masked] = []
    left: dict[int, int] = {}
    groups: dict[tuple[str, int, int, bool], list[tuple[SegmentRef, Ranges]]] = {}
    for ref in state.refs:
        wanted = state.wanted(ref)
        if wanted and (after is None or ref.max_due > after):
            key = (ref.table, ref.max_due // span, ref.tier, state.is_old(ref))
            groups.setdefault(key, []).append((ref, wanted))
    for (table, _, tier, _), members in groups.items():
        chosen, rewritten = _crowded(members, fan, left.get(tier, max(1, budget)))
        if not chosen:
            continue
        left[tier] = left.get(tier, max(1, budget)) - rewritten
        frames = []
        births: list[int] = []
        for ref, wanted in members:
            cut = intersect(wanted, chosen)
            if cut:
                frames += state.read(ref, cut)
                masked.append(Masked(ref.file, ref.batch, tuple(cut)))
                births += ref.born
        names = frames[0].columns if frames else []
        rows = pl.concat([frame.select(names) for frame in frames]) if frames else None
        if rows is not None and after is not None:
            rows = rows.filter(pl.col(DUE) > after)
        if rows is not None and rows.height:
            # Only the chosen slots: what a segment claims decides what is merged next
            merged = [Part(tier + 1, merges[table](rows), chosen)]
            file = name(f"{table}-merged-{len(written)}")
            born = min(births), max(births)
            written += write_segments(state.place, file, table, merged, born, fsync)
    return written, masked


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
