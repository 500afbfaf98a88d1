"""One, two, five and ten queries on one stream through one exchange: what travels, and how fast.

All queries read the same columns by the same keys, of which there are too many for sub-aggregation to pay.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.measure import load, machine, spread
from anabranch.bench.result import Result, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

COUNTS = (1, 2, 5, 10)
ROWS = 500_000
"""Rows of a file, which is an epoch."""
FILES = 6
SECONDS_PER_FILE = 20
KEYS = 400_000
SETTLING = 1
"""Epochs that do not count: workers start."""
REPEATS = 3
CALLS = ("SUM(v)", "MAX(v)", "MIN(v)", "COUNT(v)", "AVG(v)")
BAR = 1.3
NOTES = (
    "Bytes are those of the frames that sites receive, per epoch. bytes_ratio_10: ten queries against one.",
)


def query(number: int) -> str:
    """All of the same shape, no two alike."""
    call = CALLS[number % len(CALLS)]
    return f"SELECT tb, k, {call} AS x FROM numbers WHERE v >= {number} GROUP BY time/10 AS tb, k"


def expected(number: int) -> str:
    call = CALLS[number % len(CALLS)]
    return f"SELECT time // 10 AS tb, k, {call} AS x FROM numbers WHERE v >= {number} GROUP BY ALL"


def run_sharing(quick: bool, steps: Steps) -> Result:
    """All numbers of queries in turn, several times; with `quick`, a tenth of the rows, once."""
    rows, repeats = (ROWS // 10, 1) if quick else (ROWS, REPEATS)
    steps.expect(1 + repeats * len(COUNTS))
    before = load()
    found: dict[int, list[dict[str, float]]] = {count: [] for count in COUNTS}
    equal = True
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        steps.begin(f"Writing {rows * FILES:,} rows")
        sums = write_numbers(Path(scratch), rows, KEYS, max(COUNTS))
        for repeat in range(repeats):
            for count in COUNTS:
                steps.begin(f"{count} queries, run {repeat + 1}")
                outcome, right = run_shared(count, Path(scratch), sums)
                found[count].append(outcome)
                equal &= right
    figures: dict[str, Any] = {
        "quick": quick,
        "equal": equal,
        "rows_per_epoch": rows,
        "queries": {},
    }
    for count, runs in found.items():
        told = {key: round(median(run[key] for run in runs)) for key in runs[0]}
        told["spread"] = describe_spread(spread([run["rows_per_s"] for run in runs]))  # type: ignore[assignment]
        figures["queries"][str(count)] = told
    one, ten = (figures["queries"][str(count)]["bytes"] for count in (1, 10))
    figures["bytes_ratio_10"] = round(ten / one, 3)
    bars = (Bar("bytes_ratio_10", figures["bytes_ratio_10"], "<=", BAR),)
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("sharing", figures, bars, NOTES, equal, circumstances)


def write_numbers(folder: Path, rows: int, keys: int, queries: int) -> dict[int, tuple[int, float]]:
    """The files; for so many queries, what DuckDB makes of them: their rows and the sums of their values."""
    (folder / "numbers").mkdir()
    for number in range(FILES):
        random = np.random.default_rng(number)
        start = number * SECONDS_PER_FILE
        values = {
            "time": np.sort(random.integers(start, start + SECONDS_PER_FILE, rows)),
            "k": random.integers(0, keys, rows),
            "v": random.integers(0, 1000, rows),
        }
        path = folder / "numbers" / f"{number:04d}.parquet"
        pl.DataFrame(values).write_parquet(path, row_group_size=131_072)
        os.utime(path, (number, number))
    with connect() as duck:
        duck.execute(f"CREATE VIEW numbers AS FROM '{folder}/numbers/*.parquet'")
        return {
            number: duck.sql(
                f"SELECT COUNT(*), SUM(x)::DOUBLE FROM ({expected(number)})"
            ).fetchall()[0]
            for number in range(queries)
        }


def run_shared(
    count: int, folder: Path, sums: dict[int, tuple[int, float]]
) -> tuple[dict[str, float], bool]:
    """Rates, times and bytes of so many queries, and whether their results are right."""
    cores = os.cpu_count() or 2
    session = Session.local(cores=cores, sites=cores, settings={"max_files_per_epoch": 1})
    names = [f"q{number}" for number in range(count)]
    try:
        session.stream("numbers", path=folder / "numbers", ordered="time")
        for number, name in enumerate(names):
            session.query(name, query(number))
        run = session.start(sinks=dict.fromkeys(names, "memory"), at_end="close")
        run.await_termination()
        told = run.recent_progress[SETTLING:FILES]
        results = [run.results(name)["x"] for name in names]
    finally:
        session.stop()
    right = all(
        found.len() == sums[number][0]
        and abs(float(found.cast(pl.Float64).sum()) - sums[number][1]) <= 1e-9 * sums[number][1]
        for number, found in enumerate(results)
    )
    times = [epoch["durationMs"]["triggerExecution"] for epoch in told]
    received = sum(
        operator["customMetrics"]["bytesReceived"]
        for epoch in told
        for operator in epoch["stateOperators"]
    )
    rows = sum(epoch["numInputRows"] for epoch in told)
    return {
        "rows_per_s": rows / sum(times) * 1000,
        "epoch_ms": median(times),
        "bytes": received / len(told),
    }, right
