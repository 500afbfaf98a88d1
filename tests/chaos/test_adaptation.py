"""Moves, splits, merges, slow sites, other numbers of sites and crashes, all at once, by seeds.

`make test` runs twenty seeds, `make test-all` two hundred; `anabranch chaos` runs any. That they would notice
what goes wrong is shown in `test_planted.py`.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from anabranch.cli import app
from anabranch.testing import chaos
from anabranch.testing.chaos import ChaosReport, SeedReport, draw_seed, run_seed, run_seeds
from anabranch.testing.chaos_report import ENOUGH_SEEDS, KINDS
from anabranch.testing.disturbances import Meddling
from anabranch.testing.planted import planted
from anabranch.testing.trial import Outcome, check

pytestmark = pytest.mark.chaos

SEEDS = range(20)
RARE = (20, 22, 24, 32)
"""Seeds with the kinds of fault and disturbance that the others do not have."""


FAILED_ONCE = {
    847: "state that was put aside while its rows waited: it had not come as far as the others",
    1246: "an exchange with other slots than the collector had last seen",
    1585: "cells that were put aside after the hot keys in them had come back",
}
"""Seeds that found a fault, and what it was in."""


@functools.cache
def report_of(seed: int) -> SeedReport:
    """Two tests look at the same runs."""
    return run_seed(seed)


@pytest.mark.parametrize("seed", [*SEEDS, *FAILED_ONCE])
def test_results_are_those_of_the_oracle(seed: int) -> None:
    report = report_of(seed)
    assert report.failure is None, report.failure


@pytest.mark.soak
def test_two_hundred_seeds() -> None:
    report = run_seeds(range(200))
    told = "\n\n".join(one.failure for one in report.seeds if one.failure)
    assert not report.failed, told
    counts = report.plain()
    assert report.never == []
    for what in ("moves", "splits", "merges", "site_changes", "crashes", "by_controller"):
        assert counts[what] >= 100, counts


def test_all_of_it_happens() -> None:
    """In these few seeds there is everything: aggregates and joins, crashes, decisions of the controller."""
    counts = ChaosReport([report_of(seed) for seed in SEEDS]).plain()
    for what in ("moves", "splits", "merges", "pins", "rebalances", "site_changes", "crashes"):
        assert counts[what] >= 5, counts
    assert counts["by_controller"] >= 20, counts
    drawn = [draw_seed(seed) for seed in SEEDS]
    joins = sum("joined" in case.queries for case, _ in drawn)
    assert 3 <= joins <= 17
    steps = {leg.step for _, trial in drawn for leg in trial.legs}
    assert len(steps) >= 6, steps


def test_every_kind_of_fault_and_disturbance_comes() -> None:
    """What was done and felt is counted, not what was drawn."""
    report = ChaosReport([report_of(seed) for seed in (*SEEDS, *RARE)])
    assert report.failed == []
    assert report.never == [], report.fired


def test_a_seed_does_the_same_again() -> None:
    """What the controller sees is computed, not measured, so it decides the same."""
    outcomes = []
    for _ in range(2):
        outcome = Outcome()
        check(*draw_seed(32), outcome=outcome)
        outcomes.append(outcome)
    one, other = outcomes
    assert one.fired == other.fired
    assert [d["action"] for d in one.history] == [d["action"] for d in other.history]
    assert len(one.history) > 10


def test_a_disturbance_that_is_refused_fails_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the handle is not taken for something that happens."""

    def wrong(it: Meddling) -> bool:
        it.run.set_sites(0)
        return True

    monkeypatch.setattr(chaos, "DISTURBANCES", (wrong,) * 20)
    monkeypatch.setattr(chaos, "BY_MAP", ())
    report = run_seed(3)
    assert "at least one site" in (report.failure or "")


# -- the command ------------------------------------------------------------------------------------


def test_the_command() -> None:
    shown = CliRunner().invoke(app, ["chaos", "--seeds", "3..5", "--json"])
    assert shown.exit_code == 0, shown.output
    told = json.loads(shown.stdout)
    assert (told["passed"], told["failed"]) == (3, [])
    assert told["seconds"] > 0
    assert {"moves", "splits", "merges", "site_changes", "crashes"} <= {*told}
    shown = CliRunner().invoke(app, ["chaos", "--seeds", "3"])
    assert "1 of 1 seeds passed" in shown.stdout


def test_the_command_tells_what_failed() -> None:
    with planted("watermark-one-too-far"):
        failed = next(seed for seed in SEEDS if run_seed(seed).failure)
        shown = CliRunner().invoke(app, ["chaos", "--seeds", f"{failed}..{failed}"])
        assert shown.exit_code == 1
        assert f"Seed {failed} failed" in shown.stdout
        assert f"anabranch chaos --seeds {failed}..{failed}" in shown.stdout
        assert "decisions:" in shown.stdout
        assert "stream one: rows per epoch" in shown.stdout
        shown = CliRunner().invoke(app, ["chaos", "--seeds", str(failed), "--json"])
    assert shown.exit_code == 1
    assert json.loads(shown.stdout)["failed"] == [failed]
    assert f"Seed {failed} failed" in shown.stderr


def test_seeds_run_in_several_processes() -> None:
    """They do there what they do here."""
    shown = CliRunner().invoke(app, ["chaos", "--seeds", "3..6", "--jobs", "2", "--json"])
    assert shown.exit_code == 0, shown.output
    told, here = json.loads(shown.stdout), run_seeds(range(3, 7)).plain()
    told.pop("seconds"), here.pop("seconds")
    assert told == here
    shown = CliRunner().invoke(app, ["chaos", "--seeds", "3", "--jobs", "-1"])
    assert shown.exit_code == 1
    assert "0 or more processes" in shown.output


def test_a_seed_that_hangs_is_told_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos, "LONGEST", 0.0)
    report = run_seeds([3, 4], jobs=2)
    assert report.failed == [3, 4]
    assert "no end after 0 s" in str(report.seeds[0].failure)


def test_many_seeds_in_which_something_never_comes_are_no_pass() -> None:
    """A kind of fault that is no longer drawn, or does nothing, must not go unnoticed."""
    every = Counter(dict.fromkeys(KINDS, 1))
    seeds = [SeedReport(seed, 0.1, Counter(), every) for seed in range(ENOUGH_SEEDS)]
    assert ChaosReport(seeds).good
    without = [replace(one, fired=every - Counter(["lost site"])) for one in seeds]
    assert ChaosReport(without).never == ["lost site"]
    assert not ChaosReport(without).good
    assert ChaosReport(without[:10]).good
    assert "Never came: lost site." in ChaosReport(without).text()


@pytest.mark.parametrize("seeds", ["", "x", "5..1", "-3..2", "1..2..3"])
def test_seeds_that_are_none(seeds: str) -> None:
    shown = CliRunner().invoke(app, ["chaos", "--seeds", seeds])
    assert shown.exit_code == 1
    assert "Seeds are given as a range such as 0..199" in shown.output
