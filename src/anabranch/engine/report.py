"""What the tasks of an epoch report: to one another as they go on, and to the driver."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from anabranch.state.group import Masked
from anabranch.state.manifest import HeldRef, ResultPart
from anabranch.state.segment import SegmentRef


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
    copied: dict[str, dict[int, int]] = msgspec.field(default_factory=dict)
    """Rows that were sent more than once to cells of hot keys, by subquery and input."""
    started: float = 0.0
    """The time of day at which it began."""
    seconds: float = 0.0
    exchange_seconds: float = 0.0
    """The part of it that goes to telling rows apart by site."""
    steps: dict[str, float] = msgspec.field(default_factory=dict)
    """The seconds of each of its steps."""
    fault: Fault | None = None


class SubqueryReport(msgspec.Struct):
    """What one site did for one subquery."""

    rows_in: int = 0
    rows_received: int = 0
    """Rows that came through an exchange: sub-aggregates, where senders make them."""
    bytes_received: int = 0
    inputs: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Rows and bytes that came to each input."""
    rows_out: int = 0
    groups: int = 0
    compared: int = 0
    """Pairs of rows that a join looked at."""
    bytes_out: int = 0
    seconds: float = 0.0
    segments: list[SegmentRef] = msgspec.field(default_factory=list)
    masked: list[tuple[str, int, list[tuple[int, int]]]] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)
    sampled: dict[int, list[float]] = msgspec.field(default_factory=dict)
    """What a join would do in other shapes, by partition, if that was to be counted."""
    sampling: float = 0.0
    """The seconds that this took."""


class SiteReport(msgspec.Struct):
    """What one site task did at one level."""

    level: int
    site: int
    subqueries: dict[str, SubqueryReport] = msgspec.field(default_factory=dict)
    result_rows: dict[str, int] = msgspec.field(default_factory=dict)
    result_parts: dict[str, list[ResultPart]] = msgspec.field(default_factory=dict)
    combined: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    arrived: dict[str, Counts] = msgspec.field(default_factory=dict)
    """Rows for each of its partitions, by exchange of its level, as the senders counted them."""
    made: dict[str, bytes] = msgspec.field(default_factory=dict)
    """The results of each of its partitions, by exchange of its level."""
    held: list[HeldRef] = msgspec.field(default_factory=list)
    """Rows that were held back."""
    condensed: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """Rows of hot slots before and after sub-aggregation, by exchange."""
    copied: dict[str, dict[int, int]] = msgspec.field(default_factory=dict)
    """Rows that were sent more than once to cells of hot keys, by subquery and input."""
    started: float = 0.0
    """The time of day at which it began."""
    seconds: float = 0.0
    exchange_seconds: float = 0.0
    """The part of it that goes to taking frames in and telling rows apart by site."""
    steps: dict[str, float] = msgspec.field(default_factory=dict)
    """The seconds of each of its steps."""
    executor: str = ""
    machine: str = ""
    memory: int = 0
    """Bytes of memory that its machine or container has free."""
    worker: int = 0
    fault: Fault | None = None


class Word(msgspec.Struct):
    """What a task tells every task of the next level, along with its frames."""

    splits: list[SplitReport]
    sites: list[SiteReport]
    watermarks: dict[str, int | None] | None
    """Those of this epoch; None from splits, which know only their own part of it."""
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
    steps: dict[str, float] = msgspec.field(default_factory=dict)
    """The seconds of what the driver did to have them run."""

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


def masked_as_plain(masked: Iterable[Masked]) -> list[tuple[str, int, list[tuple[int, int]]]]:
    return [(part.file, part.batch, list(part.slots)) for part in masked]
