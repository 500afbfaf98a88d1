"""All there is to say about a plan, before any form is given to it: text, JSON and drawing say the same.

Expected figures follow from the rates that the partitioning was chosen by; measured ones are those of
a run's newest manifest, and stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from anabranch.explain.measured import Measured, Work
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.flow import Flow
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.term import text_of
from anabranch.plan.plan import Output, StreamPlan
from anabranch.plan.subquery import IN_GRID, Path, Subquery


@dataclass(frozen=True)
class Edge:
    """Rows on their way from a stream or subquery to a subquery or an output."""

    path: Path
    exchange: bool
    """Whether rows go from one site to another."""
    lane: bool = False
    """Whether they need not because the stream comes partitioned as it should be."""
    expected: Flow | None = None
    measured: Flow | None = None
    """What a run has counted, where it can be told apart from what comes along other paths."""

    @property
    def origin(self) -> str:
        return self.path.origin

    def stays(self, exchange: str) -> str:
        """Where rows stay that are not exchanged."""
        return "in its lanes" if self.lane else f"on the partitions of {exchange}"

    @property
    def best(self) -> Flow | None:
        return self.measured or self.expected


@dataclass(frozen=True)
class StreamPart:
    """A stream: how it is read and how much is expected of it."""

    plan: StreamPlan
    source: str
    """How it is read, in words."""
    given: tuple[str, ...]
    """What it comes partitioned by."""
    expected: Flow | None
    measured: Flow | None
    late_rows: int = 0

    @property
    def name(self) -> str:
        return self.plan.name


@dataclass(frozen=True)
class SubqueryPart:
    """A subquery: where it runs, what it reads and what it yields."""

    subquery: Subquery
    edges: tuple[Edge, ...]
    expected: Flow | None
    """What it yields."""
    work: Work | None

    @property
    def name(self) -> str:
        return self.subquery.name

    @property
    def opens(self) -> bool:
        """Whether the exchange is its own."""
        return self.subquery.exchange == self.name

    @property
    def terms(self) -> str:
        """What it is partitioned by; over both inputs, if they write it differently."""
        sides = [", ".join(map(text_of, terms)) for terms in self.subquery.terms]
        return " = ".join(dict.fromkeys(sides))

    @property
    def single(self) -> bool:
        """Whether all its rows belong together."""
        return self.subquery.central

    @property
    def partitioned(self) -> str:
        if self.terms:
            return f"partitioned by {self.terms}"
        if self.subquery.spread == IN_GRID:
            return "every row meets every row in a grid"
        return "a single group" if self.single else "spread evenly"

    @property
    def sent(self) -> str:
        """How an exchange brings rows to it."""
        if self.subquery.spread == IN_GRID:
            return "to several cells"
        return f"by {self.terms}" if self.terms else "to one site" if self.single else "evenly"


@dataclass(frozen=True)
class OutputPart:
    """The results of a query, and where they go."""

    output: Output
    edges: tuple[Edge, ...]
    sink: str | None
    expected: Flow | None
    rows: float | None
    """Rows an epoch that a run has counted."""


@dataclass(frozen=True)
class Explanation:
    """A plan with its reasons and figures."""

    streams: tuple[StreamPart, ...]
    subqueries: tuple[SubqueryPart, ...]
    """Lower levels first, then in the order of the plan; after those they read."""
    outputs: tuple[OutputPart, ...]
    choice: Choice
    sites: int
    partitions: int
    strategy: str
    measured: Measured | None = None
    better: PartitioningSet | None = None
    """What would be chosen with the measured rates, if that is another set."""
    sinks_known: bool = False
    reshaped: Mapping[str, str] = field(default_factory=dict)
    """By join the last change of its shape, in words: what, how and why."""

    def level(self, number: int) -> list[SubqueryPart]:
        return [part for part in self.subqueries if part.subquery.level == number]

    @property
    def levels(self) -> list[int]:
        return sorted({part.subquery.level for part in self.subqueries})
