"""Plans and load together: the experiments of the paper on plan-aware balancing, on the engine itself.

Every row goes through the engine, in this process; how long sites take for it is emulated, see
`bench/plan_service.py`. So the figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anabranch.bench.measure import load, machine
from anabranch.bench.plan_figures import COMPARED_AT, WAYS, PlanExperiments, adaptation
from anabranch.bench.plan_runs import SITES
from anabranch.bench.result import Result
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.simulate.service import PARTITIONS, SERVICE

PAPER: dict[str, dict[str, Any]] = {
    "fig7": {
        "statement": "balancing alone gives about twice the results of no adaptation, re-optimising alone "
        "about twice, both about 330% more",
        "balancing": 2.0,
        "reoptimising": 2.0,
        "both": 3.3,
    },
    "fig8": {
        "statement": "with re-optimising far fewer rows build up in the system; balancing alone has as "
        "many as no adaptation, for a shorter time"
    },
    "fig9": {"statement": "30 rows/s: both gain with the window; MSLB leads by up to 25%"},
    "fig10": {"statement": "40 rows/s: the same, and more of it"},
    "fig11": {
        "statement": "50 rows/s: PTLB about 1.9 and MSLB about 2 times the results at 15 s; with larger "
        "windows PTLB falls back"
    },
    "fig12": {"statement": "PTLB takes about twice the window, MSLB much less"},
    "fig13": {"statement": "large state and rates that have fallen: PTLB ahead"},
}
NOT_YET = "not measured yet: the two ways to another shape are not compared here"
MISSING = ("fig9", "fig10", "fig11", "fig12", "fig13")
NOTES = (
    f"Emulated: {SERVICE.row * 1000:g} ms for a row, {SERVICE.pair * 1000:g} for a pair of rows looked at, "
    f"{SERVICE.intermediate * 1000:g} for a row of an intermediate that is made, {SERVICE.moved * 1000:g} on "
    "either side for a row of state that moves. The engine works on every row and decides by these times; "
    "an epoch takes as long as the busiest of its sites, and none waits for this machine.",
    f"{SITES} sites, {SITES * PARTITIONS} partitions; half of them are on one site at first, the others are "
    "shared by all. Poisson arrivals. Rows that have come and were not worked on wait before the engine. "
    "Three streams on one key, any two rows of a result within 60 s of each other. The first shape "
    "is ((0,1),2); the flat one costs less from the start, so the change comes before the rates fall.",
    f"fig7 compares the results after {COMPARED_AT:g} s; later those who are behind catch up, for the rates "
    "have fallen. fig8 has the most rows that wait or are kept, those of intermediates too, over 200 s: "
    "the greater of re-optimising against none, and of both against balancing.",
    "Results of every run are equal to DuckDB's of the rows that it had read.",
)


def run_plans(quick: bool, steps: Steps) -> Result:
    """All figures of the paper's experiments; with `quick`, epochs twice as long."""
    before = load()
    steps.expect(len(WAYS))
    bench = PlanExperiments(quick, steps)
    figures: dict[str, Any] = adaptation(bench)
    figures |= {name: {"available": False, "why": NOT_YET} for name in MISSING}
    figures |= {"choice_over_best": None}
    figures = {"quick": quick, "equal": bench.equal} | {
        name: {**found, "paper": PAPER[name]} if name in PAPER else found
        for name, found in figures.items()
    }
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("plans", figures, _bars(figures), NOTES, bench.equal, circumstances)


def _bars(figures: dict[str, Any]) -> tuple[Bar, ...]:
    def bar(figure: str, key: str, relation: str, value: float) -> Bar:
        return Bar(f"{figure}.{key}", figures[figure][key], relation, value)

    return (
        bar("fig7", "balancing", ">=", 1.6),
        bar("fig7", "reoptimising", ">=", 1.6),
        bar("fig7", "both", ">=", 2.5),
        bar("fig8", "rows_ratio", "<=", 0.5),
    )


def plans_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    results, most = figures["fig7"]["results"], figures["fig8"]["most"]
    for name, count in results.items():
        yield (
            f"{name}: {count:,} results after {figures['fig7']['compared_at_seconds']:g} s, at most "
            f"{most[name]:,} rows in the system"
        )
    for name in MISSING:
        if not figures[name].get("available", True):
            yield f"{name}: {figures[name]['why']}"
    yield f"results equal to DuckDB's: {str(figures['equal']).lower()}"
