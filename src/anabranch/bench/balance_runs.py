"""One run of `bench balance`: its files, the burden on its sites, and who decides on the partitions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.placement import busiest_over_even, loads_of, place_by_load
from anabranch.engine.faults import Burden
from anabranch.engine.run import Run
from anabranch.routing.partition_map import PartitionMap, even_map, slots_for
from anabranch.session import Session
from anabranch.settings import Settings
from anabranch.sources.generate import DRIFT_SECONDS, Generator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SITES = 8
SECONDS_PER_ROW = 45e-6
SLOWDOWN = 1 / 0.43
"""What Flux's external load left of a machine."""
SLOW_FROM = 4
"""The epoch in which sites become slow: by then Spark and its workers are warm."""
EPOCHS_PER_DRIFT = 4
HOT, COLD = 40, 160
"""Keys with 80% of the rows, and keys with 20%."""
MODES = ("static", "adaptive", "ideal")
KEYS = {"uniform": 20_000, "80/20": 10 * HOT, "drift": 2_000, "much state": 200_000}
WINDOWS = {"much state": 36_000}
"""Seconds of the windows; with much state none ends."""
WINDOW = 10
SUBQUERY = "sums@1"
QUERY = "SELECT tb, k, COUNT(*) AS n, SUM(v) AS total FROM numbers GROUP BY time/{} AS tb, k"
EXPECTED = (
    "SELECT time // {} AS tb, k, COUNT(*) AS n, SUM(v)::BIGINT AS total FROM numbers GROUP BY ALL"
)


@dataclass(frozen=True)
class Scenario:
    """What is wrong: slowed sites or skewed keys."""

    keys: str = "uniform"
    slow: int = 0

    @property
    def slowness(self) -> np.ndarray:
        return np.where(np.arange(SITES) < self.slow, SLOWDOWN, 1.0)

    def burdens(self, epoch: int) -> dict[int, Burden]:
        slow = self.slow if epoch >= SLOW_FROM else 0
        return {
            site: Burden(SECONDS_PER_ROW, SLOWDOWN if site < slow else 1.0) for site in range(SITES)
        }


@dataclass(frozen=True)
class BalanceFiles:
    """The files of one kind of keys, an epoch each, and what DuckDB makes of them."""

    folder: Path
    epochs: int
    kind: str

    @property
    def drifting(self) -> bool:
        return self.kind == "drift"

    @property
    def window(self) -> int:
        return WINDOWS.get(self.kind, WINDOW)

    @cached_property
    def expected(self) -> pl.DataFrame:
        """What DuckDB makes of the files."""
        with connect() as duck:
            duck.execute(f"CREATE VIEW numbers AS FROM '{self.folder}/*.parquet'")
            found: pl.DataFrame = duck.sql(EXPECTED.format(self.window)).pl()
        return found.sort("tb", "k")

    def first(self, epochs: int) -> BalanceFiles:
        """The first files alone."""
        folder = self.folder.with_name(f"{self.folder.name}-first-{epochs}")
        folder.mkdir()
        for number in range(epochs):
            os.link(self.folder / f"{number:04d}.parquet", folder / f"{number:04d}.parquet")
        return BalanceFiles(folder, epochs, self.kind)

    def keys(self, epoch: int) -> pl.Series:
        """The keys of all epochs that are alike with this one, for knowledge beforehand."""
        numbers = range(self.epochs)
        if self.drifting:
            first = epoch // EPOCHS_PER_DRIFT * EPOCHS_PER_DRIFT
            numbers = numbers[first : first + EPOCHS_PER_DRIFT]
        return pl.concat([pl.read_parquet(self.folder / f"{n:04d}.parquet")["k"] for n in numbers])


@dataclass(frozen=True)
class BalanceCourse:
    """What a run did, epoch by epoch."""

    rows: list[int]
    ms: list[float]
    moved: list[int]
    """Partitions that were told in each epoch to move: by the controller after it, by hand before it."""
    imbalance: list[float]
    """The busiest site's time against the mean."""
    equal: bool
    ideal_rest: float = 1.0

    def rate(self, first: int) -> float:
        """Rows a second from an epoch on, epochs counted from 0."""
        return sum(self.rows[first:]) / sum(self.ms[first:]) * 1000

    def median_ms(self, first: int) -> float:
        return median(self.ms[first:])


