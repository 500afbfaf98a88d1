"""The compiled plan: streams, subqueries, the exchanges before them, and what leaves to the sinks.

Level 0 are the streams; a subquery stands one level above the highest it reads from, or on the level of
those it shares an exchange with.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field

import polars as pl

from anabranch.language.expression import Expression
from anabranch.language.order import Ordered
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.plan.exchange import Common, Exchange, commons
from anabranch.plan.subquery import Path, Subquery


@dataclass(frozen=True)
class StreamPlan:
    """What a run needs of one stream."""

    name: str
    schema: pl.Schema
    ordered: Ordered
    lateness: int
    columns: tuple[str, ...]
    component: str
    numbered: bool
    """Whether rows carry their arrival number."""
    exchange: str | None = None
    """The exchange whose partitions its lanes are, if it comes partitioned as that one wants it."""
    lane_terms: tuple[Expression, ...] = ()
    """What decides, as the user says, in which lane a row is."""
    late_rows: bool = False
    """Whether late rows are left out of closed windows only."""


@dataclass(frozen=True)
class Output:
    """Rows of a query on their way to its sink."""

    query: str
    paths: tuple[Path, ...]
    schema: pl.Schema
    marked: bool = False
    """Whether groups can leave the results: then a column of the schema marks those that do."""
    replaces: bool = False
    """Whether a row stands in the place of earlier ones of its group."""
    keys: tuple[str, ...] | None = None
    """The columns that tell such groups apart; None if the results lack one of them."""


@dataclass(frozen=True)
class Plan:
    """Everything the engine needs to run a query set."""

    streams: dict[str, StreamPlan]
    subqueries: dict[str, Subquery]
    outputs: tuple[Output, ...]
    identity: dict[str, str]
    """What a checkpoint of this plan belongs to: a description of each stream and query."""
    sets: dict[str, PartitioningSet] = field(default_factory=dict)
    """What the rows of each exchange are partitioned by, in terms of the streams."""
    tables: tuple[str, ...] = ()
    """The tables that rows are joined with."""

    @property
    def levels(self) -> int:
        return max((subquery.level for subquery in self.subqueries.values()), default=0)

    def at_level(self, level: int) -> list[Subquery]:
        return [subquery for subquery in self.subqueries.values() if subquery.level == level]

    @functools.cached_property
    def exchanges(self) -> dict[str, Exchange]:
        """What brings rows to the sites, each after those whose results it reads."""
        members: dict[str, list[Subquery]] = {}
        for subquery in self.subqueries.values():
            members.setdefault(subquery.exchange, []).append(subquery)
        return {name: Exchange(name, tuple(some)) for name, some in members.items()}

    @functools.cached_property
    def common(self) -> tuple[Common, ...]:
        """The rows that several subqueries can share on their way through an exchange."""
        numbered = [stream.name for stream in self.streams.values() if stream.numbered]
        return commons(self.subqueries.values(), numbered)

    def reading(self, origin: str) -> list[tuple[Subquery, Path]]:
        """The subqueries fed by a stream or subquery, with the path of each."""
        return [
            (subquery, path)
            for subquery in self.subqueries.values()
            for path in subquery.paths
            if path.origin == origin
        ]

    def leaving(self, origin: str) -> list[tuple[Output, Path]]:
        """The outputs fed by a stream or subquery."""
        return [
            (output, path)
            for output in self.outputs
            for path in output.paths
            if path.origin == origin
        ]
