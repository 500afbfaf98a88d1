"""Below a join within a number of rows, both inputs are numbered in one order (C1: count windows).

The numbers are given on one site, which sees the times of all rows; the join itself is spread over a grid.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.join import Join
from anabranch.language.numbered import numbered
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import Path, Subquery


def number_rows(draft: Draft, aims: Aims) -> Draft:
    """The draft with the inputs of such joins numbered."""
    for name, subquery in list(draft.subqueries.items()):
        node = subquery.node
        if not isinstance(node, Join) or node.rows is None:
            continue
        joined = numbered(node)
        made: dict[str, Subquery] = {}
        for number, (side, part) in enumerate(zip(("left", "right"), joined.parts, strict=True)):
            paths = tuple(
                replace(path, input=0 if path.input == number else 1) for path in subquery.paths
            )
            made[f"{name}-{side}"] = Subquery(f"{name}-{side}", part, paths, subquery.query)
        paths = tuple(Path(own, input=number) for number, own in enumerate(made))
        made[name] = replace(subquery, node=joined, paths=paths)
        # In the place of the join, for readers stand after those they read
        before: dict[str, Subquery] = {}
        for other in draft.subqueries.values():
            before |= made if other.name == name else {other.name: other}
        draft = replace(draft, subqueries=before)
    return draft
