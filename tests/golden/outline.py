"""The plan in a few lines, one per subquery and one per output."""

from __future__ import annotations

from anabranch.language.groups import Aggregate, History
from anabranch.language.node import Node
from anabranch.language.stateless import Union
from anabranch.plan.draft import Draft
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import BY_LANE, BY_TERMS, EVENLY, IN_GRID, Gather, Path, Subquery


def outline(plan: Plan | Draft) -> str:
    """What runs where, compactly.

    >>> from anabranch import Session
    >>> session = Session.in_process()
    >>> rows = session.stream("tcp", generator="packets", rows=10, ordered="time")
    >>> flows = "SELECT tb, srcIP, COUNT(*) AS n FROM tcp GROUP BY time/60 AS tb, srcIP"
    >>> query = session.query("flows", flows)
    >>> print(outline(session.plan()))
    flows@1: aggregate TUMBLE(60 AS tb) by (srcIP) from tcp, level 1
    flows = flows@1 select tb, srcIP, n
    """
    ordered = sorted(plan.subqueries.values(), key=lambda part: part.level)
    lines = [_subquery(part) for part in ordered]
    lines += [f"{output.query} = {_paths(output.paths)}" for output in plan.outputs]
    return "\n".join(lines)


def _subquery(part: Subquery) -> str:
    placed = ""
    if part.exchange:
        by = " = ".join(f"({', '.join(map(str, terms))})" for terms in part.terms)
        how = {EVENLY: " evenly", BY_LANE: f" by lanes {by}", BY_TERMS: f" by {by}",
               IN_GRID: " in a grid"}[part.spread]  # fmt: skip
        placed = f"{how}{'' if part.exchange == part.name else f' with {part.exchange}'}"
    split = ", sub-aggregated" if part.combines else ""
    level = f", level {part.level}" if part.level else ""
    return f"{part.name}: {_kind(part.node)}{placed} from {_paths(part.paths)}{split}{level}"


def _kind(node: Node) -> str:
    match node:
        case History():
            return f"history {node.rows}"
        case Aggregate():
            return f"aggregate {node.window}{'' if node.emit == 'final' else ' on update'}"
    return str(node).lower() if isinstance(node, (Union, Gather)) else str(node)


def _paths(paths: tuple[Path, ...]) -> str:
    return " and ".join(_path(path) for path in paths)


def _path(path: Path) -> str:
    return " ".join([path.origin, *map(str, path.steps)])
