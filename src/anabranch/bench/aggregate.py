"""W1: the windowed aggregate over the same files through Anabranch and through Spark.

Spark gets the better of its two state stores and of 2 and 8 shuffle partitions, found at one file a
trigger and then kept. Both sides leave out their first epoch. Every run's results are compared with
DuckDB's, and the two sides' with each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.data import Packets, w1
from anabranch.bench.duck import batch_rate
from anabranch.bench.jobs import Job, JobOutcome, Ours, Reference, run_job
from anabranch.bench.measure import Repeated, load, machine
from anabranch.bench.oracle import BenchOracle, Check, aggregate_text
from anabranch.bench.result import Result, describe, describe_spread, rates
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

WINDOW = 60
FILES = {1: 10, 2: 10, 5: 20}
"""Files an epoch, and files in all: at five of ten files each, only one epoch would count."""
STEPS, QUICK_STEPS = 26, 10
CORES = 2
"""Three folders of files, and the runs over them."""
CANDIDATES = (("default", 2), ("RocksDB", 2), ("default", 8), ("RocksDB", 8))
NOTES = (
    "Rates leave out the first epoch of either side; total_seconds has it in it.",
    "Spark's rate also leaves out its last micro-batch, which has no rows and gives out the last "
    "window; rows_per_s_with_empty_batches has it in it. Ours gives that window out in the last epoch.",
    "At 5 files an epoch, both sides read 20 files instead of 10, so that 3 epochs count.",
    "The DataFrame run gets its first file alone and the others when that epoch is done; its rate is "
    "by the clock from then to the end of the last epoch, and an epoch may take several batches.",
    "What of the first counted epoch was prepared during the one before is added to its time.",
    "Spark is given the options of our JVM, too, if it is faster with them. duckdb_rows_per_s: the same "
    "files read, aggregated and written as one batch on as many threads; over_duckdb: our best over that.",
)


class Series:
    """The runs of one benchmark in its folder, each checked against DuckDB."""

    def __init__(self, folder: Path, steps: Steps, packets: Callable[[int], Packets]) -> None:
        self.runs: list[JobOutcome] = []
        self.checks: list[Check] = []
        self.sides: list[Check] = []
        self._folder, self._steps, self._packets = folder, steps, packets
        self._results: dict[tuple[str, int], Path] = {}
        self._oracles: dict[str, BenchOracle] = {}

    def data(self, files: int) -> str:
        """The folder with so many files; made the first time."""
        folder = self._folder / f"data-{files}"
        if not folder.exists():
            self._steps.begin(f"Writing {files} files")
            for _ in self._packets(files).write(folder):
                pass
        return str(folder)

    def ours(self, each: int, dataframe: bool = False) -> JobOutcome:
        data = self.data(10 if dataframe else FILES[each])
        return self._run(Ours(data=data, scratch=self._scratch(), files=each, dataframe=dataframe))

    def spark(self, each: int, store: str, partitions: int, tuned: bool = False) -> JobOutcome:
        return self._run(
            Reference(
                data=self.data(FILES[each]), scratch=self._scratch(), files=each, store=store,
                partitions=partitions, tuned=tuned,
            )
        )  # fmt: skip

    def best_spark(self, candidates: Sequence[tuple[str, int]]) -> JobOutcome:
        """Spark's fastest run with one of these, and that with our JVM options if it is faster still."""
        tried = [self.spark(1, *candidate) for candidate in candidates]
        best = max(tried, key=lambda outcome: outcome.rate)
        assert isinstance(best.job, Reference)
        tuned = self.spark(1, best.job.store, best.job.partitions, tuned=True)
        return max(best, tuned, key=lambda outcome: outcome.rate)

    def duckdb_rate(self, files: int, repeats: int) -> int:
        """Rows a second of DuckDB over the same files."""
        data = self.data(files)
        query = aggregate_text(data, WINDOW)
        return batch_rate(query, self._packets(files).total, self._folder, CORES, repeats)

    def _scratch(self) -> str:
        return str(self._folder / f"run-{len(self.runs)}")

    def _run(self, job: Job) -> JobOutcome:
        self._steps.begin(job)
        outcome = run_job(job)
        self.runs.append(outcome)
        if job.data not in self._oracles:
            self._oracles[job.data] = BenchOracle(job.data, WINDOW)
        oracle = self._oracles[job.data]
        self.checks.append(oracle.check(outcome.results))
        mine, other = ("ours", "spark") if isinstance(job, Ours) else ("spark", "ours")
        if (other, job.files) in self._results and (mine, job.files) not in self._results:
            self.sides.append(oracle.compare(outcome.results, self._results[other, job.files]))
        self._results[mine, job.files] = outcome.results
        return outcome

    @property
    def equal(self) -> bool:
        """Every run equals DuckDB, and the sides each other, over at least two whole windows."""
        both = [*self.checks, *self.sides]
        return bool(self.sides) and all(c.equal and len(c.windows) >= 2 for c in both)

    def comparison(self) -> dict[str, Any]:
        return {
            "windows": sorted({window for check in self.sides for window in check.windows}),
            "window_seconds": WINDOW,
            "runs_against_duckdb": len(self.checks),
            "sides_against_each_other": len(self.sides),
            "rows": sum(check.rows for check in self.checks),
            "missing": sum(check.missing for check in [*self.checks, *self.sides]),
            "unexpected": sum(check.unexpected for check in [*self.checks, *self.sides]),
            "all_closed_windows_given_out": all(check.complete for check in self.checks),
        }


