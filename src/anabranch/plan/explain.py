"""The plan as text that a person reads from top to bottom."""

from __future__ import annotations

import textwrap

from anabranch.partitioning.choice import Choice
from anabranch.plan.subquery import Path, Plan
from anabranch.settings import Settings


def explain_plan(plan: Plan, sites: int, settings: Settings, choice: Choice) -> str:
    """Streams, subqueries with their partitioning and inputs, outputs, and why they are so."""
    lines = ["streams"]
    for stream in plan.streams.values():
        lines.append(
            f"  {stream.name}: ordered by {stream.ordered.column}, lateness {stream.lateness}; "
            f"reads {', '.join(stream.columns)}"
        )
    if plan.subqueries:
        lines.append("subqueries")
    for subquery in sorted(plan.subqueries.values(), key=lambda part: part.level):
        by = ", ".join(subquery.partitioning) or "nothing (a single group)"
        count = f"{sites * settings.partitions_per_site} partitions on {sites} site(s)"
        if subquery.home != subquery.name:
            count = f"the partitions of {subquery.home}"
        lines += [
            f"  {subquery.name} (level {subquery.level})",
            f"    {subquery.node}",
            f"    partitioned by {by}: {count}",
        ]
        for path in subquery.paths:
            origin = plan.subqueries.get(path.origin)
            local = origin is not None and origin.level == subquery.level
            lines.append(f"    from {_path(path)}{', no exchange' if local else ''}")
    lines.append("outputs")
    for output in plan.outputs:
        lines.append(f"  {output.query}: {', '.join(output.schema)}")
        lines += [f"    from {_path(path)}" for path in output.paths]
    used = "used" if settings.strategy == "subquery" else "with the setting strategy='subquery'"
    lines.append(f"one partitioning for all ({used})")
    lines.append(textwrap.indent(choice.explain(), "  "))
    return "\n".join(lines)


def _path(path: Path) -> str:
    return " -> ".join([path.origin, *(str(step) for step in path.steps)])
