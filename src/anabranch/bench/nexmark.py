"""Queries of Nexmark over the same files through Anabranch and through Spark, results compared with DuckDB's.

The queries are in `bench/nexmark_queries.py`, how Spark is asked for them is in `bench/nexmark_spark.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.jobs import Job, JobOutcome, Ours, Reference, run_job
from anabranch.bench.measure import load, machine
from anabranch.bench.nexmark_queries import (
    OPEN_SECONDS,
    QUERIES,
    NexmarkDigest,
    expected_digest,
    found_digest,
)
from anabranch.bench.result import Result, describe, describe_spread, rates
from anabranch.errors import RunError
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.testing.nexmark import write_nexmark

EVENTS, QUICK_EVENTS = 10_000_000, 200_000
FILES = 10
"""Of each stream, one an epoch."""
CORES = 2
REPEATS = 2
QUICK = ("q0", "q5", "q8")
NOTES = (
    "Rows are those of the streams that a query reads: bids are 92 of 100 events, auctions 6, people 2. "
    "Rates leave out the first epoch of either side.",
    "Spark has its default state store and 2 shuffle partitions, the faster of two runs, one of them with "
    "our JVM options. q5 collects the auctions of a window and q9 takes the greatest struct, since Spark "
    "has no ROW_NUMBER over a stream. Where Spark fails, its rate is null and `why` has its words.",
    "q3 and q20 have no bound of time: both sides keep all rows. In q9 an auction lasts ten seconds, since "
    "the rows have no other end of it.",
    f"Results of windows in the last {OPEN_SECONDS} s of the streams are not compared: sides close them at "
    "different times.",
)


class NexmarkRuns:
    """The runs of the benchmark over one folder of files."""

    def __init__(self, folder: Path, steps: Steps) -> None:
        self._folder, self._steps = folder, steps
        self._expected: dict[str, NexmarkDigest] = {}
        self._count = 0
        self.data = str(folder / "data")

    def query(self, name: str, repeats: int) -> dict[str, Any]:
        """Both sides of one query."""
        ours: list[JobOutcome] = []
        spark: list[JobOutcome] = []
        equal, why = True, ""
        # The sides take turns, so that a slow hour of the machine meets both
        for number in range(repeats):
            ours.append(self._ours(name))
            equal = self._right(ours[-1], name) and equal
            try:
                spark.append(self._spark(name, tuned=number > 0))
                equal = self._right(spark[-1], name) and equal
            except RunError as error:
                why = str(error)[-500:]
        mine = rates(ours)
        best = max((outcome.rate for outcome in spark), default=None)
        return {
            "rows": sum(epoch.rows for epoch in ours[0].answer.epochs),
            "results": self._expected[name].rows,
            "rows_per_s": mine.median,
            "rows_per_s_per_core": round(mine.median / CORES),
            "spread": describe_spread(mine),
            "spark_rows_per_s": best and round(best),
            "spark_rows_per_s_per_core": best and round(best / CORES),
            "ratio": best and round(mine.median / best, 2),
            "why": why,
            "equal": equal,
            "peak_rss_mb": max(run.peak.rss_mb for run in ours),
            "spark_peak_rss_mb": max((run.peak.rss_mb for run in spark), default=None),
            "runs": [describe(run) for run in [*ours, *spark]],
        }

    def _ours(self, name: str) -> JobOutcome:
        streams = QUERIES[name].streams
        return self._run(
            Ours(data=self.data, scratch=self._scratch(), streams=streams, nexmark=name, cores=CORES)
        )  # fmt: skip

    def _spark(self, name: str, tuned: bool) -> JobOutcome:
        return self._run(
            Reference(
                data=self.data, scratch=self._scratch(), streams=QUERIES[name].streams, nexmark=name,
                cores=CORES, tuned=tuned,
            )
        )  # fmt: skip

    def _run(self, job: Job) -> JobOutcome:
        self._steps.begin(f"{job.nexmark}: {job}")
        return run_job(job)

    def _scratch(self) -> str:
        self._count += 1
        return str(self._folder / f"run-{self._count}")

    def _right(self, outcome: JobOutcome, name: str) -> bool:
        if name not in self._expected:
            self._expected[name] = expected_digest(self.data, name)
        return found_digest(self.data, name, outcome.results) == self._expected[name]


def run_nexmark(quick: bool, steps: Steps) -> Result:
    """All queries on both sides; with `quick`, three of them over few events, each run once."""
    names = QUICK if quick else tuple(QUERIES)
    events, repeats = (QUICK_EVENTS, 1) if quick else (EVENTS, REPEATS)
    steps.expect(1 + 2 * repeats * len(names))
    before = load()
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        runs = NexmarkRuns(Path(scratch), steps)
        steps.begin(f"Writing {events:,} events")
        write_nexmark(runs.data, events, parts=FILES)
        queries = {name: runs.query(name, repeats) for name in names}
    equal = all(found["equal"] for found in queries.values())
    ratios = [found["ratio"] for found in queries.values() if found["ratio"] is not None]
    figures: dict[str, Any] = {
        "quick": quick,
        "events": events,
        "equal": equal,
        "least_ratio": min(ratios, default=0.0),
        "least_rows_per_s_per_core": min(one["rows_per_s_per_core"] for one in queries.values()),
        **queries,
    }
    bars = (Bar("least_ratio", figures["least_ratio"], ">=", 1.0),)
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("nexmark", figures, bars, NOTES, equal, circumstances)


def nexmark_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    for name, found in figures.items():
        if name in QUERIES:
            rate = found["spark_rows_per_s_per_core"]
            spark = f"Spark {rate:,}, ratio {found['ratio']:g}" if rate else "Spark failed"
            yield (
                f"{name:3} {found['rows_per_s_per_core']:,} rows/s a core of {found['rows']:,}, {spark}; "
                f"{found['results']:,} results, equal to DuckDB's: {str(found['equal']).lower()}"
            )
