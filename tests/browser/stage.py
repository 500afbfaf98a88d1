"""What browser tests show: a story of a cluster larger than any at hand, made up, as events."""

from __future__ import annotations

import numpy as np

from anabranch import Session, col, count
from anabranch.events.event import (
    DecisionTaken,
    EpochHappened,
    ExchangeFigures,
    RunEvent,
    RunStarted,
    columns,
)
from anabranch.observe.story import Story

SITES, PARTITIONS = 256, 8_192


def _example() -> tuple[RunStarted, EpochHappened]:
    """The start and an epoch of a real run, to be made large."""
    session = Session.in_process(sites=2)
    session.stream("tcp", generator="packets", rows=500, ordered="time")
    flows = session.from_stream("tcp").group_by((col("time") // 60).alias("tb"), "srcIP")
    session.query("flows", flows.agg(count().alias("cnt")))
    heard: list[RunEvent] = []
    session.listen(heard.append)
    session.start(sinks={"flows": "memory"}).await_termination()
    started = next(event for event in heard if isinstance(event, RunStarted))
    return started, next(event for event in heard if isinstance(event, EpochHappened))


class LargeRun:
    """Epochs and decisions of a run on 256 sites with 8,192 partitions of one exchange."""

    def __init__(self) -> None:
        self.started, self._epoch = _example()
        self._random = np.random.default_rng(7)
        self._weights = self._random.zipf(1.4, PARTITIONS).clip(1, 500).astype(float)
        self._sites = np.arange(PARTITIONS) % SITES

    def epoch(self, number: int) -> EpochHappened:
        rows = self._weights * self._random.uniform(0.6, 1.4, PARTITIONS) * 100
        self._sites = np.roll(self._sites, 3)
        busy = np.bincount(self._sites, rows, SITES) / 1e6
        told = self._epoch.progress
        site = told["customMetrics"]["sites"][0]
        memory = [
            {"site": n, "resident": int(busy[n] * 1e8), "aside": int(busy[n] * 2e7), "limit": 2 * 10**8}
            for n in range(SITES)
        ]  # fmt: skip
        custom = {
            **told["customMetrics"],
            "sites": [
                {**site, "site": n, "busySeconds": float(busy[n]), "executor": f"executor-{n // 8}"}
                for n in range(SITES)
            ],
            "adaptation": {**told["customMetrics"]["adaptation"], "memory": memory, "sites": SITES},
        }
        size = rows * 3_000
        figures = ExchangeFigures(
            slots=65_536,
            **columns(
                starts=np.arange(PARTITIONS) * 8, sites=self._sites, rows=rows, rows_out=rows / 7,
                size=size, aside=np.where(rows > 2e4, size / 2, 0), marks=np.where(rows > 2e4, 8, 0),
            ),
        )  # fmt: skip
        return EpochHappened(
            at=1_790_000_000.0 + number, epoch=number,
            progress={**told, "batchId": number, "customMetrics": custom},
            exchanges={"flows@1": figures},
        )  # fmt: skip

    def decision(self, number: int, epoch: int) -> DecisionTaken:
        partition = int(self._random.integers(PARTITIONS)) * 8
        return DecisionTaken(
            at=1_790_000_000.0 + epoch, epoch=epoch, number=number, what="move",
            action=f"move flows@1/{partition} from site 3 to 9", exchange="flows@1", partition=partition,
            source=3, target=9, bytes=120_000, cause="site 3 is busy", accepted=number % 3 > 0,
            reason="site 3 is busy", origin="controller", seconds=0.001, imbalance=1.8,
        )  # fmt: skip


def large_story(epochs: int, decisions: int) -> Story:
    """A story of such a run."""
    run, story = LargeRun(), Story()
    story.add(run.started)
    for number in range(epochs):
        story.add(run.epoch(number))
    for number in range(decisions):
        story.add(run.decision(number + 1, number % max(1, epochs)))
    return story
