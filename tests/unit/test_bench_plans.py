"""`bench plans` on few rows: emulated time, results equal to DuckDB's, the same figures each time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.bench import plan_figures, plan_shared, plans
from anabranch.bench.plan_runs import (
    CHAIN,
    RIGHT_DEEP,
    PlanCourse,
    PlanTraffic,
    PlanWay,
    first_sites,
    run_plan,
)
from anabranch.bench.plan_service import PlanClock, made_between
from anabranch.bench.transition_figures import change_of, growth, lengths
from anabranch.engine.report import SubqueryReport
from anabranch.observe.steps import silent
from anabranch.settings import AUTO, MOVING_STATE, PARALLEL_TRACK

SMALL = PlanTraffic((20, 20, 20), 6.0, 12.0, 40, change=4.0, later=(20, 2, 2))


def test_the_clock_waits_for_rows_or_rows_for_it() -> None:
    clock = PlanClock(2.0, 10.0)
    assert (clock.read, clock.upto) == (0.0, 2.0)
    clock.pass_epoch(0.5)
    assert (clock.now, clock.upto) == (4.0, 4.0), "the next epoch begins when its rows are there"
    clock.pass_epoch(5.0)
    assert (clock.now, clock.read, clock.upto) == (9.0, 4.0, 6.0), "three seconds wait"
    assert not clock.over
    clock.pass_epoch(1.0)
    assert clock.over


def test_half_of_the_partitions_are_on_one_site_at_first() -> None:
    sites = first_sites(105)
    assert sites.count(0) == 52 + 8
    assert {*sites} == set(range(7))


def test_no_intermediates_are_made_where_nothing_was_written() -> None:
    assert made_between(SubqueryReport(), 3) == 0


def test_a_run_is_equal_to_duckdb_and_the_same_each_time() -> None:
    # Slow sites: the run ends with rows that wait
    slow = PlanWay(service=replace(PlanWay().service, row=0.05))
    first, second = run_plan(SMALL, slow), run_plan(SMALL, slow)
    assert first.equal
    assert first.total > 0
    assert first.waiting[-1] > 0
    assert (first.times, first.results, first.in_system) == (
        second.times, second.results, second.in_system,
    )  # fmt: skip


MOVED = {
    "kind": "replan", "accepted": True, "epoch": 2, "before": "((0,1),2)", "shape": RIGHT_DEEP,
    "partitions": [0], "protocol": "moving state", "movingCost": 2, "trackCost": 9,
}  # fmt: skip
TRACKED = {**MOVED, "protocol": "parallel track"}
COURSE = PlanCourse(
    times=[1.0, 2.0, 3.0, 7.0, 8.0], reads=[1.0, 2.0, 3.0, 4.0, 5.0], spent=[0.5, 0.5, 0.5, 4.5, 0.5],
    results=[1, 2, 3, 4, 5], waiting=[0] * 5, state=[1] * 5, busiest=[1.0] * 5,
    shapes=[{RIGHT_DEEP: 105}] * 5,
    lines=[], equal=True,
)  # fmt: skip


def made_up(traffic: PlanTraffic, way: PlanWay) -> PlanCourse:
    """A run without rows, whose change of shape moves state unless a track is asked for."""
    if way.settings.get("transition") != PARALLEL_TRACK:
        return replace(COURSE, lines=[{**MOVED, "steps": {"asked": 2, "resumed": 3}}])
    steps = {"both work": 1, "old rows gone": 2, "old shape dropped": 4}
    late = [3.0 * time for time in COURSE.times]
    return replace(COURSE, times=late, lines=[{**TRACKED, "steps": steps}])


def test_the_figures_of_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(traffic: PlanTraffic, way: PlanWay) -> PlanCourse:
        return run_plan(traffic, way) if traffic is SMALL else made_up(traffic, way)

    monkeypatch.setattr(plan_shared, "run_plan", run)
    monkeypatch.setattr(plan_figures, "CHANGE", SMALL)
    monkeypatch.setattr(plan_figures, "COMPARED_AT", 12.0)
    result = plans.run_plans(True, silent())
    assert result.sound
    assert {f"fig{n}" for n in range(7, 14)} <= {*result.figures}
    assert {*result.figures["fig7"]["results"]} == {*plan_figures.WAYS}
    assert [bar.name for bar in result.bars][:3] == [
        "fig7.balancing", "fig7.reoptimising", "fig7.both",
    ]  # fmt: skip
    for name in plans.PAPER:
        assert result.figures[name]["paper"]["statement"]
    assert any("equal" in line for line in plans.plans_lines(result.figures))
    assert [*result.figures["fig9"]["ratios"]] == ["15", "60"]
    assert len(result.figures["choices"]) == 3 * 2 + 1
    assert result.figures["choice_over_best"] == 1.0, "moving state is taken, and is ahead"


def test_a_run_with_other_results_makes_it_unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        plan_shared, "run_plan", lambda *given: replace(made_up(*given), equal=False)
    )
    assert not plans.run_plans(True, silent()).sound


def test_how_long_changes_take() -> None:
    moved = made_up(SMALL, PlanWay())
    assert lengths(moved) == (4.0, 4.0), "what its epoch takes beyond those beside it"
    tracked = made_up(SMALL, PlanWay({"transition": PARALLEL_TRACK}))
    assert lengths(tracked) == (3.0, 5.5), "three seconds of the streams, 5.5 of the sites"
    endless = replace(tracked, shapes=[{RIGHT_DEEP: 90, "((0,1),2)": 15}])
    assert lengths(endless) == (None, None)


def test_a_lead_that_falls_on_the_way_does_not_grow() -> None:
    assert growth([1.0, 1.1, 1.4]) == 0.4
    assert growth([1.0, 1.0]) == 0.0
    assert growth([1.0, 1.3, 1.2]) == -0.1


def test_the_run_that_chooses_is_that_of_the_way_it_takes() -> None:
    """So `bench plans` need not run that way again."""
    traffic = PlanTraffic((40, 40, 40), 4.0, 10.0, 40, query=CHAIN)
    replan = 4.0, RIGHT_DEEP
    own, forced = (
        run_plan(traffic, PlanWay({"plans": "fixed", "transition": transition}, 2.0, replan=replan))
        for transition in (AUTO, MOVING_STATE)
    )
    assert change_of(own)["protocol"] == "moving state"
    assert (own.times, own.results, own.spent) == (forced.times, forced.results, forced.spent)
    assert own.equal


def test_work_on_a_track_is_counted_twice() -> None:
    """New rows take their time in both shapes, and so do combinations with a row from before the cut."""
    traffic = PlanTraffic((20, 20, 20), 4.0, 18.0, 100, query=CHAIN)
    course = run_plan(
        traffic,
        PlanWay({"plans": "fixed", "transition": PARALLEL_TRACK}, 2.0, replan=(4.0, RIGHT_DEEP)),
    )
    assert course.equal
    steps = change_of(course)["steps"]
    streams, busy = lengths(course)
    assert streams is not None
    assert busy is not None
    assert 8.0 <= streams <= 10.0, "twice the window, and what is left of an epoch"
    assert busy / streams > 1.5 * course.spent[steps["old shape dropped"]] / 2
