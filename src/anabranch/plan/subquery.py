"""The compiled plan: subqueries, the paths rows take to them, and what leaves to the sinks.

A subquery is one stateful operator; the stateless steps before it run where the rows come from, at the
splitter. Level 0 are the streams; a subquery stands one level above the highest it reads from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import polars as pl

from anabranch.language.expression import Expression
from anabranch.language.graph import Aggregate, History, Ordered
from anabranch.language.window import CountWindow, SessionGap
from anabranch.operators.aggregate import WindowedAggregate
from anabranch.operators.base import Operator
from anabranch.operators.history import OrderedAggregate
from anabranch.operators.session import SessionAggregate
from anabranch.operators.stateless import Step

Stateful: TypeAlias = Aggregate | History


@dataclass(frozen=True)
class Path:
    """How rows come: from a stream or a subquery, through stateless steps."""

    origin: str
    steps: tuple[Step, ...] = ()

    def then(self, step: Step) -> Path:
        return Path(self.origin, (*self.steps, step))


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


@dataclass(frozen=True)
class Subquery:
    """A stateful operator, partitioned over the sites."""

    name: str
    node: Stateful
    paths: tuple[Path, ...]
    level: int
    component: str
    home: str
    """The subquery that opened the exchange this one belongs to: they have one partition map."""
    terms: tuple[Expression, ...]
    """What rows are partitioned by, over the node's input: functions of its keys."""

    def operator(self) -> Operator:
        if isinstance(self.node, History) or isinstance(self.node.window, CountWindow):
            return OrderedAggregate(self.node)
        if isinstance(self.node.window, SessionGap):
            return SessionAggregate(self.node)
        return WindowedAggregate(self.node)

    @property
    def partitioning(self) -> tuple[str, ...]:
        """The partitioning set, as text; empty when there is a single group."""
        return tuple(map(str, self.terms))

    @property
    def partitioned_by_keys(self) -> bool:
        """Whether the terms are the keys as they are, so that one hash does for both."""
        return self.partitioning == tuple(str(key.expression) for key in self.node.keys)

    def watermark(self, source: int | None) -> int | None:
        """The watermark of this subquery's input, given that of the streams."""
        return self.node.input.ordered.watermark(source) if self.node.input.ordered else source


@dataclass(frozen=True)
class Output:
    """Rows of a query on their way to its sink."""

    query: str
    paths: tuple[Path, ...]
    schema: pl.Schema


@dataclass(frozen=True)
class Plan:
    """Everything the engine needs to run a query set."""

    streams: dict[str, StreamPlan]
    subqueries: dict[str, Subquery]
    outputs: tuple[Output, ...]
    identity: dict[str, str]
    """What a checkpoint of this plan belongs to: a description of each stream and query."""

    @property
    def levels(self) -> int:
        return max((subquery.level for subquery in self.subqueries.values()), default=0)

    def receives(self, subquery: Subquery) -> bool:
        """Whether rows come to it through an exchange, and not only from its own site."""
        levels = [
            self.subqueries[path.origin].level if path.origin in self.subqueries else 0
            for path in subquery.paths
        ]
        return min(levels) < subquery.level

    def at_level(self, level: int) -> list[Subquery]:
        return [subquery for subquery in self.subqueries.values() if subquery.level == level]

    @property
    def homes(self) -> list[str]:
        """The exchanges, each by the name of the subquery that opened it."""
        return list(dict.fromkeys(subquery.home for subquery in self.subqueries.values()))

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
