"""A union becomes part of the mergers that read it: they take rows from all its inputs (C6)."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.language.stateless import Union
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import Path, Subquery


def absorb_unions(draft: Draft, aims: Aims) -> Draft:
    """The draft without unions of their own."""
    for subquery in list(draft.subqueries.values()):
        if isinstance(subquery.node, Union):
            draft = draft.without(subquery.name, _inputs(draft.subqueries[subquery.name]))
    return draft


def _inputs(union: Subquery) -> Callable[[Path], tuple[Path, ...]]:
    return lambda path: tuple(path.through(below) for below in union.paths)
