"""The manifest: the one durable record of an epoch. What it does not name does not exist.

It holds the offsets of the sources, the newest times and the watermarks, the partition maps, the
segments, the staged results and the counts. JSON, so that a person can read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from anabranch.errors import StateError
from anabranch.routing.grid import Scattered
from anabranch.routing.lane_times import LaneTime
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.reach import Apart, Hold, Reach
from anabranch.routing.shaped import Shaped, Track
from anabranch.state.difference import differences
from anabranch.state.shelf import Shelf

FORMAT_VERSION = 14
VERSIONS = {
    1: "without checksums and run tokens",
    2: "with checksums, run tokens and the rows of joins by time",
    3: "with exchanges apart from subqueries",
    4: "as whole manifests and differences between them",
    5: "with what query sets that change go on by",
    6: "with times of lanes, and lists of files that forget",
    7: "with the places where results went, and values of lanes",
    8: "with the place of dead letters, and lanes by what has changed",
    9: "with state that is put aside",
    10: "with the shapes of joins",
    11: "with hot keys of every kind of join in cells, and grids that change",
    12: "with tables that streams are joined with, the time of the epoch, and parallel tracks of joins",
    13: "with what offsets hold as part of the version, and files that grow",
    14: "with what of the plan works for each query",
}
"""What tells the versions apart. Whoever changes what a manifest holds adds one."""
ASKED_WITH = {
    "merger of ": "setting merge",
    "partitioning of ": "strategy, central, permit() and partitioned_by",
}
"""What a query set can be run with in several ways, of which a checkpoint keeps to one."""


class StreamRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What is remembered of one stream."""

    offset: Any = None
    """Where a run goes on reading, as its source tells it. Files of the checkpoint that it needs stand under
    `logs`, each with its checksum."""
    newest: int | None = None
    rows: int = 0
    epochs: int = 0
    """Those that had rows."""
    bytes: int = 0
    late: int = 0
    bad_rows: int = 0
    bad_files: int = 0
    last_rows_at: float = 0.0
    lanes: dict[str, int] = msgspec.field(default_factory=dict)
    """The partitions of the parts a stream comes in, if it comes partitioned."""
    lane_values: dict[int, list[int]] = msgspec.field(default_factory=dict)
    """A few hashes of what decides a row's part, by partition: equal ones must not come in two."""
    lane_times: dict[str, LaneTime] = msgspec.field(default_factory=dict)
    """How far each of its lanes has come, if it has any."""


