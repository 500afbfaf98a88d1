"""Plans and load together: the experiments of the paper on plan-aware balancing, on the engine itself.

Every row goes through the engine, in this process; how long sites take for it is emulated, see
`bench/plan_service.py`. So the figures are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anabranch.bench.measure import load, machine
from anabranch.bench.plan_figures import COMPARED_AT, WAYS, adaptation
from anabranch.bench.plan_runs import SITES
from anabranch.bench.plan_shared import PlanExperiments
from anabranch.bench.result import Result
from anabranch.bench.transition_figures import (
    QUICK_WINDOWS,
    RATES,
    RUSH_ASKED,
    WHOLE,
    WINDOWS,
    rush,
    transitions,
)
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.settings import MOVING_STATE, PARALLEL_TRACK
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
        "windows PTLB falls back",
        "ratios": {"15": {PARALLEL_TRACK: 1.9, MOVING_STATE: 2.0}},
    },
    "fig12": {"statement": "PTLB takes about twice the window, MSLB much less"},
    "fig13": {"statement": "large state and rates that have fallen: PTLB ahead"},
}
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
    "figs 9 to 13: A meets B within the window and B meets C, so a row of A can be in a result with one of C "
    "two windows later. Shapes are fixed, and (0,(1,2)) is asked for by hand for all partitions: in figs 9 "
    f"to 12 after one window of {WHOLE}, in fig 13 at {RUSH_ASKED:g} s. So runs differ in the way of the "
    "change alone. Partitions are balanced as always, but in the run without adaptation. On a track a new "
    "row takes its time twice.",
    "A track of ours is on the site that has the partition, and rows of inputs are kept once; the paper's "
    "has the old plan on the overloaded machine, and the new one on another. Both do all work twice until "
    "the old rows are gone, which is what is compared.",
    "fig12 has a track in seconds of the streams, which is what the paper's 2W is; sites that cannot "
    "keep up take longer, see busy_seconds_by_window. Moving state is one epoch: its seconds are what that "
    "took beyond its neighbours.",
    "Runs repeat themselves exactly, so the run that chooses by itself is that of the way it took. "
    "choice_over_best has it against the better of both, the least of all cases.",
    "Results of every run are equal to DuckDB's of the rows that it had read.",
)


def run_plans(quick: bool, steps: Steps) -> Result:
    """All figures of the paper's experiments; with `quick`, longer epochs and fewer windows."""
    before = load()
    windows = QUICK_WINDOWS if quick else WINDOWS
    steps.expect(len(WAYS) + 3 * len(RATES) * len(windows) + 2)
    bench = PlanExperiments(quick, steps)
    figures: dict[str, Any] = adaptation(bench)
    compared, fallen = transitions(bench, windows), rush(bench)
    choices = compared.pop("choices") | fallen.pop("choices")
    figures |= compared | fallen
    figures |= {"choice_over_best": min(choices.values()), "choices": choices}
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
        *(bar(name, "least_lead", ">=", 0.98) for name in RATES),
        *(bar(name, "growth", ">", 0.0) for name in RATES),
        bar("fig12", "track_least", ">=", 1.6),
        bar("fig12", "track_most", "<=", 2.4),
        bar("fig12", "moving_most", "<", 0.5),
        bar("fig13", "track_lead", ">", 1.0),
        Bar("choice_over_best", figures["choice_over_best"], ">=", 0.95),
    )


def plans_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    results, most = figures["fig7"]["results"], figures["fig8"]["most"]
    for name, count in results.items():
        yield (
            f"{name}: {count:,} results after {figures['fig7']['compared_at_seconds']:g} s, at most "
            f"{most[name]:,} rows in the system"
        )
    # Results that were saved before have figs 7 and 8 alone
    if figures["choice_over_best"] is not None:
        yield from _transition_lines(figures)
    yield f"results equal to DuckDB's: {str(figures['equal']).lower()}"


def _transition_lines(figures: dict[str, Any]) -> Iterator[str]:
    """Figs 9 to 13 in words."""
    for name in RATES:
        cells = figures[name]["ratios"]
        yield f"{name}, {figures[name]['rate']:g} rows/s, against no adaptation: " + "; ".join(
            f"{window} s: track {cell[PARALLEL_TRACK]:.2f}, moving state {cell[MOVING_STATE]:.2f}"
            for window, cell in cells.items()
        )
    for window, cell in figures["fig12"]["seconds_by_window"].items():
        yield (
            f"fig12, window of {window} s: a track takes {cell[PARALLEL_TRACK]} s, moving state "
            f"{cell[MOVING_STATE]} s"
        )
    yield (
        f"fig13: a track gives {figures['fig13']['track_lead']:.2f} times as many results by "
        f"{figures['fig13']['compared_at_seconds']:g} s as moving state; chosen: {figures['fig13']['chosen']}"
    )
