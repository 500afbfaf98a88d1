"""One run of `bench spill`: the three-way join of the paper on state adaptation, in compressed time.

An epoch is a minute of the paper's, or a quarter of one. What a site gets in it does not depend on how fast
this machine is: as in the paper sites keep up with their input, and results depend on what is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.bench.join_oracle import Digest, digest_of_join, digest_of_results, join_text
from anabranch.bench.measure import cpu_seconds
from anabranch.engine.run import Run
from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import slot_of
from anabranch.routing.partition_map import even_map, slots_for
from anabranch.session import Session
from anabranch.settings import NONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 300
STREAMS = ("a", "b", "c")
QUERY = "joined"
SWING = 10
"""How many times as many rows the partitions of one half get while it is their turn."""
UNLIMITED = 1 << 50


@dataclass(frozen=True)
class PaperTraffic:
    """What the three streams bring."""

    epochs: int
    rows: int
    """Of each stream in an epoch."""
    tuple_range: int
    ratios: Sequence[float]
    """The range join ratio of each partition: how often a key comes within a tuple range."""
    turn: int = 0
    """Epochs for which one half of the partitions gets most rows, at first; later turns are twice as long."""

    def weights(self, epoch: int) -> np.ndarray:
        """Which share of the rows each partition gets."""
        first = np.arange(PARTITIONS) < PARTITIONS // 2
        swinging = bool(self.turn)
        turn = (epoch + self.turn) // (2 * self.turn) % 2 if swinging else 0
        weights = np.where(swinging & (first == (turn == 0)), float(SWING), 1.0)
        shares: np.ndarray = weights / weights.sum()
        return shares


@dataclass(frozen=True)
class TrafficFiles:
    """The same as files, one of each stream an epoch."""

    folder: Path
    traffic: PaperTraffic

    @cached_property
    def expected(self) -> Digest:
        """What DuckDB makes of them."""
        return digest_of_join(str(self.folder), STREAMS, None)


def write(folder: Path, traffic: PaperTraffic) -> TrafficFiles:
    """Writes the files of all epochs."""
    random = np.random.default_rng(7)
    counts = np.maximum(1, np.rint(traffic.tuple_range / PARTITIONS / np.asarray(traffic.ratios)))
    keys, firsts = _keys(counts.astype(int))
    for name in STREAMS:
        (folder / name).mkdir(parents=True)
    for epoch in range(traffic.epochs):
        shares = traffic.weights(epoch)
        for name in STREAMS:
            at = random.choice(PARTITIONS, traffic.rows, p=shares)
            key = keys[firsts[at] + (random.random(traffic.rows) * counts[at]).astype(int)]
            frame = pl.DataFrame(
                {
                    "time": np.full(traffic.rows, epoch, dtype=np.int64),
                    "k": key,
                    "v": random.integers(0, 1 << 40, traffic.rows),
                }
            )
            frame.write_parquet(folder / name / f"{epoch:04d}.parquet")
    return TrafficFiles(folder, traffic)


def _keys(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """So many keys of each partition, one partition after another, and where those of each begin."""
    known = even_map(PARTITIONS, 1, slots_for(PARTITIONS))
    some = np.arange((int(counts.max()) + 50) * PARTITIONS * 2, dtype=np.int64)
    slots = slot_of(hash_columns([pl.Series("k", some)], len(some)), known.slots).view(np.int64)
    partition = np.searchsorted(np.asarray(known.starts), slots, "right") - 1
    order = np.argsort(partition, kind="stable")
    begins = np.searchsorted(partition[order], np.arange(PARTITIONS))
    firsts = np.cumsum(counts) - counts
    assert (np.diff(begins, append=len(some)) >= counts).all(), "too few keys for a partition"
    chosen = [some[order[b : b + count]] for b, count in zip(begins, counts, strict=True)]
    return np.concatenate(chosen), firsts


@dataclass(frozen=True)
class Approach:
    """How a run goes about it."""

    sites: int = 1
    memory: float = UNLIMITED
    """Bytes that each site may keep."""
    policy: str = NONE
    settings: dict[str, Any] = field(default_factory=dict)
    shares: Sequence[float] = ()
    """Which part of the partitions each site has at first; none: all alike."""
    every: int = 0
    """Epochs from one look at what could move to the next; none: after every one."""


@dataclass
class SpillCourse:
    """What a run did."""

    results: list[int]
    """By epoch with input."""
    memory: list[list[float]]
    """What each site keeps in memory after each of them."""
    state_bytes: int
    """All there was at the end of the input."""
    seconds: float
    """What these epochs took."""
    computing: float
    """For how long all processes were computing in them."""
    moved: int
    rounds: int
    """Epochs after which anything moved."""
    spilled: int | None
    """The first epoch after which something was aside."""
    owed: int
    """Results of the clean-up at the end."""
    clean_up: float
    """The seconds for which the site was busy with it that was longest."""
    equal: bool

    @property
    def total(self) -> int:
        """The results by the end of the input."""
        return sum(self.results)

    @property
    def most(self) -> float:
        """The most that a site kept."""
        return max(map(max, self.memory))


class _Hand:
    """Gives partitions their first sites, and has moves decided at fixed times."""

    def __init__(self, asked: Approach, epochs: int) -> None:
        self._asked, self._epochs = asked, epochs
        self._ready = Event()
        self.computed: dict[int, float] = {}
        """The time spent computing by the second epoch, and by the end of the input."""

    def take(self, run: Run) -> None:
        """Takes hold of the run, whose first epoch waits for it."""
        self._run = run
        self._ready.set()

    def step(self, name: str, epoch: int) -> None:
        if name != "begin":
            return
        self._ready.wait()
        if epoch in (1, self._epochs):
            self.computed[epoch] = cpu_seconds()
        if epoch == 0 and self._asked.shares:
            ends = np.cumsum(self._asked.shares) * PARTITIONS
            sites = np.searchsorted(ends, np.arange(PARTITIONS) + 0.5).tolist()
            (subquery,) = self._run.plan.subqueries
            self._run.repartition(subquery, self._run.partition_map(subquery).on(sites))
            self._run.release(subquery)
        if epoch and self._asked.every and epoch % self._asked.every == 0:
            self._run.rebalance()


def run_one(
    spark: SparkSession | None, files: TrafficFiles, asked: Approach, scratch: Path
) -> SpillCourse:
    """Runs the join over the files, to the end of the clean-up; without Spark in this process."""
    epochs = files.traffic.epochs
    settings: dict[str, Any] = {
        "max_files_per_epoch": 1,
        "partitions_per_site": PARTITIONS // asked.sites,
        "allow_unbounded_state": True,
        "site_memory_bytes": round(asked.memory),
        "policy": asked.policy,
        # As the paper does: no cuts of partitions, no thresholds that follow what is measured
        "split_partitions": False,
        "self_tuning": False,
        "least_collection_seconds": 1e6 if asked.every else 0.0,
        "most_collection_seconds": 1e6,
        "spill_idle_epochs": epochs // 2,
        "recent_progress": 100 * epochs,
        "fsync": False,
    }
    session = Session(spark, asked.sites, settings | asked.settings)
    for name in STREAMS:
        session.stream(name, path=files.folder / name, ordered="time")
    session.query(QUERY, join_text(STREAMS, None))
    hand = _Hand(asked, epochs)
    run = session.start(
        sinks={QUERY: scratch / "results"}, checkpoint=scratch / "checkpoint", at_end="close",
        on_step=hand.step, trigger="available-now",
    )  # fmt: skip
    hand.take(run)
    run.await_termination()
    found = digest_of_results(scratch / "results", STREAMS)
    computing = hand.computed[epochs] - hand.computed[1]
    return _course(run.recent_progress, epochs, computing, found == files.expected)


def _course(told: list[dict[str, Any]], epochs: int, computing: float, equal: bool) -> SpillCourse:
    reading, after = told[:epochs], told[epochs:]
    results = [one["sinks"][0]["numOutputRows"] for one in told]
    memory = [one["customMetrics"]["adaptation"]["memory"] for one in reading]
    busy: dict[int, float] = {}
    for one in after:
        for site in one["customMetrics"]["sites"]:
            busy[site["site"]] = busy.get(site["site"], 0.0) + site["busySeconds"]
    # In the first epoch partitions go where they are to begin
    moved = [one["customMetrics"]["adaptation"]["moved"] for one in reading[1:]]
    aside = [sum(site["aside"] for site in sites) > 0 for sites in memory]
    return SpillCourse(
        results=results[:epochs],
        memory=[[site["resident"] for site in sites] for sites in memory],
        state_bytes=reading[-1]["stateOperators"][0]["memoryUsedBytes"],
        seconds=sum(one["durationMs"]["triggerExecution"] for one in reading[1:]) / 1000,
        computing=computing,
        moved=sum(moved),
        rounds=sum(count > 0 for count in moved),
        spilled=aside.index(True) if any(aside) else None,
        owed=sum(results[epochs:]),
        clean_up=max(busy.values(), default=0.0),
        equal=equal,
    )
