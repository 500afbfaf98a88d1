"""From query graph to plan: one subquery per stateful operator, stateless steps before it.

Nodes with the same signature become the same subquery, so queries that share a prefix share its work.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from anabranch.errors import PlanningError
from anabranch.language.aggregate import UserAggregate
from anabranch.language.expression import columns_of, type_of
from anabranch.language.graph import (
    Aggregate,
    Branch,
    Filter,
    History,
    Join,
    Node,
    Project,
    Stream,
    Union,
    streams_of,
)
from anabranch.language.window import CountWindow, Everything
from anabranch.operators.functions import ordered_by_time, partials_for
from anabranch.operators.stateless import Select, Where, branch, needed
from anabranch.partitioning.choice import Choice
from anabranch.plan.check import check_plan
from anabranch.plan.placing import Placer
from anabranch.plan.subquery import Output, Path, Plan, Stateful, StreamPlan, Subquery
from anabranch.routing.hashing import hashable


@dataclass
class _Compiler:
    placer: Placer
    subqueries: dict[str, Subquery] = field(default_factory=dict)
    by_signature: dict[str, str] = field(default_factory=dict)
    user_aggregates: dict[str, UserAggregate] = field(default_factory=dict)

    def paths(self, node: Node, query: str) -> tuple[Path, ...]:
        match node:
            case Stream():
                return (Path(node.name),)
            case Filter():
                step = Where(node.predicate)
                return tuple(path.then(step) for path in self.paths(node.input, query))
            case Branch():
                where = branch(node.predicates, node.index)
                return tuple(path.then(where) for path in self.paths(node.input, query))
            case Project():
                select = Select(node.columns)
                return tuple(path.then(select) for path in self.paths(node.input, query))
            case Union():
                return tuple(path for part in node.parts for path in self.paths(part, query))
            case Aggregate() | History():
                return (Path(self.subquery(node, query)),)
            case Join():
                raise PlanningError(
                    f"Query '{query}' joins two inputs. Joins cannot be run yet: they are understood, and "
                    "session.partitioning() takes them into account. To run the other queries, leave this "
                    "one out of the session."
                )
        raise PlanningError(f"There is no plan for '{node}' yet.")

    def subquery(self, node: Stateful, query: str) -> str:
        for user in (part.call.user for part in node.aggregates):
            if user and self.user_aggregates.setdefault(user.name, user) is not user:
                raise PlanningError(
                    f"Query '{query}' uses a second, different aggregate called '{user.name}': "
                    "give each its own name."
                )
        known = self.by_signature.get(node.signature)
        if known:
            return known
        paths = self.paths(node.input, query)
        for key in node.keys:
            kind = type_of(key.expression, node.input.schema, f"GROUP BY {key}")
            if not hashable(kind):
                raise PlanningError(
                    f"Query '{query}' groups by '{key}', which is a {kind}: such a value cannot be "
                    "hashed. Group by a field of it, or cast it to a string."
                )
        name = self._name(query)
        placing = self.placer.place(
            name, node, [self.subqueries.get(path.origin) for path in paths]
        )
        self.by_signature[node.signature] = name
        self.subqueries[name] = Subquery(
            name, node, paths, placing.level, "", placing.home, placing.terms
        )
        return name

    def _name(self, query: str) -> str:
        """The query's name with `@` (streams and queries cannot have it), numbered if it has several."""
        taken = sum(name.split("@")[0] == query for name in self.subqueries)
        return f"{query}@{taken + 1}"


