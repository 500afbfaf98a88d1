"""What the tasks of one epoch are told, what they report, and the watermark both sides derive from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from anabranch.engine.faults import SiteFaults
from anabranch.operators.base import END_OF_TIME
from anabranch.plan.plan import Plan, StreamPlan
from anabranch.routing.grid import Grid, Scattered
from anabranch.routing.holdback import Holds, least
from anabranch.routing.lane_times import Idle, come_together
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import Settings
from anabranch.sinks.staging import Staging
from anabranch.sources.base import Piece
from anabranch.state.group import Masked
from anabranch.state.manifest import HeldRef, ResultPart
from anabranch.state.place import Place, place
from anabranch.state.segment import SegmentRef
from anabranch.state.shelf import Shelf


@dataclass(frozen=True)
class StreamOrders:
    """What a split does with input that is late or does not fit."""

    bad: str
    late: str
    dead_letter: str | None
    latest: int | None = None
    """The latest time that a row may have."""


@dataclass(frozen=True)
class StandingOrders:
    """The orders that stand for a whole run: workers get them once, and keep what they make of them."""

    plan: Plan
    root: str
    """The checkpoint."""
    settings: Settings


@dataclass(frozen=True)
class Orders:
    """Everything a task of an epoch needs to know; the same for all tasks."""

    standing: StandingOrders
    epoch: int
    attempt: str
    """Names this try of the epoch: what an earlier try still writes is not mixed with it."""
    sites: int
    maps: Mapping[str, PartitionMap]
    shelves: Mapping[str, Shelf]
    """The state of each subquery."""
    combine: frozenset[str]
    newest: Mapping[str, int | None]
    watermarks: Mapping[str, int | None]
    idle: Idle
    ended: bool
    streams: Mapping[str, StreamOrders]
    results: Mapping[str, Staging]
    pieces: tuple[tuple[tuple[str, Piece], ...], ...]
    """For each split task its pieces, with the stream of each."""
    grids: Mapping[str, Grid] = field(default_factory=dict)
    """The cells of each exchange whose rows meet in a grid."""
    scattered: Mapping[str, tuple[Scattered, ...]] = field(default_factory=dict)
    """Slots of each exchange whose rows meet in cells."""
    scattering: Mapping[str, tuple[Scattered, ...]] = field(default_factory=dict)
    """Slots whose state goes to cells at the end of this epoch."""
    hot: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Slots of each exchange with so many rows of few keys that senders sub-aggregate them."""
    holds: Holds = field(default_factory=dict)
    """The slots whose rows wait in this epoch."""
    released: Holds = field(default_factory=dict)
    """Those that waited before and are worked on again."""
    held: tuple[HeldRef, ...] = ()
    """Rows that waited and are let go."""
    reached: Mapping[str, int | None] = field(default_factory=dict)
    """How far the input of each exchange had come before this epoch."""
    fetch: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Files that a site should have at hand in the next epoch."""
    faults: SiteFaults | None = None
    """What is done to the sites on purpose."""
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The slot of each lane, for streams that come partitioned as the plan wants them."""
    lane_times: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    """The newest time of each lane, for streams that have lanes; None for one that has had no row."""

    @property
    def plan(self) -> Plan:
        return self.standing.plan

    @property
    def settings(self) -> Settings:
        return self.standing.settings

    @property
    def place(self) -> Place:
        """Where the state is."""
        return place(self.standing.root, self.settings.private_files)


class Counts(msgspec.Struct, array_like=True):
    """What came to each partition of an exchange on a site: arrays as bytes, in the order of partitions."""

    rows: bytes
    peak_rows: bytes
    """The rows of the slot that has most of them."""
    peak_slot: bytes


class Fault(msgspec.Struct):
    """An error met in a task, to be raised by the driver."""

    kind: str
    message: str


class StreamReport(msgspec.Struct):
    """What a split saw of a stream."""

    rows: int = 0
    bytes: int = 0
    newest: int | None = None
    lanes: dict[str, int] = msgspec.field(default_factory=dict)
    """The newest time of each lane that had rows."""
    late: int = 0
    bad_rows: int = 0
    bad_files: list[str] = msgspec.field(default_factory=list)
    """By name: several pieces of one file may meet its fault."""
    bad: list[str] = msgspec.field(default_factory=list)


class SplitReport(msgspec.Struct):
    """What one split task did."""

    streams: dict[str, StreamReport] = msgspec.field(default_factory=dict)
    result_rows: dict[str, int] = msgspec.field(default_factory=dict)
    result_parts: dict[str, list[ResultPart]] = msgspec.field(default_factory=dict)
    combined: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Rows before and after sub-aggregation, per subquery."""
    lane_values: dict[str, dict[int, list[int]]] = msgspec.field(default_factory=dict)
    """A few hashes of what decides the lane of a row, for each stream and the slot of a lane."""
    held: list[HeldRef] = msgspec.field(default_factory=list)
    """Rows that were held back."""
    condensed: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Rows of hot slots before and after sub-aggregation, by exchange."""
    seconds: float = 0.0
    exchange_seconds: float = 0.0
    """The part of it that goes to telling rows apart by site."""
    fault: Fault | None = None


