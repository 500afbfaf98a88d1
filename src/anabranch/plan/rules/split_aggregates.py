"""Aggregates behind an exchange become a sub-aggregate at each sender and a super-aggregate (Q6).

WHERE has moved below with the selections, HAVING stays above: it needs whole groups. Senders make
sub-aggregates only where the last epoch has shown that it shrinks the rows.
"""

from __future__ import annotations

from dataclasses import replace

from anabranch.language.groups import Aggregate
from anabranch.language.ranked import Ranked
from anabranch.plan.draft import Aims, Draft
from anabranch.plan.subquery import BY_LANE


def split_aggregates(draft: Draft, aims: Aims) -> Draft:
    """The draft with every aggregate marked whose senders may sub-aggregate."""
    for subquery in draft.subqueries.values():
        below = draft.below(subquery)
        received = (draft.reads_streams(subquery) and subquery.spread != BY_LANE) or any(
            part.exchange != subquery.exchange for part in below
        )
        aggregates = isinstance(subquery.node, (Aggregate, Ranked))
        if received and aggregates and subquery.operator.combines:
            draft = draft.with_subquery(replace(subquery, combines=True))
    return draft
