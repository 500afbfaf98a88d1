"""What tells whether state of a checkpoint fits a subquery: what it does, how rows come to it, for whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.language.join import Join
from anabranch.language.numbered import Numbered
from anabranch.plan.subquery import Subquery
from anabranch.state.manifest import Manifest


def identified(subquery: Subquery) -> dict[str, Any]:
    """What the record of a subquery has to know it by."""
    return {
        "signature": subquery.node.signature, "placing": placing(subquery), "wanted": wanted(subquery),
    }  # fmt: skip


def placing(subquery: Subquery) -> str:
    """How rows are spread and brought together, as text: names play no part in it."""
    inputs = "; ".join(f"{{{', '.join(map(str, terms))}}}" for terms in subquery.terms)
    merged = f", {subquery.merger} merger" if subquery.merger else ""
    return f"{inputs} by {subquery.spread}{merged}"


def wanted(subquery: Subquery) -> list[str]:
    """The columns of the results that the state is kept for; none where it is the same for all."""
    if isinstance(subquery.node, (Join, Numbered)):
        return sorted(subquery.wanted or ())
    return []


def kept_state(manifest: Manifest | None) -> Mapping[str, list[str]]:
    """What a checkpoint has state of, by signature, with the columns that it is kept for."""
    records = manifest.subqueries.values() if manifest is not None else ()
    return {record.signature: record.wanted for record in records}
