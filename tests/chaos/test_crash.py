"""The process is killed with SIGKILL, at every step and at random moments, and started again.

However often that happens, the result folders hold what the plain queries give over the whole input.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from crash import Crashing

from anabranch.operators.merger import PENDING
from anabranch.state.place import place
from anabranch.state.store import read_latest
from helpers import in_soak

pytestmark = pytest.mark.chaos

STEPS = ("begin", "before-tasks", "before-commit", "after-commit", "after-publish")
FILES = 8


def test_killed_at_every_step(tmp_path: Path) -> None:
    """One after the other in the epochs of one run, from the first to the one that ends it."""
    crashing = Crashing(tmp_path, seed=5, files=6)
    with crashing.watched():
        for epoch, step in enumerate(STEPS):
            crashing.kill_exactly(step, epoch)
        crashing.kill_exactly("after-commit", crashing.end)
        crashing.finish()
    crashing.check()


@pytest.mark.soak
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step(tmp_path: Path, step: str) -> None:
    """In the first epoch, in one in the middle, and in the one that ends the run."""
    crashing = Crashing(tmp_path, seed=STEPS.index(step), files=FILES)
    with crashing.watched():
        crashing.kill_exactly(step, 0)
        crashing.kill_exactly(step, 3)
        crashing.kill_exactly(step, crashing.end)
        crashing.finish()
    crashing.check()


@pytest.mark.soak
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_again_and_again(tmp_path: Path, step: str) -> None:
    """What is not committed comes again, and is killed again."""
    crashing = Crashing(tmp_path, seed=STEPS.index(step), files=FILES)
    with crashing.watched():
        for epoch in (2, 3, 4, 5):
            crashing.kill_exactly(step, epoch)
            if step.startswith("b"):
                crashing.kill_exactly(step, epoch)
        crashing.finish()
    crashing.check()


@pytest.mark.soak
@pytest.mark.parametrize("seed", [11, 12, 13, 14, 15, 16])
def test_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    kill_at_random(Crashing(tmp_path, seed, FILES), kills=6)


@pytest.mark.soak
def test_killed_with_a_stream_in_lanes(tmp_path: Path) -> None:
    """Rows stay in the lanes they come in, whoever reads them after the kill."""
    crashing = Crashing(tmp_path, 41, 6, options={"lanes": 3})
    kill_at_random(crashing, kills=4)
    last = read_latest(place(str(crashing.checkpoint)))
    assert last is not None
    assert len(last.streams["rows"].lanes) == 3


@pytest.mark.parametrize("step", ["after-commit", *in_soak(["before-commit", "after-publish"])])
def test_rows_held_back_survive_a_kill(tmp_path: Path, step: str) -> None:
    """Those that wait for the watermark, of histories and count windows."""
    crashing = Crashing(tmp_path, seed=51, files=6)
    with crashing.watched():
        for epoch in (1, 4):
            crashing.kill_exactly(step, epoch)
            assert all(waiting > 500 for waiting in held_back(crashing).values())
        crashing.finish()
    crashing.check()
    assert set(held_back(crashing).values()) == {0}, "rows were held back when all had ended"


@pytest.mark.soak
def test_killed_with_the_best_effort_merger(tmp_path: Path) -> None:
    """Other values, but the same rows: each in one history, and as many pairs as there are."""
    crashing = Crashing(tmp_path, 52, 6, options={"settings": {"merge": "best-effort"}})
    with crashing.watched():
        for step, epoch in (("before-commit", 2), ("after-commit", 3), ("before-tasks", 5)):
            crashing.kill_exactly(step, epoch)
            assert set(held_back(crashing).values()) == {0}
        crashing.finish()
    crashing.check({"recent": 3, "pairs": 0})
    for name in ("recent", "pairs"):
        assert crashing.results(name) != crashing.truth.results[name], "nothing was out of order"


def held_back(crashing: Crashing) -> dict[str, int]:
    """The rows that mergers hold back, by the last manifest: of live segments that are not due yet."""
    last = read_latest(place(str(crashing.checkpoint)))
    assert last is not None
    watermark = last.watermarks["rows"] or 0
    return {
        name: sum(
            ref.rows
            for ref in last.subqueries[name].shelf
            if ref.table == PENDING and ref.max_due > watermark
        )
        for name in ("recent@1", "pairs@1")
    }


@pytest.mark.soak
@pytest.mark.parametrize("strategy", ["operator", "query"])
def test_killed_under_other_strategies(tmp_path: Path, strategy: str) -> None:
    settings = {"strategy": strategy}
    kill_at_random(Crashing(tmp_path, 42, 6, options={"settings": settings}), kills=4)


@pytest.mark.parametrize("seed", [21, *in_soak([22])])
def test_killed_at_random_changes_of_the_disk(tmp_path: Path, seed: int) -> None:
    """Between the files of an epoch, amid making results visible, amid clearing away."""
    kill_at_changes(Crashing(tmp_path, seed, FILES), kills=4, most=60)


def kill_at_changes(crashing: Crashing, kills: int, most: int) -> None:
    moments = random.Random(crashing.seed)
    with crashing.watched():
        while crashing.kills < kills and crashing.kill_at_change(moments.randint(1, most)):
            pass
        crashing.finish()
    crashing.check()
    print(f"{crashing.kills} kills")
    assert crashing.kills >= kills / 2, "the run must not end before it has been killed a few times"


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 104))
def test_killed_at_random_moments_for_long(tmp_path: Path, seed: int) -> None:
    kill_at_random(Crashing(tmp_path / "moments", seed, files=25), kills=20)
    kill_at_changes(Crashing(tmp_path / "changes", seed, files=25), kills=20, most=160)


def kill_at_random(crashing: Crashing, kills: int, pace: float | None = None) -> None:
    """Kills within random epochs, earlier ones first, and sometimes the same one again."""
    moments = random.Random(crashing.seed)
    epochs = sorted(moments.choices(range(crashing.end), k=kills))
    with crashing.watched():
        for epoch in epochs:
            crashing.kill_timed(epoch, moments.uniform(0, 1.1), pace)
        crashing.finish()
    crashing.check()
    print(f"{crashing.kills} kills")
    assert crashing.kills >= kills // 2, "half of the kills must have met a living process"


@pytest.mark.spark
def test_the_driver_of_spark_is_killed(tmp_path: Path) -> None:
    """Amid the tasks; what it started goes away with it."""
    crashing = Crashing(tmp_path, seed=31, files=3, engine="local[2]")
    with crashing.watched():
        crashing.kill_timed(0, part=0.9, pace=0.3)
        crashing.finish()
    crashing.check()
    crashing.check_family_is_gone()
    assert crashing.kills == 1


@pytest.mark.soak
@pytest.mark.spark
def test_the_driver_of_spark_is_killed_after_a_commit(tmp_path: Path) -> None:
    crashing = Crashing(tmp_path, seed=31, files=3, engine="local[2]")
    with crashing.watched():
        crashing.kill_exactly("after-commit", 2)
        crashing.finish()
    crashing.check()
    crashing.check_family_is_gone()


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(200, 203))
def test_the_driver_of_spark_is_killed_at_random_moments(tmp_path: Path, seed: int) -> None:
    crashing = Crashing(tmp_path, seed, files=12, engine="local[2]")
    kill_at_random(crashing, kills=10, pace=0.4)
    crashing.check_family_is_gone()


def test_without_a_kill(tmp_path: Path) -> None:
    """What the others are measured by: the oracle and the run agree."""
    crashing = Crashing(tmp_path, seed=99, files=FILES)
    with crashing.watched():
        crashing.finish()
    crashing.check()
    assert all(len(rows) > 2 for rows in (*crashing.truth.results.values(), crashing.truth.late))