def run_aggregate(quick: bool, steps: Steps) -> Result:
    """Runs W1 on both sides; with `quick`, a tenth of the rows, few settings, each run once."""
    rows = 100_000 if quick else 1_000_000
    repeats = 1 if quick else 3
    candidates = CANDIDATES[:1] if quick else CANDIDATES
    steps.expect(QUICK_STEPS if quick else STEPS)
    before = load()
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        series = Series(Path(scratch) / "w1", steps, lambda files: w1(rows, files))
        ours = {1: [series.ours(1)]}
        best = series.best_spark(candidates)
        assert isinstance(best.job, Reference)
        chosen = (best.job.store, best.job.partitions, best.job.tuned)
        spark = {1: [best]}
        frames = [series.ours(1, dataframe=True)]
        # The sides take turns, so that a slow hour of the machine meets both
        for again in range(1, repeats):
            ours[1].append(series.ours(1))
            frames.append(series.ours(1, dataframe=True))
            if again == 1:
                spark[1].append(series.spark(1, *chosen))
        for each in (5,) if quick else (2, 5):
            spark[each] = [series.spark(each, *chosen)]
            ours[each] = [series.ours(each) for _ in range(repeats)]
            if repeats > 1:
                spark[each].append(series.spark(each, *chosen))
        duckdb = series.duckdb_rate(10, repeats)
        wide = Series(Path(scratch) / "wide", steps, lambda files: w1(rows, files, 2_000_000))
        ten_times = wide.ours(1)
        wide_equal = all(check.equal for check in wide.checks)
    return _result(
        series, ours, spark, frames, ten_times, wide_equal, chosen, duckdb, quick, before
    )


def _result(
    series: Series, ours: dict[int, list[JobOutcome]], spark: dict[int, list[JobOutcome]],
    frames: list[JobOutcome], ten_times: JobOutcome, wide_equal: bool, chosen: tuple[str, int, bool],
    duckdb: int, quick: bool, before: list[float],
) -> Result:  # fmt: skip
    ours_at = {each: rates(runs) for each, runs in ours.items()}
    spark_at = {each: rates(runs) for each, runs in spark.items()}
    ours_best = max(ours_at, key=lambda each: ours_at[each].median)
    spark_best = max(spark_at, key=lambda each: spark_at[each].median)
    frame_rate = rates(frames)
    ratio = ours_at[1].median / spark_at[1].median
    best_ratio = ours_at[ours_best].median / spark_at[spark_best].median
    dataframe_ratio = frame_rate.median / spark_at[1].median
    equal = series.equal and wide_equal
    figures: dict[str, Any] = {
        "quick": quick,
        "rows_per_s": ours_at[1].median,
        "spark_rows_per_s": spark_at[1].median,
        "ratio": round(ratio, 2),
        "best_ratio": round(best_ratio, 2),
        "best_files_per_epoch": {"ours": ours_best, "spark": spark_best},
        "dataframe_ratio": round(dataframe_ratio, 2),
        "dataframe_rows_per_s": frame_rate.median,
        "duckdb_rows_per_s": duckdb,
        "over_duckdb": round(ours_at[ours_best].median / duckdb, 3),
        "equal": equal,
        "peak_rss_mb": max(run.peak.rss_mb for run in ours[1]),
        "peak_pss_mb": max(run.peak.pss_mb for run in ours[1]),
        "spark_peak_rss_mb": max(run.peak.rss_mb for run in spark[1]),
        "spark_peak_pss_mb": max(run.peak.pss_mb for run in spark[1]),
        "ten_times_groups": {
            "peak_rss_mb": ten_times.peak.rss_mb,
            "peak_pss_mb": ten_times.peak.pss_mb,
            "rows_per_s": round(ten_times.rate),
            "equal": wide_equal,
        },
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
            "dataframe": describe_spread(frame_rate),
            "ratio": extremes(ours_at[1], spark_at[1]),
            "best_ratio": extremes(ours_at[ours_best], spark_at[spark_best]),
            "dataframe_ratio": extremes(frame_rate, spark_at[1]),
        },
        "configurations": [describe(run) for run in [*series.runs, ten_times]],
    }
    bars = (
        Bar("ratio", figures["ratio"], ">=", 14), Bar("best_ratio", figures["best_ratio"], ">=", 14),
        Bar("dataframe_ratio", figures["dataframe_ratio"], ">=", 6),
        Bar("peak_rss_mb", figures["peak_rss_mb"], "<=", 1600),
        Bar("ten_times_groups.peak_rss_mb", ten_times.peak.rss_mb, "<=", 2000),
    )  # fmt: skip
    java = spark[1][0].answer.java
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine(), "java": java}
    return Result("aggregate", figures, bars, NOTES, equal, circumstances)


def extremes(ours: Repeated, spark: Repeated) -> dict[str, float]:
    """The ratio between single runs: at worst, at best, and between the best of each side."""
    return {
        "least": round(ours.least / spark.most, 2),
        "most": round(ours.most / spark.least, 2),
        "best_runs": round(ours.most / spark.most, 2),
    }
