"""What the tasks of an epoch are told."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from anabranch.adapt.protocols.replanning import Turn
from anabranch.engine.faults import SiteFaults
from anabranch.engine.options import RunOptions
from anabranch.plan.plan import Plan
from anabranch.routing.grid import Grid, Resettling, Scattered
from anabranch.routing.lane_times import Idle
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.reach import Apart, Holds, Reach
from anabranch.settings import Settings
from anabranch.sinks.staging import Staging
from anabranch.sources.base import Piece
from anabranch.state.group import piece_size
from anabranch.state.manifest import HeldRef, TableRecord
from anabranch.state.place import Place, place
from anabranch.state.shelf import Shelf


@dataclass(frozen=True)
class StreamOrders:
    """What a split does with input that is late or does not fit."""

    bad: str
    late: str
    dead_letter: str | None
    latest: int | None = None
    """The latest time that a row may have."""


def stream_orders(
    options: RunOptions, streams: Iterable[str], now: float
) -> dict[str, StreamOrders]:
    """The same for each of these streams, at this time of day."""
    return {
        name: StreamOrders(
            options.on_bad[name],
            options.on_late[name],
            options.dead_letter,
            options.ahead[name].latest(now) if name in options.ahead else None,
        )
        for name in streams
    }


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
    cleaning_all: bool
    """Whether all that was put aside comes together, for the streams have ended."""
    streams: Mapping[str, StreamOrders]
    results: Mapping[str, Staging]
    pieces: tuple[tuple[tuple[str, Piece], ...], ...]
    """For each split task its pieces, with the stream of each."""
    grids: Mapping[str, Grid] = field(default_factory=dict)
    """The cells of each exchange whose rows meet in a grid."""
    turns: Mapping[str, Turn] = field(default_factory=dict)
    """The shapes of joins of several inputs, where they are not the flat one, and what comes to them."""
    sampling: Collection[str] = ()
    """The joins of which it is counted what they would do in other shapes."""
    scattered: Mapping[str, tuple[Scattered, ...]] = field(default_factory=dict)
    """Slots of each exchange whose rows meet in cells."""
    resettling: Resettling = field(default_factory=Resettling)
    """State that goes to other slots at the end of this epoch."""
    hot: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Slots of each exchange with so many rows of few keys that senders sub-aggregate them."""
    reach: Mapping[str, Reach] = field(default_factory=dict)
    """How far the input of each exchange had come before this epoch, and the slots whose rows wait in it."""
    released: Holds = field(default_factory=dict)
    """Those that waited before and are worked on again."""
    cleaned: Apart = field(default_factory=dict)
    """Slots that were put aside and come together again in this epoch, with what they owe."""
    held: tuple[HeldRef, ...] = ()
    """Rows that waited and are let go."""
    fetch: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Files that a site should have at hand in the next epoch."""
    faults: SiteFaults | None = None
    """What is done to the sites on purpose."""
    lanes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The slot of each lane, for streams that come partitioned as the plan wants them."""
    lane_times: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    """The newest time of each lane, for streams that have lanes; None for one that has had no row."""
    tables: Mapping[str, TableRecord] = field(default_factory=dict)
    """The version of each table that rows are joined with."""
    memory: tuple[float, ...] = ()
    """The bytes that each site may keep."""
    now: int = 0
    """The time of the epoch, in microseconds since 1970."""

    @property
    def holds(self) -> Holds:
        """The slots of each exchange whose rows wait in this epoch."""
        return {name: reach.behind for name, reach in self.reach.items() if reach.behind}

    @property
    def spilled(self) -> Apart:
        """What of each exchange is put aside in this epoch."""
        return {name: reach.spilled for name, reach in self.reach.items() if reach.spilled}

    @property
    def plan(self) -> Plan:
        return self.standing.plan

    @property
    def settings(self) -> Settings:
        return self.standing.settings

    def piece_bytes(self, site: int) -> int:
        """How much state a site looks at at once where it goes through all of it: not all it may keep."""
        return piece_size(self.memory[site] if site < len(self.memory) else inf)

    @property
    def place(self) -> Place:
        """Where the state is."""
        return place(self.standing.root, self.settings.private_files)