def compile_queries(
    streams: Mapping[str, Stream], queries: Mapping[str, Node], lateness: Mapping[str, int],
    allow_unbounded: bool, whole: Collection[str] = (), choice: Choice | None = None,
) -> Plan:  # fmt: skip
    """The plan of a query set; streams that no query reads are left out.

    Of the streams in `whole` every column is read, of the others only what the queries need. With a
    `choice` of how streams are partitioned, subqueries that it suits need no exchange between them.
    """
    if not queries:
        raise PlanningError("There is no query to run: add one with session.query(name, ...).")
    compiler = _Compiler(Placer(choice))
    outputs = tuple(
        Output(name, compiler.paths(node, name), node.schema) for name, node in queries.items()
    )
    for subquery in compiler.subqueries.values():
        unbounded = isinstance(getattr(subquery.node, "window", None), Everything)
        if unbounded and not allow_unbounded:
            raise PlanningError(
                f"Query '{subquery.name.split('@')[0]}' aggregates without a window, so its state "
                "would grow for ever. Group by a window of the ordered attribute, or accept it "
                "with the setting allow_unbounded_state=True."
            )
    components = _components(queries)
    subqueries = {
        name: replace(part, component=components[min(streams_of(part.node))])
        for name, part in compiler.subqueries.items()
    }
    used = sorted(set().union(*(streams_of(node) for node in queries.values())))
    identity = {f"stream {name}": _describe(streams[name], lateness[name]) for name in used}
    identity |= {f"query {name}": node.signature for name, node in queries.items()}
    identity |= {
        f"partitioning of {name}": f"{{{', '.join(part.partitioning)}}}, as {part.home}"
        for name, part in subqueries.items()
    }
    plans = {
        name: _stream(streams[name], lateness[name], components[name], subqueries, outputs, whole)
        for name in used
    }
    _check_clocks(plans, components)
    plan = Plan(plans, subqueries, outputs, identity)
    check_plan(plan)
    return plan


def _describe(stream: Stream, lateness: int) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in stream.schema.items())
    assert stream.ordered
    return f"({columns}) ordered by {stream.ordered.column}, lateness {lateness}"


def _components(queries: Mapping[str, Node]) -> dict[str, str]:
    """Streams that meet in a query share a watermark: stream -> name of its component."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent.setdefault(name, name) != name:
            name = parent[name]
        return name

    for node in queries.values():
        names = sorted(streams_of(node))
        for name in names:
            parent[find(name)] = find(names[0])
    return {name: find(name) for name in list(parent)}


def _check_clocks(plans: Mapping[str, StreamPlan], components: Mapping[str, str]) -> None:
    for name, plan in plans.items():
        other = plans[components[name]]
        if plan.ordered.timestamps != other.ordered.timestamps:
            raise PlanningError(
                f"Streams '{name}' and '{other.name}' meet in a query, but one is ordered by a "
                f"timestamp ('{plan.ordered.column}' / '{other.ordered.column}') and the other by an "
                "integer: their times cannot be compared. Convert one of them before."
            )


def _stream(
    stream: Stream, lateness: int, component: str, subqueries: Mapping[str, Subquery],
    outputs: tuple[Output, ...], whole: Collection[str],
) -> StreamPlan:  # fmt: skip
    assert stream.ordered
    columns = set(stream.schema) if stream.name in whole else {stream.ordered.column}
    numbered = False
    for subquery in subqueries.values():
        for path in subquery.paths:
            if path.origin == stream.name:
                columns |= needed(path.steps, _wanted(subquery.node))
                numbered |= needs_order(subquery.node)
    for output in outputs:
        for path in output.paths:
            if path.origin == stream.name:
                columns |= needed(path.steps, output.schema)
    return StreamPlan(
        stream.name, stream.schema, stream.ordered, lateness,
        tuple(name for name in stream.schema if name in columns), component, numbered,
    )  # fmt: skip


def needs_order(node: Stateful) -> bool:
    """Whether the operator depends on the order of rows beyond their time."""
    if isinstance(node, History) or isinstance(node.window, CountWindow):
        return True
    return ordered_by_time(partials_for(node.aggregates))


def _wanted(node: Stateful) -> set[str]:
    """The columns a stateful operator reads."""
    wanted = {name for key in node.keys for name in columns_of(key.expression)}
    for aggregate in node.aggregates:
        for argument in aggregate.call.arguments:
            wanted |= set(columns_of(argument))
    if node.input.ordered:
        wanted.add(node.input.ordered.column)
    if isinstance(node, History):
        wanted |= set(node.input.schema)
    return wanted
