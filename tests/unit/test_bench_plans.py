"""`bench plans` on few rows: emulated time, results equal to DuckDB's, the same figures each time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.bench import plan_figures, plans
from anabranch.bench.plan_runs import PlanTraffic, PlanWay, first_sites, run_plan
from anabranch.bench.plan_service import PlanClock, made_between
from anabranch.engine.report import SubqueryReport
from anabranch.observe.steps import silent

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


def test_the_figures_of_plans(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_run_with_other_results_makes_it_unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    course = run_plan(replace(SMALL, seconds=6.0), PlanWay(epoch=3.0))
    monkeypatch.setattr(plan_figures, "run_plan", lambda traffic, way: replace(course, equal=False))
    assert not plans.run_plans(True, silent()).sound
