"""Every operator gets an exchange of its own: stateful ones by their keys, the others evenly.

This is always right, and the ground on which the rules after it save exchanges. Where the user asks for
the central form, stateful operators have a single site instead, as the super-aggregates of the paper
on query-aware partitioning.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.stateful import Stateful
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.reconcile import largest
from anabranch.partitioning.requirement import all_keys, counted_keys, need_of
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import BY_TERMS, EVENLY


def exchange_each(draft: Draft, aims: Aims) -> Draft:
    """The draft with every subquery in an exchange of its own."""
    for subquery in draft.subqueries.values():
        node = subquery.node
        if not isinstance(node, Stateful):
            alone = replace(subquery, exchange=subquery.name, spread=EVENLY)
            draft = draft.with_subquery(alone, PartitioningSet())
            continue
        # Time would send each window elsewhere: only if there is nothing else
        keys = counted_keys(node)
        keys = keys if any(keys) else all_keys(node)
        terms = ((),) * len(keys) if aims.central else keys
        alone = replace(subquery, exchange=subquery.name, spread=BY_TERMS, terms=terms)
        draft = draft.with_subquery(alone, largest(need_of(subquery.name, node)))
    return draft
