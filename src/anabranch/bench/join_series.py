"""A join over the same files through Anabranch and through Spark, by the rules of W1 (`aggregate`).

Spark gets the best of its candidates, the sides take turns, both leave out their first epoch. An epoch
has so many files of every stream, and rows are the input rows of all streams. Every run's results are
compared with DuckDB's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.aggregate import CANDIDATES, CORES, FILES, extremes
from anabranch.bench.data import Events
from anabranch.bench.duck import batch_rate
from anabranch.bench.jobs import Job, JobOutcome, Ours, Reference, run_job
from anabranch.bench.join_oracle import (
    Digest,
    digest_of_join,
    digest_of_results,
    join_of_files,
)
from anabranch.bench.result import describe, describe_spread, rates
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

ROWS = 200_000
"""Rows of a file, of which every stream has one in an epoch."""
BOUND = 60
REPEATS = 3


@dataclass(frozen=True)
class Workload:
    """A join of these streams with keys from so many."""

    streams: tuple[str, ...]
    keys: int
    ratio: float
    best_ratio: float
    """How many times as fast as Spark it should be: at one file an epoch, and each side at its best."""
    bound: int = BOUND


class JoinSeries:
    """The runs of one workload in its folder, each compared with DuckDB."""

    def __init__(self, folder: Path, steps: Steps, work: Workload, rows: int) -> None:
        self.runs: list[JobOutcome] = []
        self.found: list[tuple[Digest, Digest]] = []
        """Of every run what it gave, and what DuckDB gives."""
        self._folder, self._steps, self._work, self._rows = folder, steps, work, rows
        self._expected: dict[str, Digest] = {}

    def data(self, files: int) -> str:
        """The folder with so many files of each stream; made the first time."""
        folder, work = self._folder / f"data-{files}", self._work
        if not folder.exists():
            self._steps.begin(f"Writing {files} files of {len(work.streams)} streams")
            Events(work.streams, self._rows, files, work.keys).write(folder)
            self._expected[str(folder)] = digest_of_join(str(folder), work.streams, work.bound)
        return str(folder)

    def ours(self, each: int) -> JobOutcome:
        return self._run(
            Ours(
                data=self.data(FILES[each]), scratch=self._scratch(), files=each,
                streams=self._work.streams, window=self._work.bound,
            )
        )  # fmt: skip

    def spark(self, each: int, store: str, partitions: int, tuned: bool = False) -> JobOutcome:
        return self._run(
            Reference(
                data=self.data(FILES[each]), scratch=self._scratch(), files=each, store=store,
                streams=self._work.streams, window=self._work.bound, partitions=partitions,
                tuned=tuned,
            )
        )  # fmt: skip

    def duckdb_rate(self, files: int, repeats: int) -> int:
        """Rows a second of DuckDB over the same files."""
        work = self._work
        query = join_of_files(self.data(files), work.streams, work.bound)
        rows = self._rows * files * len(work.streams)
        return batch_rate(query, rows, self._folder, CORES, repeats)

    def _scratch(self) -> str:
        return str(self._folder / f"run-{len(self.runs)}")

    def _run(self, job: Job) -> JobOutcome:
        self._steps.begin(job)
        outcome = run_job(job)
        self.runs.append(outcome)
        given = digest_of_results(outcome.results, self._work.streams)
        self.found.append((given, self._expected[job.data]))
        return outcome

    @property
    def equal(self) -> bool:
        """Every run gave what DuckDB gives, and that is something."""
        return all(given == wanted and given.rows for given, wanted in self.found)

    def comparison(self) -> dict[str, Any]:
        return {
            "runs_against_duckdb": len(self.found),
            "different": sum(given != wanted for given, wanted in self.found),
            "rows": sum(given.rows for given, _ in self.found),
            "rows_per_run": sorted({given.rows for given, _ in self.found}),
            # As texts: they have more digits than a double, which many readers of JSON use
            "checksums": sorted({str(given.checksum) for given, _ in self.found}),
        }


@dataclass(frozen=True)
class Comparison:
    """Both sides of one workload, as plain figures, and what they are held against."""

    figures: dict[str, Any]
    bars: tuple[Bar, ...]
    equal: bool
    java: str


def steps_of(quick: bool) -> int:
    """Steps of a comparison: two folders of files, and the runs over them."""
    return 7 if quick else 21


def compare(work: Workload, quick: bool, steps: Steps) -> Comparison:
    """Runs the workload on both sides; with `quick`, a tenth of the rows and keys, each run once."""
    rows = ROWS // 10 if quick else ROWS
    repeats = 1 if quick else REPEATS
    if quick:
        work = replace(work, keys=work.keys // 10)
    steps.expect(steps_of(quick))
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        series = JoinSeries(Path(scratch), steps, work, rows)
        ours = {1: [series.ours(1)]}
        candidates = CANDIDATES[:1] if quick else CANDIDATES
        tried = [series.spark(1, *candidate) for candidate in candidates]
        fastest = max(tried, key=lambda outcome: outcome.rate)
        assert isinstance(fastest.job, Reference)
        tuned = series.spark(1, fastest.job.store, fastest.job.partitions, tuned=True)
        best = max(fastest, tuned, key=lambda outcome: outcome.rate)
        assert isinstance(best.job, Reference)
        chosen = (best.job.store, best.job.partitions, best.job.tuned)
        spark = {1: [best]}
        # The sides take turns, so that a slow hour of the machine meets both
        for again in range(1, repeats):
            ours[1].append(series.ours(1))
            if again == 1:
                spark[1].append(series.spark(1, *chosen))
        for each in (5,) if quick else (2, 5):
            spark[each] = [series.spark(each, *chosen)]
            ours[each] = [series.ours(each) for _ in range(repeats)]
            if repeats > 1:
                spark[each].append(series.spark(each, *chosen))
        duckdb = series.duckdb_rate(FILES[1], repeats)
    return _comparison(series, work, ours, spark, chosen, rows, duckdb)


def _comparison(
    series: JoinSeries, work: Workload, ours: dict[int, list[JobOutcome]],
    spark: dict[int, list[JobOutcome]], chosen: tuple[str, int, bool], rows: int, duckdb: int,
) -> Comparison:  # fmt: skip
    ours_at = {each: rates(runs) for each, runs in ours.items()}
    spark_at = {each: rates(runs) for each, runs in spark.items()}
    ours_best = max(ours_at, key=lambda each: ours_at[each].median)
    spark_best = max(spark_at, key=lambda each: spark_at[each].median)
    figures: dict[str, Any] = {
        "rows_per_s": ours_at[1].median,
        "spark_rows_per_s": spark_at[1].median,
        "ratio": round(ours_at[1].median / spark_at[1].median, 2),
        "best_ratio": round(ours_at[ours_best].median / spark_at[spark_best].median, 2),
        "best_files_per_epoch": {"ours": ours_best, "spark": spark_best},
        "duckdb_rows_per_s": duckdb,
        "over_duckdb": round(ours_at[ours_best].median / duckdb, 3),
        "equal": series.equal,
        "rows_per_epoch": rows * len(work.streams),
        "keys": work.keys,
        "bound_seconds": work.bound,
        "peak_rss_mb": max(run.peak.rss_mb for run in ours[1]),
        "peak_pss_mb": max(run.peak.pss_mb for run in ours[1]),
        "spark_peak_rss_mb": max(run.peak.rss_mb for run in spark[1]),
        "spark_peak_pss_mb": max(run.peak.pss_mb for run in spark[1]),
        "spark_configuration": {
            "store": chosen[0],
            "partitions": chosen[1],
            "our_jvm_options": chosen[2],
            "heap": "8g",
        },
        "comparison": series.comparison(),
        "spread": {
            "ours": {each: describe_spread(values) for each, values in ours_at.items()},
            "spark": {each: describe_spread(values) for each, values in spark_at.items()},
            "ratio": extremes(ours_at[1], spark_at[1]),
            "best_ratio": extremes(ours_at[ours_best], spark_at[spark_best]),
        },
        "configurations": [describe(run) for run in series.runs],
    }
    bars = (
        Bar("ratio", figures["ratio"], ">=", work.ratio),
        Bar("best_ratio", figures["best_ratio"], ">=", work.best_ratio),
    )
    return Comparison(figures, bars, series.equal, spark[1][0].answer.java)