class HeldRef(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows that wait before an exchange, as the manifest names them: one file of one sender and epoch."""

    file: str
    exchange: str
    subquery: str
    input: int
    rows: int
    bytes: int
    slots: tuple[tuple[int, int], ...]
    """The ranges, in order, whose rows still wait; others in the file have gone on."""
    checksum: int

    def cut(self, slots: Sequence[tuple[int, int]]) -> HeldRef:
        """The rows of some of its slots; how many these are is taken from how many slots there are."""
        share = sum(end - first for first, end in slots) / sum(e - f for f, e in self.slots)
        rows, size = (max(1, round(share * value)) for value in (self.rows, self.bytes))
        return msgspec.structs.replace(self, slots=tuple(slots), rows=rows, bytes=size)


class ExchangeRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Where the partitions of an exchange are, and who steers it. It seldom changes."""

    sites: list[int]
    """The site of each partition."""
    starts: list[int] = msgspec.field(default_factory=list)
    """The first slot of each partition; empty if each is one slot."""
    slots: int = 0
    cells: int = 0
    """How many slots at the end are cells of scattered ones."""
    scattered: list[Scattered] = msgspec.field(default_factory=list)
    """Slots with hot keys whose rows meet in cells."""
    grid: list[int] = msgspec.field(default_factory=list)
    """The cells of each band, if its rows meet in a grid."""
    by_hand: bool = False
    """Whether the user has taken over its map."""
    adapted: bool = False
    """Whether it is balanced partition by partition."""
    pins: dict[int, int] = msgspec.field(default_factory=dict)
    """The sites that the user has pinned partitions to, by their first slots."""

    def map(self) -> PartitionMap:
        return PartitionMap(tuple(self.sites), tuple(self.starts), self.slots, self.cells)


class SubqueryRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a subquery remembers, and what it has done."""

    exchange: str
    signature: str = ""
    """What it does, and to what: the same for subqueries that give the same rows."""
    placing: str = ""
    """How its rows are spread and brought together. State fits where signature and placing are the same."""
    wanted: list[str] = msgspec.field(default_factory=list)
    """The columns of its results that its state has been kept for, where that depends on who reads them."""
    shelf: Shelf = msgspec.field(default_factory=Shelf)
    shapes: list[Shaped] = msgspec.field(default_factory=list)
    """The shapes of a join of several inputs, where they are not the flat one: its state is as they say."""
    wanted_shapes: list[Shaped] = msgspec.field(default_factory=list)
    """Those that it is to come to."""
    tracks: list[Track] = msgspec.field(default_factory=list)
    """Slots that work in two shapes, until the rows of before are gone."""
    by_track: list[tuple[int, int]] = msgspec.field(default_factory=list)
    """Slots that are to come to the shape that is wanted for them in this way."""
    watermark: int | None = None
    combine: bool = False
    rows_in: int = 0
    rows_out: int = 0
    rows_received: int = 0
    bytes_received: int = 0
    bytes_out: int = 0
    seconds: float = 0.0
    """What an epoch takes over all sites, the last ones counting most."""
    skew: float = 1.0
    """The rows of the busiest of its sites against their mean, the last epochs counting most."""


class QueryRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is remembered of a query, to know it again in another query set."""

    signature: str
    """What it does, whatever it is called."""
    states: tuple[str, ...] = ()
    """The signatures of what keeps state in it."""
    since: int = 0
    """The change of the query set that it came with; 0 if it was there from the first start."""
    streams: dict[str, str] = msgspec.field(default_factory=dict)
    """The streams that it is written over, and what it reads of each: the stream itself, or a replay."""
    component: str = ""
    """Whose watermark it goes by."""
    subqueries: tuple[str, ...] = ()
    """What of the plan works for it, for others too."""


class ResultPart(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a query's results in an epoch, wherever the sink keeps it."""

    name: str
    rows: int
    bytes: int


class TableRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version of a table that an epoch had."""

    file: str
    """Its rows, in the checkpoint."""
    checksum: int
    version: str
    """What tells it from others, as the table itself says."""
    rows: int


class MovingRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A move under way, between two epochs."""

    exchange: str
    partition: int
    source: int
    target: int
    bytes: int
    cause: str
    phase: str
    since: int


class Manifest(
    msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="whole"
):
    """The state of a run after an epoch."""

    format_version: int = FORMAT_VERSION
    serial: int = -1
    """Its number in the line of manifests. Starts count too, so it is not that of the epoch."""
    token: str = ""
    """Whose entry it is: another one for every start."""
    holder: str = ""
    """The process that made it, for people."""
    oldest: int = 0
    """The number of the oldest one that a run can still go on from. Files that only others named are gone."""
    run_id: str
    epoch: int
    """The last epoch that has happened; -1 if none has."""
    attempt: str = ""
    sites: int
    committed_at: float
    identity: dict[str, str]
    streams: dict[str, StreamRecord]
    watermarks: dict[str, int | None]
    exchanges: dict[str, ExchangeRecord]
    reach: dict[str, Reach] = msgspec.field(default_factory=dict)
    """How far the input of each exchange has come: behind its streams, if rows wait further up."""
    subqueries: dict[str, SubqueryRecord]
    held: list[HeldRef] = msgspec.field(default_factory=list)
    """Rows that wait, oldest first."""
    moving: list[MovingRecord] = msgspec.field(default_factory=list)
    """The moves under way."""
    dead_letter: str | None = None
    """The folder in which letters of this epoch may still wait to become visible."""
    results: dict[str, list[ResultPart]] = msgspec.field(default_factory=dict)
    """What each query with a sink has given in this epoch; the sink knows where it waits."""
    sinks: dict[str, str] = msgspec.field(default_factory=dict)
    """The queries that had a sink in this epoch, and where their results went, as the sink says."""
    result_rows: dict[str, int] = msgspec.field(default_factory=dict)
    """Rows of each query since the run first started, be they written or not."""
    tables: dict[str, TableRecord] = msgspec.field(default_factory=dict)
    """The tables that rows were joined with in this epoch."""
    now: int = 0
    """The time that CURRENT_TIMESTAMP was in this epoch, in microseconds since 1970."""
    ordinal: int = 0
    ended: bool = False
    queries: dict[str, QueryRecord] = msgspec.field(default_factory=dict)
    changes: int = 0
    """How often the query set has changed."""
    partitioning: list[str] | None = None
    """The axes that the streams' partitioning was chosen to have when the run first started."""

    @property
    def holds(self) -> dict[str, tuple[Hold, ...]]:
        """The slots of each exchange whose rows wait."""
        return {name: reach.behind for name, reach in self.reach.items() if reach.behind}

    @property
    def spilled(self) -> Apart:
        """What of each exchange is put aside."""
        return {name: reach.spilled for name, reach in self.reach.items() if reach.spilled}

    def files(self) -> set[str]:
        """The files of the checkpoint that this manifest needs."""
        return self.other_files().union(
            *(record.shelf.files for record in self.subqueries.values())
        )

    def other_files(self) -> set[str]:
        """Those that are no segments: lists of what streams have read, rows that wait, tables."""
        logs = {log for record in self.streams.values() for log in _logs(record.offset)}
        tables = {record.file for record in self.tables.values()}
        return logs | tables | {ref.file for ref in self.held}


def _logs(offset: Any) -> list[str]:
    return [name for name, _ in offset.get("logs", ())] if isinstance(offset, dict) else []


def refuse_other(manifest: Manifest, asked: dict[str, str], what: str) -> None:
    """Raises StateError if a manifest belongs to another query set; `what` names it."""
    found = differences(manifest.identity, asked)
    others = [text for text in found if not text.startswith(tuple(ASKED_WITH))]
    if found and not others:
        kind = next(kind for kind in ASKED_WITH if found[0].startswith(kind))
        raise StateError(
            f"{what} was started with another {kind.removesuffix(' of ')}: {'. '.join(found)}. Give the "
            f"same {ASKED_WITH[kind]} as then, or use another checkpoint folder."
        )
    if found:
        raise StateError(
            f"{what} belongs to another query set: {'. '.join(others)}. Use another checkpoint folder, and "
            "other result folders, for the new query set."
        )
