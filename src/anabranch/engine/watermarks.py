"""How far time has come after an epoch: the driver and every site derive it from the same reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from anabranch.engine.orders import Orders
from anabranch.engine.report import SplitReport
from anabranch.operators.base import END_OF_TIME
from anabranch.plan.plan import Plan, StreamPlan
from anabranch.routing.lane_times import come_together
from anabranch.routing.reach import Apart, Holds, Reach, least


def newest_times(
    before: Mapping[str, int | None], splits: Iterable[SplitReport]
) -> dict[str, int | None]:
    """The newest time of each stream after an epoch."""
    newest = dict(before)
    for split in splits:
        for name, report in split.streams.items():
            known = newest.get(name)
            if report.newest is not None:
                newest[name] = report.newest if known is None else max(known, report.newest)
    return newest


def lane_times(
    before: Mapping[str, Mapping[str, int | None]], splits: Iterable[SplitReport]
) -> dict[str, dict[str, int | None]]:
    """The newest time of each lane after an epoch."""
    times = {name: dict(lanes) for name, lanes in before.items()}
    for split in splits:
        for name, report in split.streams.items():
            for lane, newest in report.lanes.items() if name in times else ():
                known = times[name].get(lane)
                times[name][lane] = newest if known is None else max(known, newest)
    return times


def earliest_on_time(orders: Orders, stream: StreamPlan, lane: str | None = None) -> int | None:
    """The least time that a row of a stream, or of one of its lanes, may have in an epoch without being late.

    That is its own matter, whatever it is joined with: its newest time less its lateness. Only where those it
    meets went on without it, because it was idle or not known, have its rows to be as new as theirs.
    """
    newest, watermark = orders.newest[stream.name], orders.watermarks[stream.component]
    if stream.late_rows:
        return closed_before(orders, [stream.name])
    if lane is not None and stream.name in orders.lane_times:
        newest = orders.lane_times[stream.name][lane]
    if newest is None:
        return watermark
    earliest = newest - stream.lateness
    return earliest if watermark is None else max(earliest, watermark)


def closed_before(orders: Orders, streams: Collection[str]) -> int | None:
    """Up to where windows over some streams count as closed before an epoch.

    That is their own matter: they may be open for longer, as they wait for streams that other queries join.
    """
    plans = [orders.plan.streams[name] for name in streams]
    watermark = orders.watermarks[plans[0].component]
    newest = {
        (plan.name, lane): time
        for plan in plans
        for lane, time in (
            orders.lane_times.get(plan.name) or {"": orders.newest[plan.name]}
        ).items()
    }
    reached = [
        time - orders.plan.streams[name].lateness
        for (name, _), time in newest.items()
        if time is not None
    ]
    if len(reached) < len(newest):
        return watermark
    return min(reached) if watermark is None else max(watermark, min(reached))


def advance_watermarks(orders: Orders, splits: list[SplitReport]) -> dict[str, int | None]:
    """The watermark of each component after an epoch: the least over its streams, never back.

    A stream holds its component's watermark until it has had a row, unless it is idle; an idle one
    counts again as soon as it has rows. Where all are idle none waits for another, so the watermark is
    that of the stream that has come furthest. It is the same with the lanes of a stream.
    """
    if orders.ended:
        return dict.fromkeys(orders.watermarks, END_OF_TIME)
    newest = newest_times(orders.newest, splits)
    lanes = lane_times(orders.lane_times, splits)
    heard = {
        (name, lane)
        for split in splits
        for name, seen in split.streams.items()
        for lane in seen.lanes
    }
    for name, times in lanes.items():
        newest[name] = come_together(
            times, {lane for stream, lane in orders.idle.lanes - heard if stream == name}
        )
    awake = {name for split in splits for name, seen in split.streams.items() if seen.rows}
    advanced: dict[str, int | None] = {}
    for component, before in orders.watermarks.items():
        reached: dict[str, int | None] = {}
        for stream in orders.plan.streams.values():
            if stream.component == component:
                time = newest[stream.name]
                reached[stream.name] = None if time is None else time - stream.lateness
        after = come_together(reached, orders.idle.streams - awake)
        known = [time for time in (before, after) if time is not None]
        advanced[component] = max(known, default=None)
    return advanced


def reach_of_inputs(
    plan: Plan, holds: Holds, watermarks: Mapping[str, int | None], spilled: Apart
) -> dict[str, Reach]:
    """How far the input of each exchange has come, given what waits and the watermarks of the streams.

    Where rows wait further up, everything behind them waits for what they will bring.
    """
    reach: dict[str, Reach] = {}
    # Each comes after those it reads
    for subquery in sorted(plan.subqueries.values(), key=lambda part: part.level):
        above = [watermarks[subquery.component]]
        if subquery.exchange in reach:
            above.append(reach[subquery.exchange].watermark)
        for path in subquery.paths:
            origin = plan.subqueries.get(path.origin)
            if origin is not None and origin.exchange != subquery.exchange:
                above.append(reach[origin.exchange].least)
        reach[subquery.exchange] = Reach(
            least(above), holds.get(subquery.exchange, ()), spilled.get(subquery.exchange, ())
        )
    return reach
