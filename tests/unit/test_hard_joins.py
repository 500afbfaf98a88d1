"""Joins of input that is hard on them: hot keys, keys that are mostly NULL, very many matches."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from anabranch import Session
from anabranch.operators import meeting
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.sources import EpochSource

QUERY = "SELECT a.time, a.k, x, y FROM a {} JOIN b ON a.k = b.k AND ABS(a.time - b.time) <= 60"


def run_join(
    a: pl.DataFrame, b: pl.DataFrame, kind: str, sites: int = 4
) -> tuple[pl.DataFrame, dict[str, Any]]:
    session = Session.in_process(sites, {"fsync": False})
    session.stream("a", EpochSource([a]), ordered="time")
    session.stream("b", EpochSource([b]), ordered="time")
    session.query("both", QUERY.format(kind))
    run = session.start(sinks={"both": "memory"}, at_end="close")
    assert run.await_termination(120)
    return run.results("both"), run.recent_progress[0]


@pytest.mark.parametrize("kind", ["", "LEFT", "FULL", "ANTI"])
def test_a_key_that_is_mostly_null(kind: str) -> None:
    """NULL meets nothing; rows with it are not sent where they are not wanted, and to all sites else."""
    rng = np.random.default_rng(5)
    rows = 4000

    def stream(value: str) -> pl.DataFrame:
        keys = pl.Series(rng.integers(0, 100, rows)).to_frame("k")
        keys = keys.select(pl.when(pl.Series(rng.random(rows) < 0.1)).then("k").alias("k"))
        time = pl.Series("time", np.sort(rng.integers(0, 30, rows)))
        return keys.with_columns(time, pl.Series(value, rng.integers(0, 9, rows)))

    a, b = stream("x"), stream("y")
    query = QUERY.replace(", y", "") if kind == "ANTI" else QUERY
    global_query = query.format(kind)
    session = Session.in_process(4, {"fsync": False})
    session.stream("a", EpochSource([a]), ordered="time")
    session.stream("b", EpochSource([b]), ordered="time")
    session.query("both", global_query)
    run = session.start(sinks={"both": "memory"}, at_end="close")
    assert run.await_termination(120)
    with duckdb.connect() as duck:
        duck.register("a", a.to_arrow())
        duck.register("b", b.to_arrow())
        wanted = duck.sql(global_query).pl()
    assert_same_rows(run.results("both"), wanted.cast(dict(run.results("both").schema)))
    (operator,) = run.recent_progress[0]["stateOperators"]
    taken, skew = operator["customMetrics"]["rowsIn"], operator["customMetrics"]["skew"]
    nulls = {"": 0, "LEFT": 1, "FULL": 2, "ANTI": 1}[kind] * 0.9 * rows
    assert 0.9 < taken / (0.2 * rows + nulls) < 1.1
    assert skew < 1.5, "rows without a key are spread over all sites"


def test_a_null_key_stays_with_its_like_where_a_group_needs_it() -> None:
    """An aggregate by the key of an outer join runs on its partitions: NULL is one group there."""
    a = pl.DataFrame({"time": [1] * 50, "k": [None] * 40 + [*range(10)], "x": [1] * 50})
    b = pl.DataFrame(
        {"time": [1, 2], "k": [3, None], "y": [1, 2]}, schema_overrides={"k": pl.Int64}
    )
    session = Session.in_process(4, {"fsync": False})
    session.stream("a", EpochSource([a]), ordered="time")
    session.stream("b", EpochSource([b]), ordered="time")
    session.query("both", QUERY.format("LEFT"))
    session.query("counts", "SELECT w, k, COUNT(*) AS n FROM both GROUP BY time/60 AS w, k")
    run = session.start(sinks={"counts": "memory"}, at_end="close")
    assert run.await_termination(60)
    assert run.plan.levels == 1, "both run on the same partitions"
    assert sorted(run.results("counts").select("k", "n").rows(), key=str) == sorted(
        [(None, 40), *((key, 1) for key in range(10))], key=str
    )


def test_a_hot_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "CHUNK", 1000)
    monkeypatch.setattr(meeting, "HOT", 10_000)
    a = pl.DataFrame({"time": [1] * 300, "k": [7] * 200 + [*range(100)], "x": [*range(300)]})
    b = pl.DataFrame({"time": [2] * 150, "k": [7] * 100 + [*range(50)], "y": [*range(150)]})
    found, told = run_join(a, b, "")
    assert found.height == 201 * 101 + 49
    (warning,) = told["customMetrics"]["warnings"]
    assert "Subquery 'both@1': the key 7 alone has 201 x 101 rows that may meet" in warning
    assert "20,301 new combinations" in warning
    _, told = run_join(a[200:], b[100:], "")
    assert told["customMetrics"]["warnings"] == []


CHILD = """
import json, resource, sys
import polars as pl
from anabranch import Session
from anabranch.testing.sources import EpochSource
rows = int(sys.argv[1])
session = Session.in_process(2, {"fsync": False})
for name, value in (("a", "x"), ("b", "y")):
    made = {"time": [1] * rows, "k": ["hot"] * rows, value: list(range(rows))}
    session.stream(name, EpochSource([pl.DataFrame(made)]), ordered="time")
session.query("both", sys.argv[3])
run = session.start(sinks={"both": sys.argv[2]}, at_end="close")
run.await_termination()
told = run.recent_progress[0]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps([peak, told["sinks"][0]["numOutputRows"], told["customMetrics"]["warnings"]]))
"""


def test_memory_is_bounded_however_many_rows_match(tmp_path: Path) -> None:
    """5,000 x 5,000 rows of one key in one epoch: 25 million results, written in parts."""
    peaks = {}
    for rows in (500, 5000):
        out = tmp_path / str(rows)
        done = subprocess.run(
            [sys.executable, "-c", CHILD, str(rows), str(out), QUERY.format("")],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        peaks[rows], written, warnings = json.loads(done.stdout)
        assert written == rows * rows
        assert (
            pl.scan_parquet(out / "epoch=*/*.parquet").select(pl.len()).collect().item() == written
        )
    assert len(list(out.glob("epoch=*/*.parquet"))) >= 50, "parts of half a million rows"
    assert "the key 'hot' alone has 5,000 x 5,000 rows" in warnings[0]
    # All results at once would take a gigabyte and more
    assert peaks[5000] - peaks[500] < 400, peaks
