"""An epoch as JSON: Spark's field names where Spark has them, ours under `customMetrics`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from anabranch.engine.laps import Laps
from anabranch.engine.orders import Orders
from anabranch.engine.report import EpochReport
from anabranch.engine.timeline import timeline
from anabranch.operators.base import END_OF_TIME
from anabranch.plan.plan import Plan, StreamPlan
from anabranch.plan.subquery import BY_LANE
from anabranch.sinks.base import Sink
from anabranch.sources.base import Offer
from anabranch.state.manifest import Manifest, StreamRecord, SubqueryRecord
from anabranch.state.table import StateTable


def describe_epoch(
    id: str, run_id: str, name: str, orders: Orders, manifest: Manifest, report: EpochReport,
    offers: Mapping[str, Offer], previous: float, laps: Laps, sinks: Mapping[str, Sink],
    adaptation: Mapping[str, Any], placement: Mapping[int, str],
) -> dict[str, Any]:  # fmt: skip
    """The progress report of one epoch, the one before which began at `previous`; plain values only."""
    steps, seconds = laps.seconds, max(laps.total, 1e-9)
    result_rows = report.result_rows()
    rows = sum(seen.rows for split in report.splits for seen in split.streams.values())
    return {
        "id": id,
        "runId": run_id,
        "name": name,
        "timestamp": _stamp(manifest.committed_at),
        "batchId": orders.epoch,
        "numInputRows": rows,
        "inputRowsPerSecond": rows / max(laps.began - previous, 1e-9)
        if previous
        else rows / seconds,
        "processedRowsPerSecond": rows / seconds,
        "durationMs": {
            "latestOffset": _ms(steps["poll"]),
            "addBatch": _ms(steps["orders"] + steps["tasks"]),
            "commitOffsets": _ms(steps["commit"]),
            "publish": _ms(steps["publish"] + steps["clear"] + steps["adapt"]),
            "triggerExecution": _ms(seconds),
        },
        "eventTime": _event_time(orders.plan.streams.values(), manifest),
        "stateOperators": _state(orders, manifest, report),
        "sources": [
            _source(plan, orders, manifest, report, offers) for plan in orders.plan.streams.values()
        ],
        "sinks": [
            {
                "query": query,
                "description": sink.describe(),
                "numOutputRows": result_rows.get(query, 0),
            }
            for query, sink in sinks.items()
        ],
        "customMetrics": {
            "sites": _sites(orders.plan, report, placement),
            "splitSeconds": [round(split.seconds, 4) for split in report.splits],
            "exchangeSeconds": round(sum(part.exchange_seconds for part in report.parts()), 4),
            "combining": sorted(orders.combine),
            "idleStreams": sorted(orders.idle.streams),
            "ended": orders.ended,
            "warnings": _warnings(report) + [f"Balance: {w}." for w in adaptation["warnings"]],
            "adaptation": adaptation,
            "timeline": timeline(laps, report),
        },
    }


def _warnings(report: EpochReport) -> list[str]:
    """What operators had to say, with the subquery it is about."""
    told = (
        f"Subquery '{name}': {warning}."
        for site in report.sites
        for name, done in site.subqueries.items()
        for warning in done.warnings
    )
    return list(dict.fromkeys(told))


def _source(
    plan: StreamPlan, orders: Orders, manifest: Manifest, report: EpochReport,
    offers: Mapping[str, Offer],
) -> dict[str, Any]:  # fmt: skip
    name, record = plan.name, manifest.streams[plan.name]
    seen = [split.streams[name] for split in report.splits if name in split.streams]
    return {
        "description": name,
        "numInputRows": sum(part.rows for part in seen),
        "backlog": offers[name].backlog if name in offers else 0,
        "eventTime": _event_time([plan], manifest),
        "customMetrics": {
            "rowsTotal": record.rows,
            "lateRows": sum(part.late for part in seen),
            "lateRowsTotal": record.late,
            "badRows": sum(part.bad_rows for part in seen),
            "badRowsTotal": record.bad_rows,
            "badFiles": len({file for part in seen for file in part.bad_files}),
            "badFilesTotal": record.bad_files,
            "bad": [reason for part in seen for reason in part.bad][:10],
            **(offers[name].counts if name in offers else {}),
            **({"lanes": _lanes(plan, orders, record)} if record.lane_times else {}),
        },
    }


def _lanes(plan: StreamPlan, orders: Orders, record: StreamRecord) -> dict[str, Any]:
    """How far each lane of a stream has come, and for which nobody waits."""
    stamps, zoned = plan.ordered.timestamps, _has_zone(plan)
    return {
        lane: {
            "max": _time(time.newest, stamps, zoned),
            "idle": (plan.name, lane) in orders.idle.lanes,
        }
        for lane, time in sorted(record.lane_times.items())
    }


def _state(orders: Orders, manifest: Manifest, report: EpochReport) -> list[dict[str, Any]]:
    operators = []
    for name, record in manifest.subqueries.items():
        done = [site.subqueries[name] for site in report.sites if name in site.subqueries]
        exchange = manifest.exchanges[record.exchange]
        operators.append(
            {
                "operatorName": name,
                "numRowsTotal": record.shelf.rows,
                "numRowsUpdated": sum(part.groups for part in done),
                "memoryUsedBytes": record.shelf.bytes,
                "numRowsDroppedByWatermark": sum(
                    seen.late
                    for split in report.splits
                    for stream, seen in split.streams.items()
                    if stream in orders.plan.subqueries[name].node.streams
                ),
                "customMetrics": {
                    "segments": len(record.shelf),
                    "spilledBytes": record.shelf.packed_bytes
                    if record.exchange in manifest.spilled
                    else 0,
                    "partitions": len(exchange.sites),
                    "grid": exchange.grid,
                    "rowsIn": sum(part.rows_in for part in done),
                    "rowsOut": sum(part.rows_out for part in done),
                    "openRows": _open_rows(orders.plan.subqueries[name].operator.tables, record),
                    "pairsCompared": sum(part.compared for part in done),
                    "rowsReceived": sum(part.rows_received for part in done),
                    "bytesReceived": sum(part.bytes_received for part in done),
                    "bytesOut": sum(part.bytes_out for part in done),
                    "busySeconds": round(sum(part.seconds for part in done), 4),
                    "skew": skew([part.rows_in for part in done]),
                    "sites": len({*exchange.sites}),
                    "watermark": record.watermark,
                },
            }
        )
    return operators


def _open_rows(tables: Iterable[StateTable], record: SubqueryRecord) -> int:
    """The rows of state that may have results of their own in the end, without new rows."""
    return sum(record.shelf.rows_by_table.get(table.name, 0) for table in tables if table.open)


def skew(loads: Sequence[int]) -> float:
    """How much more than its share the busiest of several has; 1 if there was nothing to do."""
    total = sum(loads)
    return round(max(loads) * len(loads) / total, 3) if total else 1.0


def _sites(plan: Plan, report: EpochReport, placement: Mapping[int, str]) -> list[dict[str, Any]]:
    """What each site did, over all levels; rows that stay in their lanes are not received."""
    sites: dict[int, dict[str, Any]] = {}
    for part in report.sites:
        entry = sites.setdefault(
            part.site,
            {
                "site": part.site, "rowsIn": 0, "rowsOut": 0, "rowsReceived": 0, "bytesReceived": 0,
                "pairsCompared": 0, "busySeconds": 0.0, "executor": "",
            },
        )  # fmt: skip
        for name, done in part.subqueries.items():
            if plan.subqueries[name].spread != BY_LANE:
                entry["rowsReceived"] += done.rows_received
                entry["bytesReceived"] += done.bytes_received
        entry["rowsIn"] += sum(done.rows_in for done in part.subqueries.values())
        entry["rowsOut"] += sum(done.rows_out for done in part.subqueries.values())
        entry["pairsCompared"] += sum(done.compared for done in part.subqueries.values())
        entry["busySeconds"] = round(entry["busySeconds"] + part.seconds, 4)
        entry["executor"] = part.executor
        entry["askedExecutor"] = placement.get(part.site, "").rsplit("_", 1)[-1]
        entry["worker"] = part.worker
    return [sites[number] for number in sorted(sites)]


def _event_time(streams: Iterable[StreamPlan], manifest: Manifest) -> dict[str, Any]:
    """The newest time of these streams and the watermark that all of them have reached."""
    plans = list(streams)
    stamps = plans[0].ordered.timestamps
    zoned = any(_has_zone(plan) for plan in plans)
    newest = [manifest.streams[plan.name].newest for plan in plans]
    reached = [manifest.watermarks[plan.component] for plan in plans]
    known = [time for time in newest if time is not None]
    held = any(time is None for time in reached)
    if any(plan.ordered.timestamps != stamps for plan in plans):
        return {}  # integers and timestamps have no common maximum; each source tells its own
    return {
        "max": _time(max(known, default=None), stamps, zoned),
        "watermark": None
        if held
        else _time(min(time for time in reached if time is not None), stamps, zoned),
    }


def _has_zone(plan: StreamPlan) -> bool:
    kind = plan.schema[plan.ordered.column]
    return isinstance(kind, pl.Datetime) and kind.time_zone is not None


def _time(value: int | None, timestamps: bool, zoned: bool) -> Any:
    if value is None or value >= END_OF_TIME:
        return None if value is None else "end"
    return _stamp(value / 1e6, zoned) if timestamps else value


def _stamp(seconds: float, zoned: bool = True) -> str:
    """A moment in UTC; times of a column without a zone are written without one."""
    try:
        moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
        shown = moment if zoned else moment.replace(tzinfo=None)
        return shown.isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.3f} seconds since 1970"  # outside the years 1 to 9999


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
