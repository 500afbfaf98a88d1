"""Moves to sites that have to fetch the state: over several epochs, through crashes, with exact results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import RunError

QUERY = "SELECT tb, srcIP, COUNT(*) AS c FROM tcp GROUP BY time/50 AS tb, srcIP"


class Far:
    """Runs a query from a checkpoint that is reached through a URI, so that sites have caches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.phases: list[list[str]] = []

    def start(self, step: Any) -> Any:
        session = Session.in_process(
            4, {"max_rows_per_epoch": 2_000, "fsync": False, "policy": "none"}
        )
        session.stream("tcp", generator="packets", rows=20_000, ordered="time", rows_per_second=100,
                       keys=300, seed=5)  # fmt: skip
        session.query("flows", QUERY)
        holder: list[Any] = []

        def hook(name: str, epoch: int) -> None:
            if holder:
                if name == "before-tasks":
                    under_way = holder[0]._governor.moving.values()
                    self.phases.append([known.phase for known in under_way])
                step(holder[0], name, epoch)

        run = session.start(
            sinks={"flows": str(self.folder / "out")}, checkpoint=f"file://{self.folder}/ckpt",
            at_end="close", on_step=hook,
        )  # fmt: skip
        holder.append(run)
        return run

    def rows(self) -> list[Any]:
        return sorted(pl.read_parquet(self.folder / "out" / "**/*.parquet").rows())


def move_some(run: Any, name: str, epoch: int) -> None:
    if name == "begin" and epoch == 2:
        for start in run.partition_map("flows@1").starts[:5]:
            run.move("flows@1", start, 3)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    far = Far(tmp_path_factory.mktemp("plain"))
    assert far.start(lambda *_: None).await_termination(60)
    return far.rows()


def test_a_far_move_fetches_pauses_and_installs(tmp_path: Path, expected: list[Any]) -> None:
    far = Far(tmp_path)
    run = far.start(move_some)
    assert run.await_termination(60)
    assert ["fetching"] * 5 in far.phases
    assert ["paused"] * 5 in far.phases
    assert far.phases[-1] == []
    assert run.partition_map("flows@1").sites[:5] == (3,) * 5
    assert far.rows() == expected


@pytest.mark.parametrize("crash", [2, 3, 4])
@pytest.mark.parametrize("at", ["before-commit", "after-commit"])
def test_a_crash_in_a_far_move_resumes_it(
    tmp_path: Path, expected: list[Any], crash: int, at: str
) -> None:
    far = Far(tmp_path)

    def step(run: Any, name: str, epoch: int) -> None:
        move_some(run, name, epoch)
        if (name, epoch) == (at, crash):
            raise OSError("a crash")

    with pytest.raises(RunError, match="a crash"):
        far.start(step).await_termination(60)
    again = far.start(lambda *_: None)
    assert again.await_termination(60)
    assert far.rows() == expected
    assert again._governor.moving == {}
    sites = set(again.partition_map("flows@1").sites[:5])
    # Rolled back if nothing of it was committed yet, carried through otherwise
    assert sites in ({0}, {3})
    if crash > 2:
        assert sites == {3}


def test_another_map_wins_over_moves_under_way(tmp_path: Path, expected: list[Any]) -> None:
    def step(run: Any, name: str, epoch: int) -> None:
        move_some(run, name, epoch)
        if name == "begin" and epoch == 3:
            known = run.partition_map("flows@1")
            run.repartition("flows@1", known.on((1,) * known.partitions))
        if name == "begin" and epoch == 5:
            run.set_sites(5)

    far = Far(tmp_path)
    run = far.start(step)
    assert run.await_termination(60)
    assert far.phases[-1] == []
    assert max(run.partition_map("flows@1").sites) == 4
    assert far.rows() == expected


def test_a_partition_moves_to_one_place_at_a_time(tmp_path: Path, expected: list[Any]) -> None:
    def step(run: Any, name: str, epoch: int) -> None:
        move_some(run, name, epoch)
        if name == "begin" and epoch == 3:
            with pytest.raises(RunError, match="is on its way to site"):
                run.move("flows@1", 0, 1)
        if name == "begin" and epoch == 4:
            run.set_sites(2)  # the new site goes away while rows wait for it

    far = Far(tmp_path)
    run = far.start(step)
    assert run.await_termination(60)
    assert max(run.partition_map("flows@1").sites) == 1
    assert far.rows() == expected


def test_a_pin_where_a_partition_is_moves_nothing(tmp_path: Path, expected: list[Any]) -> None:
    def pin(run: Any, name: str, epoch: int) -> None:
        if name == "begin" and epoch == 2:
            run.pin("flows@1", 0, run.partition_map("flows@1").sites[0])

    far = Far(tmp_path)
    run = far.start(pin)
    assert run.await_termination(60)
    assert run.pins
    assert not [line for line in run.history() if line["kind"] == "move"]
    assert not any(far.phases)
    assert far.rows() == expected


def test_a_move_that_another_map_overtakes_is_told_as_given_up(tmp_path: Path) -> None:
    def step(run: Any, name: str, epoch: int) -> None:
        known = run.partition_map("flows@1")
        if name == "begin" and epoch == 2:
            run.move("flows@1", 0, (known.sites[0] + 1) % 4)
        elif name == "after-commit" and epoch == 2:
            with pytest.raises(RunError, match="on its way to site"):
                run.pin("flows@1", 0, known.sites[0])
            run.repartition("flows@1", known.moved({0: (known.sites[0] + 2) % 4}))

    run = Far(tmp_path).start(step)
    assert run.await_termination(60)
    asked, other = [line for line in run.history() if line["kind"] == "move"][:2]
    assert asked["givenUp"] == "it was moved or cut in another way"
    assert (other["cause"], other["givenUp"]) == ("another map", None)


def test_a_pin_of_a_partition_that_the_last_map_did_not_have_holds_after_a_crash(
    tmp_path: Path, expected: list[Any]
) -> None:
    """It was cut and pinned while an epoch ran that is committed with the map of before."""

    def crash(run: Any, name: str, epoch: int) -> None:
        if epoch == 2 and name == "before-tasks":
            run.repartition("flows@1", run.partition_map("flows@1").split(7))
            run.pin("flows@1", 7, 3)
        elif epoch == 2 and name == "after-commit":
            raise OSError("a crash")

    with pytest.raises(RunError, match="a crash"):
        Far(tmp_path).start(crash).await_termination(60)
    kept: list[Any] = []

    def look(run: Any, name: str, epoch: int) -> None:
        if name == "begin" and not kept:
            kept.append(run.partition_map("flows@1"))
            run.unpin("flows@1", 7)

    far = Far(tmp_path)
    again = far.start(look)
    assert again.await_termination(60)
    assert 7 in kept[0].starts
    assert kept[0].sites[kept[0].partition_at(7)] == 3
    assert again.pins == {}
    assert far.rows() == expected