class SubqueryReport(msgspec.Struct):
    """What one site did for one subquery."""

    rows_in: int = 0
    rows_received: int = 0
    """Rows that came through an exchange: sub-aggregates, where senders make them."""
    bytes_received: int = 0
    rows_out: int = 0
    groups: int = 0
    compared: int = 0
    """Pairs of rows that a join looked at."""
    bytes_out: int = 0
    seconds: float = 0.0
    segments: list[SegmentRef] = msgspec.field(default_factory=list)
    masked: list[tuple[str, int, list[tuple[int, int]]]] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)


class SiteReport(msgspec.Struct):
    """What one site task did at one level."""

    level: int
    site: int
    subqueries: dict[str, SubqueryReport] = msgspec.field(default_factory=dict)
    result_rows: dict[str, int] = msgspec.field(default_factory=dict)
    result_parts: dict[str, list[ResultPart]] = msgspec.field(default_factory=dict)
    combined: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    received: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Rows and bytes from each sender: splits at the first level, sites at the others."""
    arrived: dict[str, Counts] = msgspec.field(default_factory=dict)
    """Rows for each of its partitions, by exchange of its level, as the senders counted them."""
    held: list[HeldRef] = msgspec.field(default_factory=list)
    """Rows that were held back."""
    condensed: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Rows of hot slots before and after sub-aggregation, by exchange."""
    started: float = 0.0
    """The time of day at which it began."""
    seconds: float = 0.0
    exchange_seconds: float = 0.0
    """The part of it that goes to taking frames in and telling rows apart by site."""
    executor: str = ""
    worker: int = 0
    fault: Fault | None = None


class Word(msgspec.Struct):
    """What a task tells every task of the next level, along with its frames."""

    splits: list[SplitReport]
    sites: list[SiteReport]
    watermarks: dict[str, int | None]
    sender: int
    sent: dict[str, Counts]
    """Rows for each partition of the site that hears it, by exchange."""
    fault: Fault | None = None


class EpochReport(msgspec.Struct):
    """All reports of an epoch, as the driver gets them."""

    splits: list[SplitReport] = msgspec.field(default_factory=list)
    sites: list[SiteReport] = msgspec.field(default_factory=list)
    seconds: float = 0.0
    """How long all tasks together took, as the driver saw it."""

    def parts(self) -> list[SplitReport | SiteReport]:
        return [*self.splits, *self.sites]

    def of_subquery(self, name: str) -> list[SubqueryReport]:
        """What the sites did for one subquery."""
        return [site.subqueries[name] for site in self.sites if name in site.subqueries]

    def fault(self) -> Fault | None:
        """The first error a task met."""
        return next((part.fault for part in self.parts() if part.fault), None)

    def result_parts(self, query: str) -> list[ResultPart]:
        """The files that the tasks wrote for a query."""
        return [file for part in self.parts() for file in part.result_parts.get(query, ())]

    def result_rows(self) -> dict[str, int]:
        """Rows of each query on their way to its sink."""
        counts: dict[str, int] = {}
        for part in self.parts():
            for query, rows in part.result_rows.items():
                counts[query] = counts.get(query, 0) + rows
        return counts


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
    if lane is not None and stream.name in orders.lane_times:
        newest = orders.lane_times[stream.name][lane]
    if newest is None:
        return watermark
    earliest = newest - stream.lateness
    return earliest if watermark is None else max(earliest, watermark)


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


def inputs_reached(
    plan: Plan, holds: Holds, watermarks: Mapping[str, int | None]
) -> dict[str, int | None]:
    """How far the input of each exchange has come, given the watermarks of the streams.

    Where rows wait further up, everything behind them waits for what they will bring.
    """
    reached: dict[str, int | None] = {}
    behind: dict[str, int | None] = {}
    # Each comes after those it reads
    for subquery in sorted(plan.subqueries.values(), key=lambda part: part.level):
        above = [watermarks[subquery.component]]
        if subquery.exchange in reached:
            above.append(reached[subquery.exchange])
        for path in subquery.paths:
            origin = plan.subqueries.get(path.origin)
            if origin is not None and origin.exchange != subquery.exchange:
                above.append(behind[origin.exchange])
        reached[subquery.exchange] = least(above)
        waiting = [hold.watermark for hold in holds.get(subquery.exchange, ())]
        behind[subquery.exchange] = least([reached[subquery.exchange], *waiting])
    return reached


def masked_as_plain(masked: Iterable[Masked]) -> list[tuple[str, int, list[tuple[int, int]]]]:
    return [(part.file, part.batch, list(part.slots)) for part in masked]