def write(folder: Path, kind: str, rows: int, epochs: int) -> BalanceFiles:
    """Writes the files of one kind of keys."""
    folder.mkdir(parents=True)
    each = rows * EPOCHS_PER_DRIFT // DRIFT_SECONDS
    skew: dict[str, Any] = {"skew": "drift", "exponent": 0.9} if kind == "drift" else {}
    made = Generator("packets", keys=KEYS[kind], rows_per_second=each, **skew)
    key = pl.col("srcIP") - 0x0A000000
    if kind == "80/20":
        hot = 8 * HOT
        key = (
            pl.when(key < hot).then(key % HOT).otherwise(HOT + (key - hot) * 2 + pl.col("len") % 2)
        )
    for number in range(epochs):
        made.rows(number * rows, rows).select("time", key.alias("k"), v="len").write_parquet(
            folder / f"{number:04d}.parquet"
        )
    return BalanceFiles(folder, epochs, kind)


def most_by_moving(scenario: Scenario, data: BalanceFiles) -> float:
    """How many times as fast the service becomes if the first map is changed for an even one."""
    count = Settings().partitions_per_site * SITES
    first = even_map(count, SITES, slots_for(count))
    phases = range(0, data.epochs, EPOCHS_PER_DRIFT) if data.drifting else (0,)
    return fmean(
        busiest_over_even(loads_of(data.keys(epoch), first), first.sites, scenario.slowness)
        for epoch in phases
    )


class Hand:
    """Whoever has a hand in a run; this one leaves it alone."""

    run: Run | None = None
    rest = 1.0
    """How far the best placement it found is from an even one."""

    def step(self, name: str, epoch: int) -> None:
        """Called at each step of the run."""


class InTurn(Hand):
    """Moves a partition of each site on to the next site before every second epoch."""

    def step(self, name: str, epoch: int) -> None:
        if name == "begin" and self.run is not None and epoch % 2:
            known = self.run.partition_map(SUBQUERY)
            for site in range(SITES):
                own = [
                    start for start, at in zip(known.starts, known.sites, strict=True) if at == site
                ]
                self.run.move(SUBQUERY, own[epoch // 2 % len(own)], (site + 1) % SITES)


class ByHand(Hand):
    """Gives a run, before each epoch, the map that suits what is going to come."""

    def __init__(self, scenario: Scenario, data: BalanceFiles) -> None:
        self._scenario, self._data = scenario, data
        self._known: dict[bytes, PartitionMap] = {}

    def step(self, name: str, epoch: int) -> None:
        if name != "begin" or self.run is None or epoch >= self._data.epochs:
            return
        if epoch > 2 and not self._data.drifting:
            return
        known = self.run.partition_map(SUBQUERY)
        loads = loads_of(self._data.keys(epoch), known)
        placed = self._known.get(loads.tobytes())
        if placed is None:
            sites = place_by_load(loads, known.sites, self._scenario.slowness)
            self.rest = max(self.rest, busiest_over_even(loads, sites, self._scenario.slowness))
            placed = self._known[loads.tobytes()] = known.on(sites)
        self.run.repartition(SUBQUERY, placed)


def run_one(
    spark: SparkSession | None, scenario: Scenario, mode: str, data: BalanceFiles
) -> BalanceCourse:
    """Runs a scenario over the files of its input; without Spark in this process."""
    settings: dict[str, Any] = {
        "max_files_per_epoch": 1,
        # The emulated time is that of rows which arrive; sub-aggregates would make it one of senders
        "combine_reduction": 1e9,
        "recent_progress": data.epochs + 1,
    }
    if mode != "adaptive":
        settings |= {"policy": "none", "skew_buffer": "none"}
    session = Session(spark, SITES, settings)
    session.stream("numbers", path=data.folder, ordered="time")
    session.query("sums", QUERY.format(data.window))
    hand = Hand()
    if mode == "ideal":
        hand = ByHand(scenario, data)
    elif mode == "in turn":
        hand = InTurn()
    run = session.start(
        sinks={"sums": "memory"}, at_end="close", burdens=scenario.burdens, on_step=hand.step
    )
    hand.run = run
    run.await_termination()
    told = run.recent_progress[: data.epochs]
    found = run.results("sums").sort("tb", "k")
    adaptation = [epoch["customMetrics"]["adaptation"] for epoch in told]
    return BalanceCourse(
        [epoch["numInputRows"] for epoch in told],
        [float(epoch["durationMs"]["triggerExecution"]) for epoch in told],
        [some["moved"] for some in adaptation],
        [_imbalance(epoch["customMetrics"]["sites"]) for epoch in told],
        found.rows() == data.expected.rows(),
        hand.rest,
    )


def _imbalance(sites: list[dict[str, Any]]) -> float:
    busy: list[float] = [site["busySeconds"] for site in sites]
    return round(max(busy) * SITES / sum(busy), 3)
