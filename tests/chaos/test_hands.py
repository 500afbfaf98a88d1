"""A user's hands on a run while it runs, from other threads: nothing breaks, no result changes."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import RunError
from anabranch.sources.base import ReadContext, Reader
from anabranch.testing.sources import EpochReader, EpochSource

pytestmark = pytest.mark.chaos

ROWS = 2_000


class Quiet(EpochSource):
    """A source that has nothing more after its frames, but ends only when it is told to."""

    def __init__(self, frames: list[pl.DataFrame]) -> None:
        super().__init__(frames)
        self.over = threading.Event()

    def open(self, context: ReadContext) -> Reader:
        return QuietReader(self.frames, int(context.offset or 0), self.over)


@dataclass
class QuietReader(EpochReader):
    over: threading.Event = field(default_factory=threading.Event)

    def finished(self) -> bool:
        return self.over.is_set() and super().finished()


def frames(count: int) -> list[pl.DataFrame]:
    rng = random.Random(4)
    return [
        pl.DataFrame(
            {
                "time": [10 * epoch + at * 10 // ROWS for at in range(ROWS)],
                "k": [rng.randrange(300) for _ in range(ROWS)],
            }
        )
        for epoch in range(count)
    ]


def expected(made: list[pl.DataFrame]) -> list[Any]:
    return sorted(pl.concat(made).group_by(pl.col("time") // 20, "k").len().rows())


def session(source: EpochSource, **settings: Any) -> Session:
    made = Session.in_process(3, {"fsync": False, "least_gain_seconds": 0.0, **settings})
    made.stream("s", source, ordered="time")
    made.query("n", "SELECT tb, k, COUNT(*) AS c FROM s GROUP BY time/20 AS tb, k")
    return made


def meddle(run: Any, seed: int, done: list[int]) -> None:
    draw = random.Random(seed)
    while run.is_active:
        # What is refused is refused; nothing else may happen
        with contextlib.suppress(RunError):
            meddle_once(run, draw)
        done.append(1)
        time.sleep(0.002)


def meddle_once(run: Any, draw: random.Random) -> None:
    known = run.partition_map("n@1")
    start, site = draw.choice(known.starts), draw.randrange(4)
    what = draw.choice(
        ["move", "pin", "unpin", "pause", "resume", "sites", "even", "cut", "release", "look"]
    )
    if what in ("move", "pin"):
        getattr(run, what)("n@1", start, site)
    elif what in ("unpin", "pause", "resume"):
        getattr(run, what)("n@1", start)
    elif what == "sites":
        run.set_sites(draw.randint(2, 5))
    elif what == "even":
        run.rebalance()
    elif what == "cut":
        change = known.split if draw.random() < 0.5 else known.merged
        run.repartition("n@1", change(start + 1 if change == known.split else start))
    elif what == "release":
        run.release("n@1")
    else:
        assert isinstance((run.history(), run.view(), run.paused, run.pins), tuple)


@pytest.mark.parametrize("far", [False, True])
def test_hands_of_two_users(tmp_path: Path, far: bool) -> None:
    made = frames(16)
    checkpoint = f"file://{tmp_path}/ckpt" if far else str(tmp_path / "ckpt")
    run = session(EpochSource(made)).start(
        sinks={"n": "memory"}, checkpoint=checkpoint, at_end="close"
    )
    done: list[int] = []
    threads = [threading.Thread(target=meddle, args=(run, seed, done)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    assert run.await_termination(120)
    for thread in threads:
        thread.join()
    assert len(done) > 100
    assert sorted(run.results("n").rows()) == expected(made)


def test_rows_that_wait_go_on_though_no_others_come() -> None:
    """A stream that falls silent must not keep back what is let go."""
    made = frames(6)
    source = Quiet(made)
    holder: list[Any] = []
    ready = threading.Event()

    def step(name: str, epoch: int) -> None:
        ready.wait()
        if (name, epoch) == ("begin", 0):
            for start in holder[0].partition_map("n@1").starts[:60]:
                holder[0].pause("n@1", start)

    run = session(source, policy="none").start(sinks={"n": "memory"}, on_step=step)
    holder.append(run)
    ready.set()

    def counted() -> int:
        return int(run.results("n")["c"].sum())

    def wait(least: int) -> bool:
        for _ in range(60):
            if counted() >= least:
                return True
            run.await_termination(0.05)
        return False

    closed = 4 * ROWS  # windows of 20 s, of 60 s of rows: two are closed
    assert not wait(closed)
    for _, start in run.paused:
        run.resume("n@1", start)
    assert wait(closed), "what was let go came out without new rows"
    source.over.set()
    assert run.await_termination(60)
    assert counted() == closed
