"""From query graph to plan: a draft, the rules in their order, levels, and the last gate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeAlias

from anabranch.errors import PlanningError
from anabranch.language.expression import Expression
from anabranch.language.join import Join
from anabranch.language.lookup import tables_in
from anabranch.language.node import Node, Stream
from anabranch.language.window import Everything
from anabranch.operators.partials import SEQ
from anabranch.plan.check import check_plan
from anabranch.plan.columns import columns_read
from anabranch.plan.draft import PLAIN, Aims, Draft, draft
from anabranch.plan.plan import Plan, StreamPlan
from anabranch.plan.rules.absorb_unions import absorb_unions
from anabranch.plan.rules.exchange_each import exchange_each
from anabranch.plan.rules.fuse_neighbours import fuse_neighbours
from anabranch.plan.rules.gather_results import gather_results
from anabranch.plan.rules.lay_grids import lay_grids
from anabranch.plan.rules.merge_joins import merge_joins
from anabranch.plan.rules.number_rows import number_rows
from anabranch.plan.rules.push_selections import push_behind_updates, push_selections
from anabranch.plan.rules.push_suited import push_suited
from anabranch.plan.rules.split_aggregates import split_aggregates
from anabranch.plan.subquery import BY_LANE, IN_GRID, Subquery, needs_merger
from anabranch.settings import TRANSPARENT

Rule: TypeAlias = Callable[[Draft, Aims], Draft]

RULES: tuple[Rule, ...] = (
    # First, so that stateful operators become neighbours of each other and of the streams.
    push_selections,
    # After the selections, which may stand on a union, and before anything asks who reads whom.
    absorb_unions,
    # Before operators have exchanges: there is one less to place.
    merge_joins,
    # What it adds wants exchanges too.
    number_rows,
    # The plan that is right whatever the partitioning: the rules below only save exchanges.
    exchange_each,
    # Its exchange is its own: the rules after this one leave it alone.
    lay_grids,
    # Before fusing, which takes exchanges as they are.
    push_suited,
    fuse_neighbours,
    # Last of those that look at operators: only what is behind an exchange is worth splitting.
    split_aggregates,
    # Only outputs are left to change.
    gather_results,
)

STRATEGIES: Mapping[str, Collection[Rule]] = {
    "subquery": RULES,
    # Every site works on the whole query; rows are exchanged before each stateful operator.
    "query": [rule for rule in RULES if rule not in (push_suited, fuse_neighbours)],
    # Every operator, stateless ones too, has sites of its own.
    "operator": [
        push_behind_updates,
        number_rows,
        exchange_each,
        lay_grids,
        split_aggregates,
        gather_results,
    ],
}


def compile_queries(
    streams: Mapping[str, Stream], queries: Mapping[str, Node], lateness: Mapping[str, int],
    allow_unbounded: bool, whole: Collection[str] = (), aims: Aims = PLAIN,
    strategy: str = "subquery", merge: str = TRANSPARENT,
) -> Plan:  # fmt: skip
    """The plan of a query set; streams that no query reads are left out.

    Of the streams in `whole` every column is read, of the others only what the queries need.
    """
    if not queries:
        raise PlanningError("There is no query to run: add one with session.query(name, ...).")
    made = draft(queries)
    _check_bounded(made, allow_unbounded)
    for rule in STRATEGIES[strategy]:
        made = rule(made, aims)
    components = _components(queries)
    read, wanted = columns_read(made, aims.kept)
    subqueries = {
        part.name: replace(
            part,
            component=components[min(part.node.streams)],
            columns=tuple(tuple(sorted(names)) for names in read[part.name]),
            wanted=tuple(sorted(wanted.get(part.name, ()))),
            merger=merge if needs_merger(part.node) else "",
        )
        for part in _levelled(made)
    }
    used = sorted(set().union(*(node.streams for node in queries.values())))
    plans = {
        name: _stream(
            streams[name], lateness[name], components[name], subqueries, aims.given.terms(name),
            wanted.get(name, set()) | (set(streams[name].schema) if name in whole else set()),
        )
        for name in used
    }  # fmt: skip
    _check_clocks(plans, components)
    identity = _identity(streams, queries, lateness, subqueries, used)
    tables = sorted(set().union(*(tables_in(node) for node in queries.values())))
    plan = Plan(plans, subqueries, made.outputs, identity, dict(made.sets), tuple(tables))
    check_plan(plan)
    return plan


_ACCEPT = (
    "accept it with the setting allow_unbounded_state=True (in a SQL file SET allow_unbounded_state = "
    "true)"
)


def _check_bounded(made: Draft, allow_unbounded: bool) -> None:
    if allow_unbounded:
        return
    for subquery in made.subqueries.values():
        reason = _unbounded(subquery.node)
        if reason:
            error = PlanningError(f"Query '{subquery.query}' {reason}, or {_ACCEPT}.")
            error.query = subquery.query
            raise error


def _unbounded(node: Node) -> str:
    """Why the state of this part of a query would grow for ever, and what to write; empty if it does not."""
    if isinstance(getattr(node, "window", None), Everything):
        return (
            "aggregates without a window, so its state would grow for ever. Group by a window of the "
            "ordered attribute"
        )
    if isinstance(node, Join) and not node.bounded:
        return (
            "joins rows however far apart in time they are, so its state would grow for ever. "
            f"{_bound_to_add(node)}"
        )
    return ""


def _bound_to_add(node: Join) -> str:
    """What is missing in the condition of a join, by the names its columns have there."""
    times = node.time_names()
    if len(times) < len(node.parts):
        return (
            "One of its inputs has no ordered attribute any more: keep it in the select, and mind that a "
            "full join loses it"
        )
    stamps = any(part.ordered and part.ordered.timestamps for part in node.parts)
    apart = "INTERVAL '1' MINUTE" if stamps else "60"
    pairs = [(i, j) for i in range(len(times)) for j in range(len(times)) if i != j]
    first, second = next((i, j) for i, j in pairs if node.bounds[i][j] is None)
    example = f"{times[second]} BETWEEN {times[first]} - {apart} AND {times[first]} + {apart}"
    return (
        f"Nothing says how much later {times[second]} may be than {times[first]}: conditions count that "
        "compare the two, give or take a constant, and stand in ON, joined by AND. Say, for instance, "
        f"{example}"
    )


def _levelled(made: Draft) -> list[Subquery]:
    """The subqueries with their levels: behind an exchange, one above all that they read."""
    levels: dict[str, int] = {}
    found = []
    for subquery in made.subqueries.values():
        below = max((levels[part.name] for part in made.below(subquery)), default=0)
        opens = subquery.exchange not in levels
        levels[subquery.name] = below + 1 if opens else levels[subquery.exchange]
        found.append(replace(subquery, level=levels[subquery.name]))
    return found


def _identity(
    streams: Mapping[str, Stream], queries: Mapping[str, Node], lateness: Mapping[str, int],
    subqueries: Mapping[str, Subquery], used: list[str],
) -> dict[str, str]:  # fmt: skip
    """What a checkpoint of the plan belongs to."""
    identity = {f"stream {name}": _describe(streams[name], lateness[name]) for name in used}
    identity |= {f"query {name}": node.described() for name, node in queries.items()}
    # With another merger, rows held back would be lost, or rows to come be earlier than rows kept
    identity |= {
        f"merger of {name}": part.merger for name, part in subqueries.items() if part.merger
    }
    return identity | {
        f"partitioning of {name}": f"{{{', '.join(part.partitioning)}}}, as {part.exchange}"
        f"{', in lanes' if part.spread == BY_LANE else ''}"
        f"{', in a grid' if part.spread == IN_GRID else ''}"
        for name, part in subqueries.items()
        if part.stateful
    }


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
        names = sorted(node.streams)
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
    lane_terms: tuple[Expression, ...], columns: set[str],
) -> StreamPlan:  # fmt: skip
    assert stream.ordered
    columns = columns | {stream.ordered.column}
    lanes = (
        part.exchange
        for part in subqueries.values()
        if part.spread == BY_LANE and any(path.origin == stream.name for path in part.paths)
    )
    return StreamPlan(
        stream.name, stream.schema, stream.ordered, lateness,
        tuple(name for name in stream.schema if name in columns), component, SEQ in columns,
        next(lanes, None), lane_terms, stream.late_rows,
    )  # fmt: skip
