"""Figs 7 and 8 of the paper on plan-aware balancing: balancing and re-optimising, each alone and together."""

from __future__ import annotations

from typing import Any

from anabranch.bench.plan_runs import PlanCourse, PlanTraffic
from anabranch.bench.plan_shared import PlanExperiments, ratio
from anabranch.settings import FIXED_PLANS, NONE

COMPARED_AT = 120.0
"""Seconds of the run at which results are compared: a minute and a half after the change."""
CHANGE = PlanTraffic(
    rates=(100, 100, 100), window=60.0, seconds=200.0, keys=800, change=30.0, later=(100, 5, 5)
)
"""Figs 7 and 8: B and C fall to a twentieth after half a minute."""
WAYS = {
    "none": {"plans": FIXED_PLANS, "policy": NONE},
    "balancing": {"plans": FIXED_PLANS},
    "reoptimising": {"policy": NONE},
    "both": {},
}
EVERY = 10.0
"""Seconds from one point of a drawn line to the next."""


def adaptation(bench: PlanExperiments) -> dict[str, Any]:
    """Figs 7 and 8: neither balancing nor re-optimising, one of them, both."""
    runs = {
        name: bench.run(f"fig7, {name}", CHANGE, dict(settings)) for name, settings in WAYS.items()
    }
    moments = [EVERY * number for number in range(1, round(CHANGE.seconds / EVERY) + 1)]
    compared = {name: course.at([COMPARED_AT])[0] for name, course in runs.items()}
    most = {name: max(course.in_system) for name, course in runs.items()}
    reduced = max(most["reoptimising"] / most["none"], most["both"] / most["balancing"])
    return {
        "fig7": {
            **{name: ratio(compared[name], compared["none"]) for name in [*WAYS][1:]},
            "compared_at_seconds": COMPARED_AT,
            "results": compared,
            "results_at_end": {name: course.total for name, course in runs.items()},
            "seconds": moments,
            "over_time": {name: course.at(moments) for name, course in runs.items()},
            "shapes_at_end": {name: course.shapes[-1] for name, course in runs.items()},
            "moves": {name: _moves(course) for name, course in runs.items()},
            "changes": {name: _changes(course) for name, course in runs.items()},
        },
        "fig8": {
            "rows_ratio": round(reduced, 4),
            "most": most,
            "seconds": moments,
            "over_time": {name: _in_system(course, moments) for name, course in runs.items()},
        },
    }


def _in_system(course: PlanCourse, moments: list[float]) -> list[int]:
    """The rows in the system after the last epoch that ended by each of some times."""
    found, rows = [], 0
    known = [*zip(course.times, course.in_system, strict=True)]
    for moment in moments:
        while known and known[0][0] <= moment:
            rows = known.pop(0)[1]
        found.append(rows)
    return found


def _moves(course: PlanCourse) -> int:
    """Partitions that moved by themselves; those of epoch 0 were given their first sites."""
    return sum(
        line["kind"] == "move" and line["accepted"] and line["epoch"] > 0 for line in course.lines
    )


def _changes(course: PlanCourse) -> list[dict[str, Any]]:
    """The changes of shape."""
    return [
        {key: line[key] for key in ("epoch", "before", "shape", "protocol")}
        | {"partitions": len(line["partitions"])}
        for line in course.lines
        if line["kind"] == "replan" and line["accepted"]
    ]
