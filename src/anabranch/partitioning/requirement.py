"""What every node of a query set needs of the partitioning, in terms of source attributes.

A node needs that rows which must meet (one group, one join key) come to the same site. Its terms say
when they must: any non-empty set of functions of them will do for an aggregate, a history and an
equi-join; selections, projections and unions take every partitioning. Which sets suit a need is in
`reconcile`, how needs hang together in `tree`.

Terms are traced through queries that read queries. Three kinds do not count:

- What cannot be computed from the attributes of a source row, such as the result of an aggregate.
- What two ways from the same stream compute differently (one row cannot go to two sites).
- What reads the ordered attribute. Its groups would change sites with every window: windows that
  overlap share panes, which would then lie on different sites, and the rows of one moment, which
  all have nearly the same time, would all go to one site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias
from weakref import WeakKeyDictionary

from anabranch.errors import PlanningError
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Named,
    columns_of,
    parts_of,
    substitute,
    type_of,
)
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.lookup import Lookup
from anabranch.language.node import Node, Stream, in_order
from anabranch.language.numbered import Numbered
from anabranch.language.ranked import Ranked
from anabranch.language.stamped import Stamped
from anabranch.language.stateful import Stateful
from anabranch.language.stateless import Branch, Filter, Project, Union
from anabranch.language.timeline import Timeline
from anabranch.language.unnest import Unnest
from anabranch.language.windowed import Windowed
from anabranch.partitioning.term import Attribute, alike, canonical, text_of

Kind: TypeAlias = Literal["aggregate", "join", "stateless"]
KINDS = ("aggregate", "join", "stateless")

MOST_TRACED = 1_000
"""Parts of a term that streams may be partitioned by: larger ones would take long to compare."""

Lineage: TypeAlias = Mapping[str, Mapping[str, Expression]]
"""For each stream that rows come from: the columns that are functions of its attributes."""


@dataclass(frozen=True)
class NodeNeed:
    """The terms that decide which rows must meet in a node.

    `terms_by_stream` has for each stream the node's rows come from equally many terms: rows, of
    whichever stream, meet only if they agree on all of them, place by place. So the terms of a join
    pair up, and so do the keys of an aggregate over a union. Above a join, a column counts if it is
    a function of the join's terms, and then on the streams of both sides; a column that an outer
    join fills with NULL does not count, as the filled rows are on all sites.
    """

    name: str
    kind: Kind
    terms_by_stream: Mapping[str, tuple[Expression, ...]]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PlanningError(
                f"Node '{self.name}' is of kind '{self.kind}'; expected one of {', '.join(KINDS)}."
            )
        counts = {stream: len(terms) for stream, terms in self.terms_by_stream.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"{stream} has {count}" for stream, count in counts.items())
            raise PlanningError(
                f"The terms of '{self.name}' must pair up, one of each stream: {found}."
            )

    @property
    def stateful(self) -> bool:
        return self.kind != "stateless"

    def __str__(self) -> str:
        sets = ", ".join(
            f"{stream} {{{', '.join(map(text_of, terms))}}}"
            for stream, terms in self.terms_by_stream.items()
        )
        return f"{self.name}: {self.kind}{f' of {sets}' if self.stateful else ''}"


def need_of(name: str, node: Node) -> NodeNeed:
    """What a node of the graph needs."""
    match node:
        case Aggregate() | History() | Ranked() | Timeline():
            traced = trace(node.input)
            keys = [_trace_term(key.expression, traced) for key in node.keys]
            return NodeNeed(name, "aggregate", _aligned(keys, traced))
        case Numbered():
            return NodeNeed(name, "aggregate", _aligned([], trace(node.input)))
        case Join():
            return join_need(name, node.parts, node.keys)
    return NodeNeed(name, "stateless", {})


def counted_keys(node: Stateful) -> tuple[tuple[Expression, ...], ...]:
    """The keys whose terms count, over each input of the node, in the order of the need's terms."""
    if isinstance(node, Numbered):
        return ((), ())
    if isinstance(node, Join):
        sides = [trace(part) for part in node.parts]
        groups = zip(*node.keys, strict=True)
        counted = [group for group in groups if _meeting(node.parts, group, sides)]
        return tuple(zip(*counted, strict=True)) if counted else ((),) * len(sides)
    traced = trace(node.input)
    return (tuple(key.expression for key in node.keys if _trace_term(key.expression, traced)),)


def all_keys(node: Stateful) -> tuple[tuple[Expression, ...], ...]:
    """All keys over each input of the node, also those that do not count."""
    if isinstance(node, Numbered):
        return ((), ())
    if isinstance(node, Join):
        return node.keys
    return (tuple(key.expression for key in node.keys),)


def join_need(name: str, parts: Sequence[Node], keys: Sequence[Sequence[Expression]]) -> NodeNeed:
    """What an equi-join needs, given for each of its inputs the expressions that must be equal."""
    sides = [trace(part) for part in parts]
    terms = [_meeting(parts, group, sides) for group in zip(*keys, strict=True)]
    return NodeNeed(name, "join", _aligned(terms, _all(sides)))


def _all(sides: Sequence[Lineage]) -> Lineage:
    return {stream: columns for side in sides for stream, columns in side.items()}


