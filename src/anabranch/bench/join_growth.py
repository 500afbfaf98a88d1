"""W2 with ten times the state: an epoch must cost what its rows and results cost, not what is kept.

Both courses take the same rows an epoch and make as many combinations; in the second, rows that meet
may be much further apart, and there are as many times more keys. Only epochs count in which as much
state ends as begins.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.data import Events
from anabranch.bench.jobs import EpochTime, JobOutcome, Ours, run_job
from anabranch.bench.join_oracle import digest_of_join, digest_of_results
from anabranch.bench.join_series import ROWS, Workload
from anabranch.bench.measure import percentile, spread
from anabranch.bench.result import describe
from anabranch.observe.steps import Steps

TIMES = 10
"""How much further apart rows may be; `state_ratio` says how many times the rows that keeps."""
SETTLING = 3
"""Epochs after the state is full that do not count: its merges come into step."""
MEASURED = 11
REPEATS = 2
NOTES = (
    f"state_growth: with rows that meet up to {TIMES} times as far apart and {TIMES} times the keys, "
    "an epoch's rows and combinations stay as many; state_ratio says how many times the rows are kept. "
    f"The last {MEASURED} epochs of each run count, all of them after the state is full.",
)


def growth_steps(quick: bool) -> int:
    """Steps of the measurement: two folders of files, and the runs over them."""
    return 2 * (1 + (1 if quick else REPEATS))


def measure_growth(work: Workload, quick: bool, steps: Steps) -> dict[str, Any]:
    """Epoch times with the state of the workload and with ten times of it; the courses take turns."""
    rows = ROWS // 10 if quick else ROWS
    keys = work.keys // 10 if quick else work.keys
    courses = {
        "small": replace(work, keys=keys),
        "large": replace(work, keys=keys * TIMES, bound=work.bound * TIMES),
    }
    runs: dict[str, list[JobOutcome]] = {name: [] for name in courses}
    equal = True
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        expected = {}
        for name, course in courses.items():
            events = Events(course.streams, rows, _files(courses["large"]), course.keys)
            steps.begin(f"Writing {events.files} files of {len(course.streams)} streams")
            events.write(Path(scratch) / name)
            expected[name] = digest_of_join(f"{scratch}/{name}", course.streams, course.bound)
        for repeat in range(1 if quick else REPEATS):
            for name, course in courses.items():
                job = Ours(
                    data=f"{scratch}/{name}", scratch=f"{scratch}/run-{name}-{repeat}",
                    streams=course.streams, window=course.bound,
                )  # fmt: skip
                steps.begin(f"{job}, rows kept for {course.bound} s")
                outcome = run_job(job)
                runs[name].append(outcome)
                equal &= digest_of_results(outcome.results, course.streams) == expected[name]
    small, large = (_stage(courses[name], runs[name]) for name in courses)
    return {
        "ratio": round(large["median_ms"] / small["median_ms"], 3),
        "mean_ratio": round(large["mean_ms"] / small["mean_ms"], 3),
        "fastest_ratio": round(large["least_ms"] / small["least_ms"], 3),
        "state_ratio": round(large["state_rows"] / small["state_rows"], 2),
        "rows_per_epoch": rows * len(work.streams),
        "stages": [small, large],
        "equal": equal,
        "runs": [describe(outcome) for several in runs.values() for outcome in several],
    }


def _files(course: Workload) -> int:
    """Files until the state is full and the epochs that count are over."""
    filling = math.ceil(course.bound / Events(course.streams, 0, 0, 0).seconds_per_file) + 1
    return filling + SETTLING + MEASURED


def _stage(course: Workload, runs: list[JobOutcome]) -> dict[str, Any]:
    epochs: list[EpochTime] = [epoch for run in runs for epoch in run.answer.epochs[-MEASURED:]]
    times = spread([epoch.ms for epoch in epochs])
    return {
        "bound_seconds": course.bound,
        "keys": course.keys,
        "state_rows": round(fmean(epoch.state_rows for epoch in epochs)),
        "median_ms": times.median,
        "mean_ms": round(fmean(times.values), 1),
        "p90_ms": percentile(times.values, 0.9),
        "least_ms": times.least,
        "most_ms": times.most,
        "epochs": len(epochs),
    }
