"""Joins whose process is killed, at steps and at random moments, and started again."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import Crashing
from test_crash import kill_at_changes, kill_at_random

pytestmark = pytest.mark.chaos

FILES = 6
JOINS = {"joins": True}


def test_killed_at_every_step(tmp_path: Path) -> None:
    """Of one epoch after the other, and in the last."""
    crashing = Crashing(tmp_path, seed=51, files=FILES, options=JOINS)
    with crashing.watched():
        crashing.kill_exactly("before-tasks", 1)
        crashing.kill_exactly("before-commit", 3)
        crashing.kill_exactly("after-commit", 4)
        crashing.kill_exactly("after-publish", 5)
        crashing.kill_exactly("before-commit", crashing.end)
        crashing.finish()
    crashing.check()
    assert all(len(rows) > 50 for rows in crashing.truth.results.values())


@pytest.mark.soak
@pytest.mark.parametrize("seed", [52, 53])
def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    kill_at_random(Crashing(tmp_path, seed, FILES, options=JOINS), kills=5)


@pytest.mark.soak
def test_killed_at_random_changes_of_the_disk(tmp_path: Path) -> None:
    kill_at_changes(Crashing(tmp_path, 54, FILES, options=JOINS), kills=5, most=160)


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["operator", "query"])
def test_killed_under_other_strategies(tmp_path: Path, strategy: str) -> None:
    options = {**JOINS, "settings": {"strategy": strategy}}
    kill_at_random(Crashing(tmp_path, 55, FILES, options=options), kills=6)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300, 303))
def test_killed_at_random_moments_for_long(tmp_path: Path, seed: int) -> None:
    kill_at_random(Crashing(tmp_path / "moments", seed, 20, options=JOINS), kills=15)
    kill_at_changes(Crashing(tmp_path / "changes", seed, 20, options=JOINS), kills=15, most=200)


@pytest.mark.soak
@pytest.mark.spark
def test_the_driver_of_spark_is_killed(tmp_path: Path) -> None:
    crashing = Crashing(tmp_path, 310, FILES, engine="local[2]", options=JOINS)
    kill_at_random(crashing, kills=5, pace=0.4)
    crashing.check_family_is_gone()