def _meeting(
    parts: Sequence[Node], group: Sequence[Expression], sides: Sequence[Lineage]
) -> Mapping[str, Expression] | None:
    """The terms of an equality on the streams of all sides, or None if it does not count."""
    kinds = [type_of(key, part.schema, "join") for key, part in zip(group, parts, strict=True)]
    # Equal values of different types need not hash alike; integers do, whatever their width
    if not all(kind == kinds[0] for kind in kinds) and not all(k.is_integer() for k in kinds):
        return None
    found: Mapping[str, Expression] | None = {}
    for key, side in zip(group, sides, strict=True):
        terms = _trace_term(key, side)
        found = _merge(found, terms) if found is not None and terms else None
    return found


_traced: WeakKeyDictionary[Node, Lineage] = WeakKeyDictionary()
"""What was found of nodes: each is asked for again by all that is above it."""


def trace(node: Node) -> Lineage:
    """Where the columns of a node come from; columns that cannot be traced are left out."""
    if node not in _traced:
        for part in in_order(node):
            if part not in _traced:
                _traced[part] = _trace_node(part, [_traced[below] for below in part.inputs])
    return _traced[node]


def attributes_of(stream: Stream) -> dict[str, Expression]:
    """The columns of a stream as attributes, for terms that are written by hand."""
    ordered = stream.ordered and stream.ordered.column
    return {
        name: Attribute(name, kind, name == ordered, position)
        for position, (name, kind) in enumerate(stream.schema.items())
    }


def _trace_node(node: Node, inputs: list[Lineage]) -> Lineage:
    match node:
        case Stream():
            return {node.name: attributes_of(node)}
        case Filter() | Branch() | Windowed() | Unnest() | Lookup() | Stamped():
            return inputs[0]
        case Project():
            return _compute(node.columns, inputs[0])
        case Union():
            return _unite(inputs)
        case Aggregate():
            # The window's own columns are functions of time at best: they do not count anyway
            return _compute(node.keys, inputs[0])
        case Numbered():
            return inputs[0]
        case History() | Ranked() | Timeline():
            return {stream: dict(columns) for stream, columns in inputs[0].items()}
        case Join():
            return _joined(node, inputs)
    raise PlanningError(f"There is no way to trace the columns of '{node}' to the streams yet.")


def _joined(node: Join, sides: list[Lineage]) -> Lineage:
    """The columns that an equality of the join is between: they count on the streams of all sides."""
    known: dict[str, Mapping[str, Expression]] = {}
    for group in zip(*node.keys, strict=True):
        terms = _meeting(node.parts, group, sides)
        for number in node.certain:
            key = group[number]
            if terms and isinstance(key, Column):
                known[node.names[number][key.name]] = terms
    return {
        stream: {name: terms[stream] for name, terms in known.items()} for stream in _all(sides)
    }


def _compute(columns: Sequence[Named], source: Lineage) -> Lineage:
    return {
        stream: {
            column.name: canonical(substitute(column.expression, known))
            for column in columns
            if _is_known(column.expression, known)
        }
        for stream, known in source.items()
    }


def _is_known(expression: Expression, columns: Mapping[str, Expression]) -> bool:
    """Whether it can be computed; constants split nothing and do not count, nor does what is very large."""
    read = set(columns_of(expression))
    if not read or not read <= columns.keys():
        return False
    return _weight(expression) * max(_weight(columns[name]) for name in read) <= MOST_TRACED


def _weight(expression: Expression) -> int:
    return expression.weight if isinstance(expression, Call) else 1


def _unite(parts: Sequence[Lineage]) -> Lineage:
    """The columns of a union: a stream that comes in several ways must bring the same in each."""
    united: dict[str, dict[str, Expression]] = {}
    for part in parts:
        for stream, columns in part.items():
            if stream not in united:
                united[stream] = dict(columns)
                continue
            before = united[stream]
            united[stream] = {
                name: term
                for name, term in before.items()
                if name in columns and alike(term, columns[name])
            }
    return united


def _trace_term(term: Expression, source: Lineage) -> Mapping[str, Expression] | None:
    """The term on each stream, or None if it does not count."""
    traced = _compute((Named("term", term),), source)
    found = {stream: columns["term"] for stream, columns in traced.items() if columns}
    if len(found) < len(source) or any(map(is_temporal, found.values())):
        return None
    return found


def _merge(
    left: Mapping[str, Expression], right: Mapping[str, Expression]
) -> Mapping[str, Expression] | None:
    """The terms of both sides; on a stream that is on both, they must be the same."""
    if all(alike(left[stream], right[stream]) for stream in left.keys() & right.keys()):
        return {**left, **right}
    return None


def is_temporal(term: Expression) -> bool:
    """Whether a traced term reads the ordered attribute of its stream."""
    return any(attribute.ordered for attribute in attributes_in(term))


def attributes_in(term: Expression) -> list[Attribute]:
    """The attributes a term reads, as far as their streams are known."""
    return [part for part in parts_of(term) if isinstance(part, Attribute)]


def _aligned(
    terms: Sequence[Mapping[str, Expression] | None], streams: Lineage
) -> dict[str, tuple[Expression, ...]]:
    counted = [term for term in terms if term]
    return {stream: tuple(term[stream] for term in counted) for stream in streams}
