"""Runs on a stage: lost sites with pins to them, and rows that must not wait."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from anabranch import Query, col, count
from anabranch.adapt.actions import Move
from anabranch.adapt.protocols.moving import (
    EpochCommitted,
    Fetch,
    Install,
    MoveAccepted,
    MoveProtocol,
)
from anabranch.engine.run import Run
from anabranch.errors import RunError
from anabranch.settings import Settings
from anabranch.testing.sources import EpochSource
from anabranch.testing.stage import Outage, Stage, on_stage

FRAMES = [pl.DataFrame({"time": [at] * 8, "k": range(8)}) for at in range(6)]


Step = Callable[[Run, str, int], None]


def run_on(stage: Stage, tmp_path: Path, query: Callable[[Query, Query], Query], step: Step) -> Run:
    """Runs a query over two streams to its end, with something done at every step."""
    session = on_stage(stage)(2, Settings(fsync=False, policy="none", poll_interval_seconds=0.0))
    one, two = (
        session.stream(name, EpochSource(FRAMES), ordered="time") for name in ("one", "two")
    )
    session.query("q", query(one, two))
    runs: list[Run] = []

    def hook(name: str, epoch: int) -> None:
        while not runs:
            pass
        step(runs[0], name, epoch)

    run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path, at_end="close", on_step=hook)
    runs.append(run)
    run.await_termination(60)
    return run


def counted(one: Query, two: Query) -> Query:
    return one.group_by((col("time") // 2).alias("tb"), "k").agg(count().alias("n"))


def test_a_map_is_taken_while_the_site_of_a_pinned_partition_is_gone(tmp_path: Path) -> None:
    """It is that of the run: nobody can put the partition where it is pinned to."""
    done = []

    def step(run: Run, name: str, epoch: int) -> None:
        if name == "begin" and epoch == 3:
            known = run.partition_map("q@1")
            start = known.starts[-1]
            run.pin("q@1", start, 1)
            assert known.sites[-1] == 0, "site 1 lives"
            run.repartition("q@1", known)
            done.append(epoch)

    run = run_on(Stage((Outage(1, 2, 5),)), tmp_path, counted, step)
    assert done == [3]
    assert run.partition_map("q@1").sites[-1] == 1, (
        "the site is back, and so is what is pinned to it"
    )
    assert run.results("q")["n"].sum() == 48


def test_rows_that_are_numbered_cannot_wait(tmp_path: Path) -> None:
    """Numbers of one input would come to the join before those of the other, and pairs be lost."""
    refused = []

    def joined(one: Query, two: Query) -> Query:
        return one.join(two, rows=3)

    def step(run: Run, name: str, epoch: int) -> None:
        if name == "begin" and epoch == 1:
            for exchange in run.plan.exchanges.values():
                if exchange.in_step:
                    with pytest.raises(RunError, match="none can wait"):
                        run.pause(exchange.name, 0)
                    refused.append(exchange)

    run_on(Stage(), tmp_path, joined, step)
    assert len(refused) == 2


def test_an_exchange_that_is_never_paused_is_moved_without() -> None:
    move = Move("numbers", 640, "test", source=0, target=1)
    protocol = MoveProtocol(never_paused={"numbers"})
    assert protocol.handle(MoveAccepted(move, 3, far=True)) == [Fetch(move)]
    assert protocol.handle(EpochCommitted(4)) == [Install(move, 3)]
