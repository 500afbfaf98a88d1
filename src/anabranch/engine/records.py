"""The records of the next manifest: what an epoch has made of those of the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from anabranch.adapt.protocols.replanning import NO_TURN
from anabranch.control.holdings import Steered
from anabranch.engine.lanes import seen_in_lanes
from anabranch.engine.orders import Orders
from anabranch.engine.progress import skew
from anabranch.engine.report import EpochReport
from anabranch.engine.watermarks import lane_times, newest_times
from anabranch.plan.keeping import identified
from anabranch.plan.subquery import Subquery
from anabranch.routing.lane_times import LaneTime
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.reach import Reach, slots_of
from anabranch.sources.base import Offer
from anabranch.state.manifest import ExchangeRecord, StreamRecord, SubqueryRecord
from anabranch.state.segment import NEVER
from anabranch.state.shelf import ShelfChange

RECENCY = 0.3
"""The weight of the newest epoch in what the manifest says an epoch takes."""


def stream_records(
    before: Mapping[str, StreamRecord], orders: Orders, report: EpochReport,
    offers: Mapping[str, Offer], now: float,
) -> dict[str, StreamRecord]:  # fmt: skip
    """What is remembered of each stream."""
    newest = newest_times(orders.newest, report.splits)
    lanes = lane_times(orders.lane_times, report.splits)
    records = {}
    for name, known in before.items():
        seen = [split.streams[name] for split in report.splits if name in split.streams]
        rows = sum(part.rows for part in seen)
        records[name] = StreamRecord(
            offset=offers[name].offset if name in offers else known.offset,
            newest=newest[name],
            rows=known.rows + rows,
            epochs=known.epochs + (rows > 0),
            bytes=known.bytes + sum(part.bytes for part in seen),
            late=known.late + sum(part.late for part in seen),
            bad_rows=known.bad_rows + sum(part.bad_rows for part in seen),
            bad_files=known.bad_files + len({f for part in seen for f in part.bad_files}),
            last_rows_at=now if rows else known.last_rows_at,
            lanes=dict(orders.lanes.get(name, known.lanes)),
            lane_values=seen_in_lanes(name, known.lane_values, report),
            lane_times={
                lane: LaneTime(newest=time, last_rows_at=now)
                if any(lane in part.lanes for part in seen)
                else known.lane_times.get(lane, LaneTime(newest=None))
                for lane, time in lanes.get(name, {}).items()
            },
        )
    return records


def exchange_record(
    name: str, before: ExchangeRecord, moved: bool, orders: Orders, steered: Steered
) -> ExchangeRecord:
    """The record of an exchange; the same object as before if nothing has changed.

    `moved` says whether its map may be another one than the last epoch's.
    """
    resettling = orders.resettling
    after = replace(
        before,
        scattered=[
            *(one for one in before.scattered if one not in resettling.gathering.get(name, ())),
            *resettling.scattering.get(name, ()),
        ],
        by_hand=name in steered.by_hand,
        adapted=name in steered.adapted,
        pins=steered.pins.get(name, {}),
    )
    new = resettling.grids.get(name)
    if new is not None:
        after = replace(after, **mapped(new.map), grid=list(new.grid.bands))
    elif moved:
        after = replace(after, **mapped(orders.maps[name]))
    return before if after == before else after


def shelf_change(
    before: SubqueryRecord, subquery: Subquery, orders: Orders, report: EpochReport,
    reach: Reach,
) -> ShelfChange:  # fmt: skip
    """What the epoch does to the state of a subquery."""
    done = report.of_subquery(subquery.name)
    return before.shelf.change(
        [ref for part in done for ref in part.segments],
        [masked for part in done for masked in part.masked],
        NEVER if orders.ended else subquery.watermark(reach.watermark),
        # Where rows wait, or results are owed, time has not passed
        sorted(slots_of([*reach.behind, *reach.owing])),
    )


def subquery_record(
    before: SubqueryRecord, subquery: Subquery, orders: Orders, report: EpochReport,
    reach: Reach, change: ShelfChange, steered: Steered,
) -> SubqueryRecord:  # fmt: skip
    """What a subquery remembers, and what it has done."""
    done = report.of_subquery(subquery.name)
    return SubqueryRecord(
        exchange=subquery.exchange,
        **identified(subquery),
        shelf=before.shelf.after(change),
        shapes=list(orders.turns.get(subquery.name, NO_TURN).shapes),
        tracks=list(orders.turns.get(subquery.name, NO_TURN).tracks),
        by_track=list(steered.by_track.get(subquery.name, ())),
        wanted_shapes=list(steered.shapes.get(subquery.name, ())),
        watermark=subquery.watermark(reach.watermark),
        combine=subquery.name in steered.combining,
        rows_in=before.rows_in + sum(part.rows_in for part in done),
        rows_out=before.rows_out + sum(part.rows_out for part in done),
        rows_received=before.rows_received + sum(part.rows_received for part in done),
        bytes_received=before.bytes_received + sum(part.bytes_received for part in done),
        bytes_out=before.bytes_out + sum(part.bytes_out for part in done),
        skew=_skew(before, subquery, orders, report),
        seconds=smoothed(before.seconds, sum(part.seconds for part in done)),
    )


def _skew(before: SubqueryRecord, subquery: Subquery, orders: Orders, report: EpochReport) -> float:
    # Sites that other exchanges have been given are not idle for want of balance
    owners = {*orders.maps[subquery.exchange].sites}
    loads = [
        site.subqueries[subquery.name].rows_in
        for site in report.sites
        if subquery.name in site.subqueries and site.site in owners
    ]
    return (
        smoothed(before.skew if before.rows_in else 0, skew(loads)) if any(loads) else before.skew
    )


def mapped(known: PartitionMap) -> dict[str, Any]:
    """A map as the manifest has it."""
    whole = known.slots == known.partitions
    starts = [] if whole else list(known.starts)
    return {
        "sites": list(known.sites), "starts": starts, "slots": known.slots, "cells": known.cells,
    }  # fmt: skip


def smoothed(before: float, now: float) -> float:
    """A mean in which each epoch counts less than the next."""
    return now if before == 0 else before + RECENCY * (now - before)
