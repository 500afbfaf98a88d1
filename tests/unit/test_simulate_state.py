"""Simulated sites with little memory: what the policies do to results and to the clean-up."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from anabranch.adapt.policies.spill import Thresholds
from anabranch.cli import app
from anabranch.settings import ACTIVE_DISK, LAZY_DISK, NONE
from anabranch.simulate.state import StateModel, StateScenario, simulate


def test_what_is_given_and_owed_is_what_there_is_with_memory_for_all() -> None:
    scene = StateScenario(minutes=40, memory=30e6)
    for policy in (NONE, LAZY_DISK, ACTIVE_DISK):
        found = simulate(scene, policy)
        whole = StateModel(scene)
        for _ in range(scene.minutes):
            whole.advance()
        everything = whole.matches(whole.fresh).sum()
        assert found["cleanup_rows"] > 0
        assert found["results"] + found["cleanup_rows"] == pytest.approx(everything, abs=2)


def test_memory_stays_near_its_limit() -> None:
    scene = StateScenario(minutes=60, memory=20e6)
    minute = 3 * 700 * scene.rows / 3
    assert simulate(scene, NONE)["most_bytes"] <= scene.memory + minute


def test_least_productive_first_gives_more() -> None:
    mixed = StateScenario(sites=3, ratios=(4.0, 2.0, 1.0), shares=(1.0, 0.0, 0.0), memory=130e6)
    poor, rich = (simulate(mixed, NONE, Thresholds(first=first)) for first in ("poor", "rich"))
    assert poor["results"] > 1.5 * rich["results"]
    assert poor["cleanup_rows"] < rich["cleanup_rows"] / 3


def test_the_command_prints_figures_of_the_paper() -> None:
    found = json.loads(CliRunner().invoke(app, ["simulate", "state", "--quick", "--json"]).stdout)
    assert all(bar["met"] for bar in found["bars"]), found["bars"]
    assert set(found["sites"]) == {"3", "10", "100"}


def test_the_command_for_people() -> None:
    told = CliRunner().invoke(app, ["simulate", "state", "--quick"]).stdout
    assert "100 sites: none" in told
    assert "not met" not in told
