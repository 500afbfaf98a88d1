"""Runs with hardly any memory, killed while state is put aside, is packed, and is brought together again."""

from __future__ import annotations

from pathlib import Path

import pytest
from crash import Crashing
from test_crash import kill_at_changes, kill_at_random

from helpers import manifests

pytestmark = pytest.mark.chaos

FILES = 6
SPILLING = {"joins": True, "settings": {"site_memory_bytes": 4000}}


def test_killed_with_state_aside_and_in_the_last_clean_up(tmp_path: Path) -> None:
    crashing = Crashing(tmp_path, seed=71, files=3, options=SPILLING)
    with crashing.watched():
        crashing.kill_exactly("before-commit", 2)
        assert manifests(crashing.checkpoint)[-1].spilled, "nothing is aside"
        crashing.kill_exactly("before-commit", crashing.end)
        crashing.finish()
    crashing.check()
    assert not manifests(crashing.checkpoint)[-1].spilled, "something is still owed"


@pytest.mark.soak
def test_killed_at_every_step(tmp_path: Path) -> None:
    crashing = Crashing(tmp_path, seed=72, files=FILES, options=SPILLING)
    aside = 0
    with crashing.watched():
        for step, epoch in (
            ("before-commit", 1), ("after-commit", 2), ("before-tasks", 4), ("after-publish", 5),
            ("after-commit", crashing.end),
        ):  # fmt: skip
            crashing.kill_exactly(step, epoch)
            aside += bool(manifests(crashing.checkpoint)[-1].spilled)
        crashing.finish()
    crashing.check()
    assert aside > 2, "hardly ever was anything aside"


@pytest.mark.soak
@pytest.mark.parametrize("seed", [73, 74])
def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    kill_at_random(Crashing(tmp_path, seed, FILES, options=SPILLING), kills=6)


@pytest.mark.soak
def test_killed_at_random_changes_of_the_disk(tmp_path: Path) -> None:
    kill_at_changes(Crashing(tmp_path, 75, FILES, options=SPILLING), kills=5, most=160)
