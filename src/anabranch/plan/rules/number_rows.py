"""Below a join within a number of rows, both inputs are numbered in one order (C1: count windows).

The numbers are given on one site, which sees the times of all rows; the join itself is spread over a grid.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.graph import Join
from anabranch.language.join import Numbered
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import Path, Subquery


def number_rows(draft: Draft, aims: Aims) -> Draft:
    """The draft with the inputs of such joins numbered."""
    for name, subquery in list(draft.subqueries.items()):
        node = subquery.node
        if not isinstance(node, Join) or node.rows is None:
            continue
        made: dict[str, Subquery] = {}
        for number, side in enumerate(("left", "right")):
            other = node.parts[1 - number]
            numbered = Numbered(node.parts[number], other, first=number == 0)
            paths = tuple(
                replace(path, input=0 if path.input == number else 1) for path in subquery.paths
            )
            own = f"{name}-{side}"
            made[own] = Subquery(own, numbered, paths, subquery.query)
        parts = tuple(part.node for part in made.values())
        joined = replace(
            subquery,
            node=Join(parts, "inner", node.keys, node.predicate, node.suffixes, node.rows),
            paths=tuple(Path(own, input=number) for number, own in enumerate(made)),
        )
        # In the place of the join, for readers stand after those they read
        before: dict[str, Subquery] = {}
        for other_name, part in draft.subqueries.items():
            before |= {**made, name: joined} if other_name == name else {other_name: part}
        draft = replace(draft, subqueries=before)
    return draft
