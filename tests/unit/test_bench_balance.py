"""`bench balance` measures what it says: who moves what when, and what counts as an epoch with moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from anabranch.bench.balance import WARM, _moves
from anabranch.bench.balance_runs import SITES, BalanceCourse, Scenario, run_one, write


def test_partitions_move_in_turn_before_every_second_epoch(tmp_path: Path) -> None:
    data = write(tmp_path / "data", "much state", 400, 8)
    course = run_one(None, Scenario(), "in turn", data)
    assert course.equal
    # The run is known to whoever moves from some step of the first epochs on
    assert course.moved[2:] == [0, SITES] * 3


@pytest.mark.parametrize(("mode", "moves"), [("static", False), ("ideal", True)])
def test_only_an_ideal_map_is_made_by_hand(tmp_path: Path, mode: str, moves: bool) -> None:
    data = write(tmp_path / "data", "80/20", 400, 6)
    course = run_one(None, Scenario("80/20", slow=1), mode, data)
    assert course.equal
    assert (sum(course.moved) > 0) == moves


def test_a_wrong_result_is_noticed(tmp_path: Path) -> None:
    data = write(tmp_path / "data", "uniform", 400, 3)
    data.expected  # noqa: B018 - reads the files as they are
    write(tmp_path / "other", "drift", 400, 3)
    (tmp_path / "other" / "0001.parquet").replace(data.folder / "0001.parquet")
    assert not run_one(None, Scenario(), "static", data).equal


def test_moves_are_held_against_the_epochs_between_them() -> None:
    first = [9_999.0] * (WARM + 1)
    ms = [200.0, 100.0] * 50
    course = BalanceCourse(
        [1] * 104, first + ms, [0] * (WARM + 1) + [SITES, 0] * 50, [1.0] * 104, equal=True
    )
    found = _moves(course)
    assert found["move_p99_ratio"] == 2.0
    assert found["moves"]["partitions"] == 50 * SITES
    assert found["moves"]["steady"] == {"epochs": 50, "p50_ms": 100, "p99_ms": 100}
