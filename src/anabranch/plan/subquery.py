"""A subquery: one operator, partitioned over sites, and the paths that rows take to it.

Stateless steps before it run where the rows come from, at the splitter.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass, field

import polars as pl

from anabranch.language.expression import Expression
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.lookup import Lookup
from anabranch.language.node import Node
from anabranch.language.numbered import Numbered
from anabranch.language.order import Ordered
from anabranch.language.ranked import Ranked
from anabranch.language.stamped import Stamped
from anabranch.language.stateful import Stateful
from anabranch.language.stateless import Branch, Filter, Project
from anabranch.language.timeline import Timeline
from anabranch.language.unnest import Unnest
from anabranch.language.window import CountWindow, SessionGap
from anabranch.language.windowed import Windowed, window_kind
from anabranch.operators.aggregate import WindowedAggregate
from anabranch.operators.base import Operator
from anabranch.operators.changes import MARK
from anabranch.operators.history import OrderedAggregate
from anabranch.operators.join import SymmetricJoin
from anabranch.operators.looked_up import LookedUp
from anabranch.operators.numbering import Numbering
from anabranch.operators.passing import Passing
from anabranch.operators.product import Product
from anabranch.operators.ranked import RankedRows
from anabranch.operators.session import SessionAggregate
from anabranch.operators.stateless import Select, Step, Where, branch
from anabranch.operators.timeline import TimelineRows
from anabranch.operators.told import Stamp
from anabranch.operators.unfolding import IntoWindows, Unnested
from anabranch.partitioning.requirement import all_keys
from anabranch.settings import TRANSPARENT

EVENLY, BY_TERMS, BY_LANE, IN_GRID = "evenly", "terms", "lane", "grid"
"""How rows are spread over partitions: in turn, by the hash of terms, as the stream comes, or each to
several, so that all rows of two inputs meet."""


@dataclass(frozen=True)
class Path:
    """How rows come: from a stream or a subquery, through stateless steps."""

    origin: str
    steps: tuple[Step, ...] = ()
    input: int = 0
    """Which input of the operator they come to: joins have several."""

    def through(self, below: Path, *steps: Step) -> Path:
        """This path, if what it came from is itself reached by another path and steps."""
        return Path(below.origin, (*below.steps, *steps, *self.steps), self.input)


@dataclass(frozen=True, eq=False)
class Gather(Node):
    """The results of a query, brought together on one site."""

    input: Node
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.input.schema)
        object.__setattr__(self, "ordered", self.input.ordered)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return "GATHER"


@dataclass(frozen=True)
class Subquery:
    """An operator, partitioned over the sites."""

    name: str
    node: Node
    paths: tuple[Path, ...]
    query: str
    """The query it was first met in."""
    exchange: str = ""
    """What brings its rows to the sites."""
    terms: tuple[tuple[Expression, ...], ...] = ((),)
    """What rows are partitioned by, over each input of the node: functions of its keys."""
    spread: str = BY_TERMS
    level: int = 0
    component: str = ""
    combines: bool = False
    """Whether senders may sub-aggregate for it; they do where it shrinks the rows."""
    columns: tuple[tuple[str, ...], ...] = ()
    """What it reads of each input; the arrival number too, if it depends on the order of rows."""
    wanted: tuple[str, ...] | None = None
    """What is read of its results; None: all."""
    merger: str = ""
    """How the rows of its senders are brought together; empty if it does not matter to the operator."""
    weights: tuple[float, float] = (1.0, 1.0)
    """How many rows come to its first two inputs, one against the other, as far as that is known."""

    @property
    def inputs(self) -> int:
        return len(self.node.inputs) if isinstance(self.node, (Join, Numbered)) else 1

    @property
    def stateful(self) -> bool:
        return isinstance(self.node, Stateful)

    @property
    def shaped(self) -> bool:
        """Whether it is a join that can work in more than one shape."""
        join = isinstance(self.node, Join)
        return join and isinstance(self.operator, SymmetricJoin) and self.operator.shapes

    @property
    def central(self) -> bool:
        """Whether all its rows are on one site."""
        return self.spread == BY_TERMS and not any(self.terms)

    @functools.cached_property
    def operator(self) -> Operator:
        if isinstance(self.node, Stateful):
            return operator_of(self.node, self.wanted, self.merger or TRANSPARENT)
        return Passing(self.columns[0], steps_of(self.node), self.node.schema)

    @property
    def partitioning(self) -> tuple[str, ...]:
        """The partitioning set over the first input, as text; empty when there is a single group."""
        return tuple(map(str, self.terms[0]))

    @functools.cached_property
    def partitioned_by_keys(self) -> bool:
        """Whether the terms are the keys as they are, so that one hash does for both."""
        keys = all_keys(self.node) if isinstance(self.node, Stateful) else ((),)
        return [list(map(str, some)) for some in self.terms] == [
            list(map(str, some)) for some in keys
        ]

    def watermark(self, source: int | None) -> int | None:
        """The watermark of this subquery's input, given that of the streams.

        The inputs of a join have each their own: its rows are due by that of the streams.
        """
        ordered = None if isinstance(self.node, Join) else self.node.inputs[0].ordered
        if isinstance(self.node, Numbered):
            ordered = self.node.ordered
        return ordered.watermark(source) if ordered else source


def needs_merger(node: Node) -> bool:
    """Whether the results depend on the order in which rows come."""
    return isinstance(node, (History, Numbered, Timeline)) or (
        isinstance(node, Aggregate) and isinstance(node.window, CountWindow)
    )


def operator_of(
    node: Stateful, wanted: Collection[str] | None = None, merger: str = TRANSPARENT
) -> Operator:
    """What does the work of a stateful node, if these of its columns are wanted.

    The merger is for those that need one.
    """
    if isinstance(node, Numbered):
        return Numbering(node, wanted, merger)
    if isinstance(node, Join):
        return SymmetricJoin(node, wanted) if node.keys[0] else Product(node, wanted)
    if isinstance(node, Ranked):
        return RankedRows(node)
    if isinstance(node, Timeline):
        return TimelineRows(node, merger)
    if isinstance(node, History) or isinstance(node.window, CountWindow):
        return OrderedAggregate(node, merger)
    if isinstance(node.window, SessionGap):
        return SessionAggregate(node)
    return WindowedAggregate(node, marked=MARK in (wanted or ()))


def steps_of(node: Node) -> tuple[Step, ...]:
    """A stateless node as steps; none for a union, which only brings rows together."""
    match node:
        case Filter():
            return (Where(node.predicate),)
        case Branch():
            return (branch(node.predicates, node.index),)
        case Project():
            return (Select(node.columns),)
        case Windowed():
            return (IntoWindows(node.covering, node.time, window_kind(node.input, node.time)),)
        case Unnest():
            return (Unnested(node.list, node.name, node.outer, node.position),)
        case Lookup():
            return (LookedUp.of(node),)
        case Stamped():
            return (Stamp(node.name),)
    return ()
