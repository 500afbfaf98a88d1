"""A join without equal keys gets a grid over the sites, in which every row meets every row once (C3)."""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.join import Join
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import IN_GRID


def lay_grids(draft: Draft, aims: Aims) -> Draft:
    """The draft with a grid for every join that no partitioning suits."""
    for subquery in draft.subqueries.values():
        if isinstance(subquery.node, Join) and not subquery.node.keys[0] and not aims.central:
            draft = draft.with_subquery(replace(subquery, spread=IN_GRID))
    return draft
