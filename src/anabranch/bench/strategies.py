"""One query under the three ways to give it sites: Figs 7f, 8 and 9 of StreamCloud.

The query has the shape of its Fig 8: a map, a filter and three stateful operators with stateless ones
between them. Two of the stateful operators can share a partitioning, the third groups by a result.
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

STRATEGIES = ("subquery", "operator", "query")
ROWS = 1_000_000
"""Rows of a file, which is an epoch."""
FILES = 12
SECONDS_PER_FILE = 20
KEYS = 50_000
SITES = 4
SETTLING = 2
"""Epochs that do not count: workers start, and sites are given by what the first epochs cost."""
REPEATS = 5
QUERIES = {
    "mapped": "SELECT time, k * 3 + 1 AS k, v, v & 7 AS w FROM numbers",
    "filtered": "SELECT time, k, v, w FROM mapped WHERE v % 16 <> 0",
    "counts": """SELECT tb, k, w, COUNT(*) AS n, SUM(v) AS total
        FROM filtered GROUP BY time/10 AS tb, k, w""",
    "many": "SELECT tb, k, w, n, total FROM counts WHERE n > 0",
    "sums": """SELECT minute, k, SUM(n) AS n, MAX(total) AS most
        FROM many GROUP BY tb/2 AS minute, k""",
    "classes": "SELECT minute, most / 100 AS class, n FROM sums",
    "histogram": "SELECT minute, class, COUNT(*) AS keys, SUM(n) AS rows FROM classes GROUP BY minute, class",
}
"""Map, filter, aggregate, filter, aggregate, map, aggregate: each an operator of its own."""
EXPECTED = """
    WITH filtered AS (SELECT time, k * 3 + 1 AS k, v, v & 7 AS w FROM numbers WHERE v % 16 <> 0),
         counts AS (SELECT time // 10 AS tb, k, w, COUNT(*) AS n, SUM(v) AS total
                    FROM filtered GROUP BY ALL),
         sums AS (SELECT tb // 2 AS minute, k, SUM(n) AS n, MAX(total) AS most FROM counts GROUP BY ALL)
    SELECT minute, (most // 100)::BIGINT AS class, COUNT(*) AS keys, SUM(n)::BIGINT AS rows
    FROM sums GROUP BY ALL"""
NOTES = (
    "subquery: operators that one partitioning suits run together; query: rows are exchanged among all "
    "sites before every stateful operator; operator: every operator, stateless ones too, has sites of "
    "its own and an exchange before it.",
    f"{SITES} sites on the cores of this machine. Shares are of the time of all cores during the epochs: "
    "work is what operators and readers use, exchange what it takes to take frames in and to tell rows "
    "apart by site, idle the rest, Spark's shuffle and scheduling with it.",
)


def run_strategies(quick: bool, steps: Steps) -> Result:
    """All strategies in turn, several times; with `quick`, a tenth of the rows, once."""
    rows, repeats = (ROWS // 10, 1) if quick else (ROWS, REPEATS)
    steps.expect(1 + repeats * len(STRATEGIES))
    before = load()
    found: dict[str, list[dict[str, float]]] = {name: [] for name in STRATEGIES}
    equal = True
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        steps.begin(f"Writing {rows * FILES:,} rows")
        expected = _write(Path(scratch), rows)
        for repeat in range(repeats):
            for name in STRATEGIES:
                steps.begin(f"{name}, run {repeat + 1}")
                outcome, right = _run(name, Path(scratch), expected)
                found[name].append(outcome)
                equal &= right
    figures: dict[str, Any] = {"quick": quick, "equal": equal, "rows_per_epoch": rows}
    for name, runs in found.items():
        figures[name] = {key: round(median(run[key] for run in runs), 3) for key in runs[0]}
        figures[name]["spread"] = describe_spread(spread([run["rows_per_s"] for run in runs]))
    best = figures["subquery"]["rows_per_s"]
    figures["over_query"] = round(best / figures["query"]["rows_per_s"], 3)
    figures["over_operator"] = round(best / figures["operator"]["rows_per_s"], 3)
    bars = (
        Bar("over_query", figures["over_query"], ">", 1.0),
        Bar("over_operator", figures["over_operator"], ">", 1.0),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("strategies", figures, bars, NOTES, equal, circumstances)


def _write(folder: Path, rows: int) -> pl.DataFrame:
    """The files, and what DuckDB makes of them."""
    (folder / "numbers").mkdir()
    for number in range(FILES):
        random = np.random.default_rng(number)
        start = number * SECONDS_PER_FILE
        times = np.sort(random.integers(start, start + SECONDS_PER_FILE, rows))
        values = {
            "time": times,
            "k": random.integers(0, KEYS, rows),
            "v": random.integers(0, 1000, rows),
        }
        path = folder / "numbers" / f"{number:04d}.parquet"
        pl.DataFrame(values).write_parquet(path, row_group_size=131_072)
        os.utime(path, (number, number))
    with connect() as duck:
        duck.execute(f"CREATE VIEW numbers AS FROM '{folder}/numbers/*.parquet'")
        expected: pl.DataFrame = duck.sql(EXPECTED).pl()
        return expected


def _run(strategy: str, folder: Path, expected: pl.DataFrame) -> tuple[dict[str, float], bool]:
    cores = os.cpu_count() or 2
    session = Session.local(
        cores=cores, sites=SITES, settings={"strategy": strategy, "max_files_per_epoch": 1}
    )
    try:
        session.stream("numbers", path=folder / "numbers", ordered="time")
        for name, query in QUERIES.items():
            session.query(name, query)
        run = session.start(sinks={"histogram": "memory"}, at_end="close")
        run.await_termination()
        told = run.recent_progress[SETTLING:FILES]
        found = run.results("histogram").sort("minute", "class")
    finally:
        session.stop()
    seconds = sum(epoch["durationMs"]["triggerExecution"] for epoch in told) / 1000
    rows = sum(epoch["numInputRows"] for epoch in told)
    metrics = [epoch["customMetrics"] for epoch in told]
    busy = sum(
        sum(some["splitSeconds"]) + sum(site["busySeconds"] for site in some["sites"])
        for some in metrics
    )
    exchange = sum(some["exchangeSeconds"] for some in metrics)
    whole = cores * seconds
    right = found.rows() == expected.sort("minute", "class").rows()
    return {
        "rows_per_s": round(rows / seconds),
        "work_share": (busy - exchange) / whole,
        "exchange_share": exchange / whole,
        "idle_share": max(0.0, 1 - busy / whole),
        "levels": run.plan.levels,
        "rows_received": sum(
            operator["customMetrics"]["rowsReceived"]
            for epoch in told
            for operator in epoch["stateOperators"]
        ) / len(told),
    }, right  # fmt: skip
