"""Moves, splits and other numbers of sites while Spark runs, and a worker that is killed: a few seeds.

The seeds are those of `anabranch chaos`, here with two to three sites.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import anabranch
from anabranch import Session, col, count, sum_
from anabranch.engine.local import local_spark
from anabranch.settings import Settings
from anabranch.testing.cases import NUMBERS, Case, Shape, make_frames, streams
from anabranch.testing.chaos import draw_seed, run_seed
from anabranch.testing.disturbances import Meddler, move_many, resize, split
from anabranch.testing.faults import Schedule, killed_worker, slow
from anabranch.testing.invariants import check_invariants
from anabranch.testing.trial import Leg, Scene, SessionMaker, Trial, check
from helpers import in_soak

pytestmark = [pytest.mark.spark, pytest.mark.chaos]

SEEDS = (0, 2, 9, 10, 17)
"""Together they have aggregates and joins, crashes, and all that a disturbance can be."""


def memory_of(trial: Trial) -> int:
    """The bytes that a site may keep."""
    memory: int = trial.settings["site_memory_bytes"]
    return memory


def maker(spark: SparkSession) -> SessionMaker:
    def make(sites: int, settings: Settings) -> Session:
        return Session(spark, sites, settings)

    return make


@pytest.mark.parametrize("seed", SEEDS)
def test_seeds(seed: int, spark: SparkSession) -> None:
    report = run_seed(seed, maker(spark), sites=(2, 3))
    assert report.failure is None, report.failure


@cache
def short_of_memory() -> tuple[int, ...]:
    """The first seeds whose sites have hardly any memory."""
    short = (
        s for s in itertools.count() if memory_of(draw_seed(s, (2, 3), staged=False)[1]) <= 3_000
    )
    return tuple(islice(short, 20))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(20))
def test_seeds_with_little_memory(number: int, spark: SparkSession) -> None:
    report = run_seed(short_of_memory()[number], maker(spark), sites=(2, 3))
    assert report.failure is None, report.failure


@cache
def replans(seed: int) -> bool:
    """Whether joins come to other shapes in a seed, told by a run of it in this process."""
    several = "plans" in draw_seed(seed, (2, 3), staged=False)[1].settings
    return several and bool(run_seed(seed, sites=(2, 3)).fired["replan"])


@pytest.mark.parametrize("number", [0, 1, *in_soak(range(2, 20))])
def test_seeds_that_replan(number: int, spark: SparkSession) -> None:
    seed = next(islice((s for s in itertools.count() if replans(s)), number, None))
    report = run_seed(seed, maker(spark), sites=(2, 3))
    assert report.failure is None, report.failure
    assert report.fired["replan"], "no join came to another shape"


def busy_case() -> Case:
    """Sums and a join over them, in eight epochs."""
    (rows,) = streams(["rows"], NUMBERS)
    frames = make_frames(Shape(400, 8, 0.3, 20, nulls=True, keys=9, begin=0, seed=3), NUMBERS)
    flows = rows.group_by((col("time") // 20).alias("tb"), "i", "t").agg(
        count().alias("n"), sum_("v").alias("total")
    )
    pairs = flows.join(flows, on=["i", "t", ("tb", col("tb") + 1)])
    return Case({"rows": frames}, {"rows": 15}, {"flows": flows, "pairs": pairs})


def test_moves_splits_and_sites_while_it_runs(spark: SparkSession) -> None:
    meddler = Meddler(5, (move_many, split, resize))
    faults = Schedule([slow(0, seconds_per_row=0.0005)])
    trial = Trial(
        (Leg(3, "before-commit", 2), Leg(2)), {"partitions_per_site": 4, "least_gain_seconds": 0.0},
        burdens=faults, watchers=(check_invariants, meddler),
    )  # fmt: skip
    outcome = check(busy_case(), trial, maker(spark))
    assert outcome.crashes == 1
    assert sum(decision["kind"] == "move" for decision in outcome.history) >= 5
    assert outcome.fired["split"] >= 2
    assert outcome.fired["resize"] >= 2
    assert len({manifest.sites for manifest in outcome.manifests}) >= 2


def test_a_worker_is_killed() -> None:
    """In a process of its own, with a Spark that tries a task again; moves go on meanwhile."""
    paths = Path(anabranch.__file__).parents[1], Path(__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["killed"] == [2, 3], "no worker was killed, or not where it should have been"
    assert told["moves"] >= 5


def kill_workers() -> dict[str, Any]:
    """Runs the case with two workers killed; results are compared with the oracle's."""
    killed: set[int] = set()

    def look(scene: Scene) -> None:
        # A worker leaves a mark before it is killed, so that its successor lives
        killed.update(int(mark.name.split("-")[1]) for mark in scene.folder.glob(".killed-*"))

    session = local_spark("local[2,4]")
    try:
        faults = Schedule([killed_worker(site=0, epoch=2), killed_worker(site=1, epoch=3)])
        watchers = (check_invariants, Meddler(5, (move_many, split)), look)
        trial = Trial((Leg(2),), burdens=faults, watchers=watchers)
        outcome = check(busy_case(), trial, maker(session))
    finally:
        session.stop()
    moves = sum(decision["kind"] == "move" for decision in outcome.history)
    return {"killed": sorted(killed), "moves": moves}


if __name__ == "__main__":
    print(json.dumps(kill_workers()))
