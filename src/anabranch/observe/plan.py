"""The plan as JSON, for programs; for people there is `plan/explain.py`."""

from __future__ import annotations

from typing import Any

from anabranch.plan.subquery import Path, Plan
from anabranch.settings import Settings


def describe_plan(plan: Plan, sites: int, settings: Settings) -> dict[str, Any]:
    """Streams, subqueries with their partitioning and inputs, and outputs; plain values only."""
    return {
        "sites": sites,
        "partitions": sites * settings.partitions_per_site,
        "streams": [
            {
                "name": stream.name,
                "ordered": stream.ordered.column,
                "lateness": stream.lateness,
                "columns": {name: str(stream.schema[name]) for name in stream.columns},
            }
            for stream in plan.streams.values()
        ],
        "subqueries": [
            {
                "name": subquery.name,
                "level": subquery.level,
                "home": subquery.home,
                "operator": str(subquery.node),
                "partitioning": list(subquery.partitioning),
                "inputs": [_path(path) for path in subquery.paths],
                "columns": {name: str(kind) for name, kind in subquery.node.schema.items()},
            }
            for subquery in sorted(plan.subqueries.values(), key=lambda part: part.level)
        ],
        "outputs": [
            {
                "query": output.query,
                "columns": {name: str(kind) for name, kind in output.schema.items()},
                "inputs": [_path(path) for path in output.paths],
            }
            for output in plan.outputs
        ],
    }


def _path(path: Path) -> dict[str, Any]:
    return {"origin": path.origin, "steps": [str(step) for step in path.steps]}
