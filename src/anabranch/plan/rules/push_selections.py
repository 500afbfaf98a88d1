"""Selections and projections move below the merge: they run where the rows come from.

They take every partitioning, so there is no reason to send what they drop; and with them out of the
way, operators that the partitioning suits can follow (Q6). A filter behind an operator becomes part of
its splitter in the same way (C6).
"""

from __future__ import annotations

from collections.abc import Callable

from anabranch.language.lookup import Lookup
from anabranch.language.stamped import Stamped
from anabranch.language.stateless import Branch, Filter, Project
from anabranch.language.unnest import Unnest
from anabranch.language.windowed import Windowed
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import Path, Subquery, steps_of

STEPS = (Filter, Branch, Project, Windowed, Unnest, Lookup, Stamped)


def push_selections(draft: Draft, aims: Aims) -> Draft:
    """The draft without selections and projections of their own."""
    for subquery in list(draft.subqueries.values()):
        if isinstance(subquery.node, STEPS):
            # As it stands by now: those below it have been pushed already
            draft = draft.without(subquery.name, _below(draft.subqueries[subquery.name]))
    return draft


def push_behind_updates(draft: Draft, aims: Aims) -> Draft:
    """The draft without those over results that replace earlier ones.

    A row and the one it replaces must meet the same steps in one place, so that a group that leaves the
    results is noticed.
    """
    for subquery in list(draft.subqueries.values()):
        if subquery.node.updates and isinstance(subquery.node, (Filter, Branch, Project)):
            draft = draft.without(subquery.name, _below(draft.subqueries[subquery.name]))
    return draft


def _below(subquery: Subquery) -> Callable[[Path], tuple[Path, ...]]:
    steps = steps_of(subquery.node)
    return lambda path: tuple(path.through(below, *steps) for below in subquery.paths)
