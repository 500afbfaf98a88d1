"""An operator that the exchange below it already suits runs there, without one of its own (C6)."""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.stateful import Stateful
from anabranch.partitioning.reconcile import compatible
from anabranch.partitioning.requirement import need_of
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import IN_GRID
from anabranch.plan.terms import terms_over


def fuse_neighbours(draft: Draft, aims: Aims) -> Draft:
    """The draft with neighbours that need the same partitioning in one exchange."""
    for name in draft.subqueries:
        subquery = draft.subqueries[name]
        exchanges = {below.exchange for below in draft.below(subquery)}
        if subquery.exchange != name or draft.reads_streams(subquery) or len(exchanges) != 1:
            continue
        exchange = draft.subqueries[exchanges.pop()]
        if IN_GRID in (subquery.spread, exchange.spread):
            continue  # rows of a grid are where they met, whatever they hold
        if aims.central and exchange.central:
            draft = draft.with_subquery(
                replace(subquery, exchange=exchange.name)
            )  # all groups are whole
        elif isinstance(subquery.node, Stateful):
            need, by = need_of(name, subquery.node), draft.sets[exchange.name]
            if compatible(by, need):
                terms = terms_over(subquery.node, need, by)
                draft = draft.with_subquery(replace(subquery, exchange=exchange.name, terms=terms))
    return draft
