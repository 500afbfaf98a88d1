"""The runs of `bench spill` and `bench overflow`, small and without Spark: they do what their figures say."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.bench.confined import Confinement
from anabranch.bench.growing import EpochDone, Growing, read_epochs
from anabranch.bench.overflow import describe_run
from anabranch.bench.spill_runs import (
    PARTITIONS,
    Approach,
    PaperTraffic,
    SpillCourse,
    TrafficFiles,
    run_one,
    write,
)
from anabranch.settings import LAZY_DISK, POOR, RICH


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> TrafficFiles:
    ratios = [4.0, 2.0, 1.0] * (PARTITIONS // 3)
    return write(tmp_path_factory.mktemp("mixed"), PaperTraffic(8, 900, 3000, ratios))


@pytest.fixture(scope="module")
def whole(mixed: TrafficFiles, tmp_path_factory: pytest.TempPathFactory) -> SpillCourse:
    return run_one(None, mixed, Approach(), tmp_path_factory.mktemp("whole"))


def test_in_memory_nothing_is_owed(whole: SpillCourse) -> None:
    assert whole.equal
    assert (whole.owed, whole.spilled, whole.moved) == (0, None, 0)
    assert whole.total > 0


def test_what_is_pushed_is_owed_and_given(
    mixed: TrafficFiles, whole: SpillCourse, tmp_path: Path
) -> None:
    limit = 0.4 * whole.state_bytes
    runs = {
        first: run_one(
            None, mixed, Approach(memory=limit, settings={"spill_first": first}), tmp_path / first
        )
        for first in (POOR, RICH)
    }
    for course in runs.values():
        assert course.equal
        assert course.spilled is not None
        assert course.owed == whole.total - course.total > 0
        # What is seen after an epoch has gone by the end of the next
        assert course.most <= limit + 2 * whole.state_bytes / len(course.results)
    assert runs[POOR].total > runs[RICH].total


def test_partitions_begin_where_they_are_told_and_move_by_memory(
    mixed: TrafficFiles, tmp_path: Path
) -> None:
    shares = (2 / 3, 1 / 6, 1 / 6)
    still = run_one(None, mixed, Approach(3, shares=shares), tmp_path / "still")
    moving = run_one(None, mixed, Approach(3, policy=LAZY_DISK, shares=shares), tmp_path / "moving")
    assert still.equal
    assert moving.equal
    assert still.moved == 0 < moving.moved
    assert max(still.memory[-1]) > 0.6 * sum(still.memory[-1])
    assert max(moving.memory[-1]) < 0.5 * sum(moving.memory[-1])


def test_halves_of_the_partitions_take_turns() -> None:
    traffic = PaperTraffic(20, 100, 100, [1.0], turn=5)
    turns = [traffic.weights(epoch)[0] > traffic.weights(epoch)[-1] for epoch in range(20)]
    assert turns == [True] * 5 + [False] * 10 + [True] * 5
    assert traffic.weights(0).sum() == pytest.approx(1)


def test_a_process_that_died_has_told_whole_epochs(tmp_path: Path) -> None:
    job = Growing(side="anabranch", data="", scratch=str(tmp_path), inputs=2)
    assert read_epochs(job) == []
    line = b'{"at": 1.5, "rows": 10, "results": 2, "state_bytes": 100}\n'
    job.epochs.write_bytes(line + line[:20])
    assert read_epochs(job) == [EpochDone(at=1.5, rows=10, results=2, state_bytes=100)]


def test_rates_of_a_run_that_ended_and_of_one_that_did_not() -> None:
    epochs = [
        EpochDone(at=2.0, rows=100, results=1, state_bytes=10),
        EpochDone(at=4.0, rows=100, results=1, state_bytes=20, aside_bytes=5),
        EpochDone(at=8.0, rows=0, results=7, state_bytes=20),
    ]
    ended = Confinement("done", 9.0, 1, 2, 3, 0, "")
    found = describe_run(ended, epochs)
    assert (found["rows_per_s"], found["rows_per_s_reading"]) == (25, 50)
    assert (found["results_early"], found["results"]) == (2, 9)
    assert found["cleanup_seconds"] == 4.0
    died = describe_run(Confinement("killed", 20.0, 1, 2, 3, 1, ""), epochs[:2])
    assert died["rows_per_s"] == 10
    assert describe_run(Confinement("failed", 20.0, 1, 2, 3, 0, "why"), [])["noise"] == "why"
