"""W4, and W1 from a DataFrame: both sides at one file an epoch, by the rules of W1 (`aggregate`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.aggregate import CANDIDATES, Series, extremes
from anabranch.bench.data import Packets, w1
from anabranch.bench.jobs import JobOutcome, Reference
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result, describe, describe_spread, rates
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

EXPONENT = 1.1
FILES = 10
REPEATS = 3
NOTES = (
    "Rates leave out the first epoch of either side; what of the next was prepared in it is counted.",
    "Spark has the best of its candidates, with our JVM options if it is faster with them.",
)


def run_zipf(quick: bool, steps: Steps) -> Result:
    """W4: W1 with sources by Zipf's law; with `quick`, a tenth of the rows, each run once."""

    def packets(rows: int, files: int) -> Packets:
        return Packets((rows,) * files, exponent=EXPONENT)

    return _compare("zipf", packets, False, 9, quick, steps)


def run_dataframe(quick: bool, steps: Steps) -> Result:
    """W1 whose rows a streaming DataFrame brings; with `quick`, a tenth of the rows, each run once."""
    return _compare("dataframe", w1, True, 6, quick, steps)


def _compare(
    name: str, packets: Callable[[int, int], Packets], dataframe: bool, wanted: float, quick: bool,
    steps: Steps,
) -> Result:  # fmt: skip
    rows = 100_000 if quick else 1_000_000
    repeats = 1 if quick else REPEATS
    candidates = CANDIDATES[:1] if quick else CANDIDATES
    steps.expect(2 + len(candidates) + 2 * repeats)
    before = load()
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        series = Series(Path(scratch) / name, steps, lambda files: packets(rows, files))
        ours = [series.ours(1, dataframe)]
        spark = [series.best_spark(candidates)]
        chosen = spark[0].job
        assert isinstance(chosen, Reference)
        # The sides take turns, so that a slow hour of the machine meets both
        for _ in range(1, repeats):
            ours.append(series.ours(1, dataframe))
            spark.append(series.spark(1, chosen.store, chosen.partitions, chosen.tuned))
        duckdb = series.duckdb_rate(FILES, repeats)
    figures = {"quick": quick, **_figures(series, ours, spark, duckdb)}
    bars = (Bar("ratio", figures["ratio"], ">=", wanted),)
    java = spark[0].answer.java
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine(), "java": java}
    return Result(name, figures, bars, NOTES, figures["equal"], circumstances)


def _figures(
    series: Series, ours: list[JobOutcome], spark: list[JobOutcome], duckdb: int
) -> dict[str, Any]:
    mine, theirs, chosen = rates(ours), rates(spark), spark[0].job
    assert isinstance(chosen, Reference)
    return {
        "rows_per_s": mine.median,
        "spark_rows_per_s": theirs.median,
        "ratio": round(mine.median / theirs.median, 2),
        "duckdb_rows_per_s": duckdb,
        "over_duckdb": round(mine.median / duckdb, 3),
        "equal": series.equal,
        "peak_rss_mb": max(run.peak.rss_mb for run in ours),
        "spark_peak_rss_mb": max(run.peak.rss_mb for run in spark),
        "spark_configuration": {
            "store": chosen.store, "partitions": chosen.partitions, "our_jvm_options": chosen.tuned,
        },
        "comparison": series.comparison(),
        "spread": {
            "ours": describe_spread(mine), "spark": describe_spread(theirs),
            "ratio": extremes(mine, theirs),
        },
        "configurations": [describe(run) for run in series.runs],
    }  # fmt: skip
