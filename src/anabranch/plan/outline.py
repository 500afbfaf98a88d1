"""The plan in a few lines, one per subquery and one per output: for golden files and quick looks."""

from __future__ import annotations

from anabranch.language.graph import History
from anabranch.plan.subquery import Path, Plan, Subquery


def outline(plan: Plan) -> str:
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
    node = part.node
    kind = f"history {node.rows}" if isinstance(node, History) else f"aggregate {node.window}"
    update = "" if isinstance(node, History) or node.emit == "final" else " on update"
    home = "" if part.home == part.name else f" with {part.home}"
    return (
        f"{part.name}: {kind}{update} by ({', '.join(part.partitioning)}){home} "
        f"from {_paths(part.paths)}, level {part.level}"
    )


def _paths(paths: tuple[Path, ...]) -> str:
    return " and ".join(_path(path) for path in paths)


def _path(path: Path) -> str:
    return " ".join([path.origin, *map(str, path.steps)])
