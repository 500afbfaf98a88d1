"""A stream joined with itself on few keys, within a narrow bound: work must follow the pairs within it.

Most rows are of few keys, so nearly all pairs of rows with equal keys are too far apart. The same files in
small epochs, in large ones and all at once must cost the same for each row. In-process: what is measured
is the join, not how Spark starts; its code is the same.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.data import Packets
from anabranch.bench.duck import connect
from anabranch.bench.measure import load, machine, spread
from anabranch.bench.result import Result, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

FILES = (1, 10, 30)
"""Files an epoch: a small part of the rows, a third, all of them."""
ROWS = 100_000
"""Rows of a file."""
KEYS = 300
SECONDS_PER_FILE = 100_000
BOUND = FILES[-1] * SECONDS_PER_FILE // 500
REPEATS = 3
COLUMNS = "a.time, a.srcIP, a.len, b.time AS later, b.len AS other"
NEAR = f"a.srcIP = b.srcIP AND b.time BETWEEN a.time AND a.time + {BOUND}"
LEFT = "a.len - b.len >= 1440"
NOTES = (
    f"{KEYS} keys by Zipf's law with exponent 1; rows that meet are at most {BOUND:,} s apart, of "
    f"{FILES[-1] * SECONDS_PER_FILE:,} s. Of the pairs within the bound one in ten thousand meets the rest "
    "of the condition.",
    "spread is the time of a row at the dearest size of epochs against the cheapest, by medians of runs in "
    "turn; pairs_ratio the pairs that the join looked at against those with equal keys within the bound.",
    "One process, no Spark: two sites, one after the other. Checkpoint and results are flushed to disk.",
    "DuckDB gets the bound as an equality as well, of stretches of time: with the query as it is "
    "written it looks at all pairs of a key, which takes it many minutes.",
)


def run_hotjoin(quick: bool, steps: Steps) -> Result:
    """All sizes of epochs in turn; with `quick`, a tenth of the rows, once."""
    rows, repeats = (ROWS // 10, 1) if quick else (ROWS, REPEATS)
    packets = Packets((rows,) * FILES[-1], KEYS, SECONDS_PER_FILE, exponent=1.0)
    steps.expect(2 + repeats * len(FILES))
    before = load()
    runs: dict[int, list[dict[str, Any]]] = {files: [] for files in FILES}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        folder = Path(scratch)
        steps.begin(f"Writing {packets.total:,} rows")
        list(packets.write(folder / "packets"))
        steps.begin("DuckDB, all at once")
        expected = _expected(folder / "packets")
        for repeat in range(repeats):
            for files in FILES:
                steps.begin(f"epochs of {files * rows:,} rows, run {repeat + 1}")
                runs[files].append(_run(folder, files, f"{files}-{repeat}"))
    made = [run for several in runs.values() for run in several]
    equal = all(run["results"] == expected["results"] for run in made) and expected["pairs"] > 0
    per_row = {
        files: median(run["seconds"] for run in several) / packets.total * 1e9
        for files, several in runs.items()
    }
    figures = {
        "quick": quick,
        "rows": packets.total,
        "spread": round(max(per_row.values()) / min(per_row.values()), 3),
        "pairs_ratio": round(max(run["pairs"] for run in made) / expected["pairs"], 4),
        "pairs_within_bound": expected["pairs"],
        "results": expected["results"]["rows"],
        "equal": equal,
        "duckdb_seconds": expected["seconds"],
        "epochs": {
            str(files * rows): _figures(several, per_row[files]) for files, several in runs.items()
        },
    }
    bars = (
        Bar("spread", figures["spread"], "<=", 1.3),
        Bar("pairs_ratio", figures["pairs_ratio"], "<=", 1.2),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("hotjoin", figures, bars, NOTES, equal, circumstances)


def _figures(runs: list[dict[str, Any]], per_row: float) -> dict[str, Any]:
    return {
        "ns_per_row": round(per_row),
        "seconds": describe_spread(spread([run["seconds"] for run in runs])),
        "pairs": runs[0]["pairs"],
        "epochs": runs[0]["epochs"],
    }


def _expected(data: Path) -> dict[str, Any]:
    """DuckDB's results, how long they took, and how many pairs there are before the rest of the condition."""
    with connect() as duck:
        duck.execute(f"CREATE TABLE packets AS FROM '{data}/*.parquet'")
        # A row meets rows of its own stretch of time and of the next
        within = f"""(SELECT *, time // {BOUND} AS stretch FROM packets) AS a
            JOIN (SELECT *, unnest([time // {BOUND}, time // {BOUND} - 1]) AS stretch FROM packets) AS b
            ON a.stretch = b.stretch AND {NEAR} AND {LEFT}"""
        began = time.monotonic()
        duck.execute(f"CREATE TABLE results AS SELECT {COLUMNS} FROM {within}")
        seconds = time.monotonic() - began
        frame = f"PARTITION BY srcIP ORDER BY time RANGE BETWEEN CURRENT ROW AND {BOUND} FOLLOWING"
        counted = duck.execute(
            f"SELECT sum(pairs) FROM (SELECT count(*) OVER ({frame}) AS pairs FROM packets)"
        ).fetchall()
        return {
            "results": _digest(duck, "results"), "seconds": round(seconds, 3),
            "pairs": int(counted[0][0]),
        }  # fmt: skip


def _run(folder: Path, files: int, name: str) -> dict[str, Any]:
    limits = {"max_bytes_per_epoch": 1 << 40, "max_rows_per_epoch": 1 << 40}
    session = Session.in_process(
        2, {"max_files_per_epoch": files, "recent_progress": 1000, **limits}
    )
    session.stream("packets", path=folder / "packets", ordered="time")
    session.query("near", f"SELECT {COLUMNS} FROM packets a JOIN packets b ON {NEAR} AND {LEFT}")
    out = folder / f"results-{name}"
    run = session.start(
        sinks={"near": out}, checkpoint=folder / f"checkpoint-{name}", at_end="close"
    )
    run.await_termination()
    told = run.recent_progress
    operators = [operator for epoch in told for operator in epoch["stateOperators"]]
    with connect() as duck:
        source = f"read_parquet('{out}/**/*.parquet', hive_partitioning = false)"
        return {
            "results": _digest(duck, source),
            "seconds": sum(epoch["durationMs"]["triggerExecution"] for epoch in told) / 1000,
            "pairs": sum(operator["customMetrics"]["pairsCompared"] for operator in operators),
            "epochs": len(told),
        }


def _digest(duck: Any, source: str) -> dict[str, Any]:
    """How many rows, and the sum of their hashes, whatever their order."""
    names = ("time", "srcIP", "len", "later", "other")
    columns = ", ".join(f"{name}::BIGINT" for name in names)
    query = f"SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM {source}"
    rows, checksum = duck.execute(query).fetchall()[0]
    return {"rows": int(rows), "checksum": str(checksum)}
