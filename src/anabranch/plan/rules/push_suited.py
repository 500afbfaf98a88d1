"""Operators that the partitioning of the streams suits run on its partitions, below the merge (Q6).

Bottom-up: an operator that reads streams, or operators already there, follows if the set suits it. Its
terms are functions of its keys, so every operator can compute its partitions from its own input.
Where the streams come partitioned by just this set, their rows stay in their lanes (Q5).
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.stateful import Stateful
from anabranch.partitioning.choice import ComponentChoice
from anabranch.partitioning.cost import comes_so
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.reconcile import compatible
from anabranch.partitioning.requirement import NodeNeed, need_of
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import BY_LANE, BY_TERMS, IN_GRID
from anabranch.plan.terms import terms_over


def push_suited(draft: Draft, aims: Aims) -> Draft:
    """The draft with one exchange for all operators that the streams' partitioning suits."""
    exchanges: dict[tuple[str, ...], str] = {}
    for name in draft.subqueries:
        subquery = draft.subqueries[name]
        if not isinstance(subquery.node, Stateful) or subquery.spread == IN_GRID:
            continue
        need = need_of(name, subquery.node)
        part = _part_for(need, aims)
        if part is None:
            continue
        exchange = exchanges.get(part.streams, name)
        if not all(below.exchange == exchange for below in draft.below(subquery)):
            continue
        exchanges[part.streams] = exchange
        chosen = part.winner.partitioning
        draft = draft.with_subquery(
            replace(
                subquery,
                exchange=exchange,
                terms=terms_over(subquery.node, need, chosen),
                spread=BY_LANE if _comes_so(part, chosen, aims.given) else BY_TERMS,
            ),
            chosen,
        )
    return draft


def _part_for(need: NodeNeed, aims: Aims) -> ComponentChoice | None:
    """The part of the choice that suits the need."""
    for part in aims.choice.parts if aims.choice else ():
        if need.terms_by_stream.keys() <= set(part.streams):
            return part if compatible(part.winner.partitioning, need) else None
    return None


def _comes_so(part: ComponentChoice, chosen: PartitioningSet, given: PartitioningSet) -> bool:
    """Whether the one stream comes partitioned as chosen.

    Lanes of several streams have nothing to do with each other, even if their sets look alike.
    """
    return len(part.streams) == 1 and comes_so(chosen, given).issuperset(part.streams)
