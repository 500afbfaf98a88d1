"""The split task: reads its pieces, runs the stateless steps, and packs a parcel for every site."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import polars as pl

from anabranch.engine.computing import computing
from anabranch.engine.lanes import LANE_VALUES
from anabranch.engine.laps import Laps
from anabranch.engine.latecomers import route_late
from anabranch.engine.orders import Orders
from anabranch.engine.outbox import Outbox
from anabranch.engine.report import Fault, SplitReport, StreamReport, Word
from anabranch.engine.results import write_results
from anabranch.engine.watermarks import earliest_on_time
from anabranch.errors import AnabranchError, SourceError
from anabranch.language.expression import Named
from anabranch.language.window import LATEST
from anabranch.operators.base import time_of
from anabranch.operators.partials import SEQ
from anabranch.operators.stateless import compute
from anabranch.operators.told import TOLD, Told
from anabranch.plan.plan import StreamPlan
from anabranch.routing.frame import pack, packed
from anabranch.routing.hashing import hash_columns
from anabranch.routing.sorting import distinct
from anabranch.sinks.dead_letter import Letters
from anabranch.sources.base import Piece
from anabranch.state.folders import flushed_beside

MANY_ROWS = 100_000
"""Rows that are looked at for them where there are few different values."""


def run_split(orders: Orders, task: int, handover: str = "") -> Iterator[bytes]:
    """One parcel for each site, in the order of the sites; `handover`: a folder that all of them share."""
    TOLD.set(Told(orders.place, orders.tables, orders.now))
    laps = Laps()
    report = SplitReport(started=laps.started)
    outbox = Outbox(orders)
    try:
        with flushed_beside():
            if task == 0:
                # The parcels of the first task come first everywhere
                outbox.let_go(orders.held)
            _read(orders, task, report, outbox, laps)
            outbox.combine()
            laps.ended("combine")
        laps.ended("flush")
        report.combined, report.condensed = outbox.combined, outbox.condensed
        report.copied = outbox.copied
        report.held = outbox.held
    except AnabranchError as error:
        report.fault = Fault(type(error).__name__, str(error))
        outbox = Outbox(orders)
    sites = orders.sites if orders.plan.levels else 1
    boxes = outbox.by_site(sites)
    laps.ended("address")
    report.seconds, report.exchange_seconds = laps.total, laps.seconds["address"]
    bodies = [packed(box, handover) for box in boxes]
    laps.ended("pack")
    report.steps = laps.seconds
    # All sites need to know what was read; the first one passes the rest on to the driver
    brief = msgspec.structs.replace(report, held=[], condensed={}, copied={})
    words = [
        Word([brief if site else report], [], None, task, outbox.sent(site), report.fault)
        for site in range(sites)
    ]
    yield from map(pack, words, bodies)


def _read(orders: Orders, task: int, report: SplitReport, outbox: Outbox, laps: Laps) -> None:
    gathered: dict[tuple[str, int | None], list[pl.DataFrame]] = {}
    behind: dict[tuple[str, int | None], list[pl.DataFrame]] = {}
    for stream, piece in orders.pieces[task]:
        lanes = orders.lanes.get(stream)
        lane = lanes[piece.lane] if lanes and piece.lane is not None else None
        rows, late = _take(orders, task, stream, piece, report)
        for kept, box in ((rows, gathered), (late, behind)):
            if kept is not None and kept.height:
                box.setdefault((stream, lane), []).append(kept)
    laps.ended("read")
    for (stream, lane), frames in behind.items():
        _read_late(orders, task, stream, pl.concat(frames), lane, report, outbox)
        laps.ended("route")
    for (stream, lane), frames in gathered.items():
        rows = pl.concat(frames, rechunk=False)
        part = f"split-{task:04d}" if lane is None else f"split-{task:04d}-{lane}"
        if lane is not None:
            found = report.lane_values.setdefault(stream, {})
            found[lane] = lane_values(orders.plan.streams[stream], rows)
        with computing(f"The rows of stream '{stream}'"):
            outbox.route(stream, rows, lane)
            laps.ended("route")
            write_results(orders, stream, rows, part, report)
            laps.ended("results")


def _read_late(
    orders: Orders, task: int, stream: str, rows: pl.DataFrame, lane: int | None,
    report: SplitReport, outbox: Outbox,
) -> None:  # fmt: skip
    """Takes rows behind the watermark to those that still have a place for them; counts the others."""
    part = f"late-{task:04d}" if lane is None else f"late-{task:04d}-{lane}"
    with computing(f"The late rows of stream '{stream}'"):
        left_out = route_late(outbox, stream, rows, lane)
        write_results(orders, stream, rows, part, report)
    _leave_out(orders, stream, rows.filter(left_out), part, report.streams[stream])


def _leave_out(
    orders: Orders, stream: str, rows: pl.DataFrame, part: str, seen: StreamReport
) -> None:
    """Counts rows that are late, and keeps them aside if asked."""
    seen.late += rows.height
    if rows.height and orders.streams[stream].late == "dead-letter":
        _letters(orders, stream).keep_rows("late", rows, part)


def lane_values(plan: StreamPlan, rows: pl.DataFrame) -> list[int]:
    """The least hashes of the terms that decide a row's lane.

    Lanes that share values share the least of them, so these few are enough to notice.
    """
    named = [Named(f"term{n}", term) for n, term in enumerate(plan.lane_terms)]
    with computing(f"What stream '{plan.name}' comes partitioned by"):
        hashes = hash_columns(compute(rows, named).get_columns(), rows.height)
    small = hashes[hashes < np.uint64(1 << 58)]  # sorting all of them would take long
    if len(small) < LANE_VALUES:
        small = hashes[:MANY_ROWS]
    return [int(value) for value in distinct(small)[:LANE_VALUES]]


def _take(
    orders: Orders, task: int, stream: str, piece: Piece, report: SplitReport
) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """The rows of a piece that are neither bad nor late, and late ones that may count all the same."""
    plan, rules = orders.plan.streams[stream], orders.streams[stream]
    seen = report.streams.setdefault(stream, StreamReport())
    reading = piece.read(plan.columns, salvage=rules.bad == "dead-letter")
    for bad in reading.bad:
        if rules.bad == "stop":
            raise _refusal(bad.reason, piece)
        seen.bad.append(bad.reason)
        if bad.lines:
            seen.bad_rows += bad.rows
        else:
            seen.bad_files.append(piece.label)
        _letters(orders, stream).keep_bad(bad)
    rows = reading.rows
    if rows is None or rows.height == 0:
        return None, None
    if plan.numbered:
        number = np.arange(rows.height) + reading.first_row + (piece.ordinal << 32)
        rows = rows.with_columns(pl.Series(SEQ, number))
    rows = _timed(orders, plan, piece, rows, seen, reading.first_row)
    rows = _not_ahead(orders, plan, piece, rows, seen, reading.first_row)
    if rows.height == 0:
        return None, None
    times = time_of(rows, plan.ordered)
    seen.rows += rows.height
    seen.bytes += int(rows.estimated_size())
    newest = times.max()
    assert isinstance(newest, int)
    seen.newest = newest if seen.newest is None else max(seen.newest, newest)
    if piece.lane is not None:
        seen.lanes[piece.lane] = max(newest, seen.lanes.get(piece.lane, newest))
    earliest = earliest_on_time(orders, plan, piece.lane)
    oldest = times.min()
    assert isinstance(oldest, int)
    if earliest is None or oldest >= earliest:
        return rows, None
    late = times < earliest
    if plan.late_rows:
        return rows.filter(~late), rows.filter(late)
    part = f"{task:04d}-{piece.ordinal}-{reading.first_row}"
    _leave_out(orders, stream, rows.filter(late), part, seen)
    return rows.filter(~late), None


def _timed(
    orders: Orders, plan: StreamPlan, piece: Piece, rows: pl.DataFrame, seen: StreamReport,
    first_row: int,
) -> pl.DataFrame:  # fmt: skip
    """The rows that have a time; a row without one, or beyond all times, has no place in the stream."""
    column = plan.ordered.column
    kind = rows.schema[column]
    latest = LATEST // 1000 if isinstance(kind, pl.Datetime) and kind.time_unit == "ms" else LATEST
    times = rows[column].to_physical()
    least, most = times.min(), times.max()
    assert least is None or isinstance(least, int)
    assert most is None or isinstance(most, int)
    what, unplaced = "NULL", times.is_null()
    if least is not None and most is not None and (least < -latest or most > latest):
        shown = most if most > latest else least
        what = f"NULL or times beyond 3 * 2**60, as {shown},"
        # Polars does not compare unsigned numbers with negative constants
        unplaced |= ~times.is_between(-latest if least < 0 else 0, latest)
    if not unplaced.any():
        return rows
    why = f"have {what} in the ordered attribute '{column}', so they have no place in the stream"
    return _put_aside(orders, plan, piece, rows, unplaced, why, f"null-{first_row}", seen)


def _not_ahead(
    orders: Orders, plan: StreamPlan, piece: Piece, rows: pl.DataFrame, seen: StreamReport,
    first_row: int,
) -> pl.DataFrame:  # fmt: skip
    """The rows that are not further ahead of the clock than their stream allows."""
    latest = orders.streams[plan.name].latest
    if latest is None or rows.height == 0:
        return rows
    times = time_of(rows, plan.ordered)
    ahead = times > latest
    if not ahead.any():
        return rows
    shown = rows.filter(ahead)[plan.ordered.column].cast(pl.String)[0]
    why = (
        f"are further ahead of the clock than max_ahead allows, as {shown} is: they would make the rows of "
        "now late"
    )
    return _put_aside(orders, plan, piece, rows, ahead, why, f"ahead-{first_row}", seen)


def _put_aside(
    orders: Orders, plan: StreamPlan, piece: Piece, rows: pl.DataFrame, bad: pl.Series, why: str,
    part: str, seen: StreamReport,
) -> pl.DataFrame:  # fmt: skip
    """The rows without bad ones, which are counted and kept, if the stream is to go on without them."""
    count = int(bad.sum())
    reason = f"Stream '{plan.name}', {piece.label}: {count} row(s) {why}"
    if orders.streams[plan.name].bad == "stop":
        raise _refusal(reason, piece)
    seen.bad.append(reason)
    seen.bad_rows += count
    _letters(orders, plan.name).keep_rows("bad", rows.filter(bad), f"{piece.ordinal}-{part}")
    return rows.filter(~bad)


def _letters(orders: Orders, stream: str) -> Letters:
    settings = orders.settings
    return Letters(
        orders.streams[stream].dead_letter, stream, orders.epoch, orders.attempt, settings.fsync,
        settings.private_files,
    )  # fmt: skip


def _refusal(reason: str, piece: Piece) -> SourceError:
    # Arrow's words for a text that does not fit the type of its column
    told = "conversion error" in reason
    typed = (
        " If the file is right and the type, told from the first files, is not: give all columns their types "
        "(schema= or the list of columns in SQL), with a new checkpoint."
    )
    remedy = getattr(piece, "remedy", "Mend the input and start again")
    return SourceError(
        f"{reason.rstrip('.')}. Nothing of this epoch is counted. {remedy}, or set on_bad='dead-letter' to "
        "go "
        f"on without what cannot be read.{typed if told else ''}"
    )
