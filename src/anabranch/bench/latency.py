"""The time of small epochs: the same windowed aggregate on files of 1,000 rows, one an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from anabranch.bench.data import w1
from anabranch.bench.jobs import JobOutcome, Ours, Reference, run_job
from anabranch.bench.measure import load, machine, percentile, spread
from anabranch.bench.result import Result, describe, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

ROWS = 1000
FILES = 80
ARRIVING, ARRIVING_QUICK = 105, 12
"""Files that arrive one by one."""
LEFT_OUT = 5
"""Epochs at the start that do not count: the JVM compiles, workers start."""
REPEATS = 5
CANDIDATES = (("default", 2), ("RocksDB", 2), ("default", 8), ("RocksDB", 8))
BEFORE = 0.8
"""What an epoch of this version should take at most of one before it."""
NOTES = (
    f"Each run leaves out its first {LEFT_OUT} epochs, Spark's also its last, which has no rows.",
    "Spark's is the best of its candidates by median.",
    "appearance: files arrive one by one, each when the results of the one before can be read, and close its "
    "window; from the arrival until more results are visible. The first ones do not count.",
)


def run_latency(quick: bool, steps: Steps, against: str = "") -> Result:
    """Times small epochs on both sides; with `quick`, each run once and one candidate for Spark.

    With `against`, the package of another version of ours is measured in turn with this one.
    """
    repeats = 1 if quick else REPEATS
    files = LEFT_OUT + 5 if quick else FILES
    candidates = CANDIDATES[:1] if quick else CANDIDATES
    steps.expect((3 if against else 2) * repeats + len(candidates) + 3)
    before = load()
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        steps.begin(f"Writing {files} files")
        data = f"{scratch}/data"
        for _ in w1(ROWS, files).write(Path(data)):
            pass
        runs: list[JobOutcome] = []

        def run(job: Ours | Reference) -> JobOutcome:
            steps.begin(f"{job}, {ROWS:,} rows each")
            runs.append(run_job(job))
            return runs[-1]

        def place() -> str:
            return f"{scratch}/run-{len(runs)}"

        ours, other = [run(Ours(data=data, scratch=place()))], []
        if against:
            other.append(run(Ours(data=data, scratch=place(), source=against)))
        tried = [
            run(Reference(data=data, scratch=place(), store=store, partitions=partitions))
            for store, partitions in candidates
        ]
        best = min(tried, key=lambda outcome: median(epoch_times(outcome)))
        spark = [best]
        assert isinstance(best.job, Reference)
        # The sides take turns, so that a slow minute of the machine meets both
        for _ in range(repeats - 1):
            ours.append(run(Ours(data=data, scratch=place())))
            if against:
                other.append(run(Ours(data=data, scratch=place(), source=against)))
            spark.append(run(msgspec.structs.replace(best.job, scratch=place())))
        arriving = w1(ROWS, ARRIVING_QUICK if quick else ARRIVING)
        steps.begin("Files that arrive one by one")
        for _ in arriving.write(Path(f"{scratch}/arriving-data")):
            pass
        appeared = _appeared(f"{scratch}/arriving-data", place, run, best.job)
    result = _result(ours, spark, runs, quick, before)
    result = replace(result, figures=result.figures | {"appearance": appeared})
    if not other:
        return result
    times = _times(other)
    ratio = round(result.figures["median_ms"] / times["median_ms"], 3)
    figures = {"ratio_before": ratio, "before_median_ms": times["median_ms"], "before": times}
    bars = (*result.bars, Bar("ratio_before", ratio, "<=", BEFORE))
    return replace(result, figures=result.figures | figures, bars=bars)


def _appeared(
    data: str, place: Callable[[], str], run: Callable[[Ours | Reference], JobOutcome],
    chosen: Reference,
) -> dict[str, Any]:  # fmt: skip
    """From the arrival of a file until its results are visible, on both sides: each closes a window."""
    window = w1(ROWS, 1).seconds_per_file
    ours = run(Ours(data=data, scratch=place(), window=window, arriving=True))
    theirs = msgspec.structs.replace(
        chosen, data=data, scratch=place(), window=window, arriving=True
    )
    spark = run(theirs)
    found: dict[str, Any] = {}
    for side, outcome in (("ours", ours), ("spark", spark)):
        times = outcome.answer.appeared_ms[LEFT_OUT:]
        found[side] = {
            "p50_ms": round(percentile(times, 0.5), 1),
            "p99_ms": round(percentile(times, 0.99), 1),
            "files": len(times),
        }
    found["ratio_p50"] = round(found["ours"]["p50_ms"] / found["spark"]["p50_ms"], 3)
    found["ratio_p99"] = round(found["ours"]["p99_ms"] / found["spark"]["p99_ms"], 3)
    return found


def epoch_times(outcome: JobOutcome) -> list[float]:
    """Milliseconds of the epochs that count."""
    return [epoch.ms for epoch in outcome.answer.epochs[LEFT_OUT:] if epoch.rows]


def _result(
    ours: list[JobOutcome], spark: list[JobOutcome], runs: list[JobOutcome], quick: bool,
    before: list[float],
) -> Result:  # fmt: skip
    mine, theirs = _times(ours), _times(spark)
    ratio = round(mine["median_ms"] / theirs["median_ms"], 3)
    chosen = spark[0].job
    assert isinstance(chosen, Reference)
    figures = {
        "quick": quick,
        "ratio": ratio,
        "median_ms": mine["median_ms"],
        "spark_median_ms": theirs["median_ms"],
        "ratio_of_best_runs": round(mine["spread"]["least"] / theirs["spread"]["least"], 3),
        "rows_per_epoch": ROWS,
        "ours": mine,
        "spark": theirs,
        "spark_configuration": {"store": chosen.store, "partitions": chosen.partitions},
        "configurations": [describe(outcome) for outcome in runs],
    }
    circumstances = {
        "loadavg": {"before": before, "after": load()}, **machine(), "java": spark[0].answer.java,
    }  # fmt: skip
    return Result(
        "latency", figures, (Bar("ratio", ratio, "<=", 0.2),), NOTES, circumstances=circumstances
    )


def _times(outcomes: list[JobOutcome]) -> dict[str, Any]:
    medians = spread([median(epoch_times(outcome)) for outcome in outcomes])
    times = [time for outcome in outcomes for time in epoch_times(outcome)]
    return {
        "median_ms": medians.median,
        "p90_ms": percentile(times, 0.9),
        "p99_ms": percentile(times, 0.99),
        "epoch_ms": times,
        "spread": describe_spread(medians),
    }
