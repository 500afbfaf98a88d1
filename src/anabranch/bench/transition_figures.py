"""Figs 9 to 13 of the paper on plan-aware balancing: both ways to another shape, and the choice of one.

In each case the same change is asked for at the same time of the streams; runs differ in how it is made.
Time is emulated and runs repeat themselves exactly, so the run that chooses by itself is also that of the
way that it takes: only the other way needs a run of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from anabranch.bench.plan_runs import CHAIN, RIGHT_DEEP, PlanCourse, PlanTraffic
from anabranch.bench.plan_shared import PlanExperiments, ratio
from anabranch.settings import AUTO, FIXED_PLANS, MOVING_STATE, NONE, PARALLEL_TRACK

RATES = {"fig9": 30.0, "fig10": 40.0, "fig11": 50.0}
WINDOWS = (15.0, 30.0, 45.0, 60.0)
QUICK_WINDOWS = (15.0, 60.0)
LENGTHS_AT = "fig10"
"""The paper has the lengths of transitions for this rate."""
KEYS = 1000
EPOCHS = 4
"""Epochs of a window."""
WHOLE = 5
"""Windows that a run takes; the change is asked for after the first."""
RUSH = PlanTraffic(
    rates=(100, 100, 100), window=30.0, seconds=120.0, keys=800, change=30.0, later=(100, 5, 5),
    query=CHAIN,
)  # fmt: skip
"""Fig 13: windows are full when the rates of B and C fall ..."""
RUSH_EPOCH = 3.0
RUSH_ASKED = 40.0
"""... and the change is asked for soon after."""
RUSH_COMPARED = 80.0
"""Seconds at which results are compared: the change begins after 70, as rows wait. Later all catch up."""
EVERY = 5.0
SLACK = 0.005
"""Leads that differ by less are alike."""


@dataclass
class Compared:
    """Both ways to the same shape."""

    runs: dict[str, PlanCourse]
    """By protocol."""
    chosen: str
    """The protocol that was taken by itself."""

    def results(self, moment: float) -> dict[str, int]:
        """What each has given by then."""
        found = {name: self.runs[name].at([moment])[0] for name in (PARALLEL_TRACK, MOVING_STATE)}
        return found | {AUTO: found[self.chosen]}

    def choice_over_best(self, moment: float) -> float:
        results = self.results(moment)
        return ratio(results[AUTO], max(results.values()))


def compare_ways(
    bench: PlanExperiments, title: str, traffic: PlanTraffic, epoch: float, asked: float
) -> Compared:
    """The run that chooses by itself, and the one that goes the other way."""
    replan = asked, RIGHT_DEEP
    plans = {"plans": FIXED_PLANS}
    own = bench.run(f"{title}, {AUTO}", traffic, {**plans, "transition": AUTO}, epoch, replan)
    chosen = change_of(own)["protocol"].replace(" ", "-")
    (other,) = {PARALLEL_TRACK, MOVING_STATE} - {chosen}
    course = bench.run(f"{title}, {other}", traffic, {**plans, "transition": other}, epoch, replan)
    return Compared({chosen: own, other: course}, chosen)


def change_of(course: PlanCourse) -> dict[str, Any]:
    """The change of shape of a run, as its history tells it."""
    return next(line for line in course.lines if line["kind"] == "replan" and line["accepted"])


def lengths(course: PlanCourse) -> tuple[float | None, float | None]:
    """The seconds of the streams that a change took, and those of the sites; None if it was not over."""
    steps = change_of(course)["steps"]
    if "both work" in steps:
        if [*course.shapes[-1]] != [RIGHT_DEEP]:
            return None, None
        # Slots come to their end one after another: the last counts
        first, last = steps["both work"], steps["old shape dropped"] - 1
        return course.reads[last] - course.reads[first - 1], sum(course.spent[first : last + 1])
    # What an epoch of its own takes beyond the usual: the streams come only so far meanwhile
    at = steps["resumed"]
    extra = max(0.0, course.spent[at] - (course.spent[at - 1] + course.spent[at + 1]) / 2)
    return extra, extra


def transitions(bench: PlanExperiments, windows: Sequence[float]) -> dict[str, Any]:
    """Figs 9 to 12: rates by windows, against no adaptation."""
    found: dict[str, Any] = {}
    choices: dict[str, float] = {}
    by_window: dict[str, dict[str, float | None]] = {}
    by_clock: dict[str, dict[str, float | None]] = {}
    for figure, rate in RATES.items():
        cells: dict[str, dict[str, float]] = {}
        detail: dict[str, Any] = {}
        for window in windows:
            traffic = PlanTraffic((rate,) * 3, window, WHOLE * window, KEYS, query=CHAIN)
            title, epoch, text = f"{figure}, {window:g} s", window / EPOCHS, f"{window:g}"
            settings = {"plans": FIXED_PLANS, "policy": NONE}
            base = bench.run(f"{title}, none", traffic, settings, epoch).at([traffic.seconds])[0]
            both = compare_ways(bench, title, traffic, epoch, asked=window)
            results = both.results(traffic.seconds)
            choices[f"{figure}.{text}"] = both.choice_over_best(traffic.seconds)
            cells[text] = {name: ratio(count, base) for name, count in results.items()}
            own = change_of(both.runs[both.chosen])
            detail[text] = {
                "results": {"none": base, **results},
                "chosen": both.chosen,
                "moving_cost": own["movingCost"],
                "track_cost": own["trackCost"],
            }
            if figure == LENGTHS_AT:
                pairs = {name: lengths(course) for name, course in both.runs.items()}
                by_window[text] = {name: _rounded(pair[0]) for name, pair in pairs.items()}
                by_clock[text] = {name: _rounded(pair[1]) for name, pair in pairs.items()}
        leads = {
            text: ratio(cell[MOVING_STATE], cell[PARALLEL_TRACK]) for text, cell in cells.items()
        }
        found[figure] = {
            "rate": rate,
            "ratios": cells,
            "lead": leads,
            "least_lead": min(leads.values()),
            "growth": growth([*leads.values()]),
            "cells": detail,
        }
    found["fig12"] = {
        "rate": RATES[LENGTHS_AT],
        "seconds_by_window": by_window,
        "busy_seconds_by_window": by_clock,
        **_of_window(by_window),
    }
    return found | {"choices": choices}


def growth(leads: list[float]) -> float:
    """How much the lead grows from the least to the largest window; below zero if it falls on the way."""
    falls = min(after - before for before, after in pairwise(leads))
    return round(falls if falls < -SLACK else leads[-1] - leads[0], 4)


def _of_window(by_window: dict[str, dict[str, float | None]]) -> dict[str, float]:
    """The least and the most of a track in windows, and the most of moving state."""
    tracks = [_in_windows(text, cell[PARALLEL_TRACK]) for text, cell in by_window.items()]
    moves = [_in_windows(text, cell[MOVING_STATE]) for text, cell in by_window.items()]
    return {"track_least": min(tracks), "track_most": max(tracks), "moving_most": max(moves)}


def _in_windows(window: str, seconds: float | None) -> float:
    return float("inf") if seconds is None else round(seconds / float(window), 4)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)


def rush(bench: PlanExperiments) -> dict[str, Any]:
    """Fig 13: much is remembered, and little comes."""
    both = compare_ways(bench, "fig13", RUSH, RUSH_EPOCH, RUSH_ASKED)
    moments = [EVERY * number for number in range(1, round(RUSH.seconds / EVERY) + 1)]
    results = both.results(RUSH_COMPARED)
    own = change_of(both.runs[both.chosen])
    return {
        "fig13": {
            "track_lead": ratio(results[PARALLEL_TRACK], results[MOVING_STATE]),
            "compared_at_seconds": RUSH_COMPARED,
            "results": results,
            "results_at_end": both.results(RUSH.seconds),
            "chosen": both.chosen,
            "moving_cost": own["movingCost"],
            "track_cost": own["trackCost"],
            "busy_seconds": {
                name: _rounded(lengths(run)[1]) for name, run in sorted(both.runs.items())
            },
            "seconds": moments,
            "over_time": {name: run.at(moments) for name, run in sorted(both.runs.items())},
        },
        "choices": {"fig13": both.choice_over_best(RUSH_COMPARED)},
    }
