"""A plan as plain values, short: what stands where and reads what. With figures, it is `explain/json.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anabranch.explain.words import operator_words, title_words
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import Subquery


def outline(plan: Plan, sinks: Mapping[str, str]) -> dict[str, Any]:
    """Streams, subqueries and outputs, each with what it reads; sinks as they describe themselves."""
    return {
        "streams": [
            {"name": one.name, "ordered": one.ordered.column, "lateness": one.lateness}
            for one in plan.streams.values()
        ],
        "subqueries": [
            {
                "name": one.name,
                "query": one.query,
                "title": title_words(one.node),
                "words": operator_words(one.node),
                "level": one.level,
                "exchange": one.exchange,
                "reads": list(dict.fromkeys(path.origin for path in one.paths)),
                "shaped": _inputs(one) if one.shaped else [],
            }
            for one in plan.subqueries.values()
        ],
        "outputs": [
            {
                "query": one.query,
                "sink": sinks.get(one.query, ""),
                "columns": {name: str(kind) for name, kind in one.schema.items()},
                "reads": list(dict.fromkeys(path.origin for path in one.paths)),
            }
            for one in plan.outputs
        ],
    }


def _inputs(subquery: Subquery) -> list[str]:
    """What comes to each input of a join that can have several shapes."""
    return [
        "+".join(dict.fromkeys(path.origin for path in subquery.paths if path.input == number))
        for number in range(subquery.inputs)
    ]
