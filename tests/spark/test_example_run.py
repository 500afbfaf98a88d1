"""An example on real Spark with the command the README shows: right results, quiet, quick."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

import anabranch
from anabranch.sources.generate import Generator

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "network.sql"
PLAIN = {
    "flows": "SELECT time // 60 AS tb, srcIP, destIP, count(*) AS packets, sum(len)::BIGINT AS bytes "
    "FROM tcp GROUP BY ALL",
    "heavy_flows": "SELECT tb, srcIP, count(*) AS peers, max(packets) AS heaviest FROM flows "
    "GROUP BY ALL HAVING max(packets) >= 100",
    "flow_pairs": "SELECT a.tb, a.srcIP, b.heaviest AS before, a.heaviest AS after FROM heavy_flows a "
    "JOIN heavy_flows b ON a.srcIP = b.srcIP AND a.tb - 1 = b.tb",
    "suspicious": "SELECT time // 60 AS tb, srcIP, destIP, srcPort, destPort, count(*) AS packets "
    "FROM tcp GROUP BY ALL HAVING bit_or(flags) = 41",
    "subnets": "SELECT time // 60 * 60 AS window_start, time // 60 * 60 + 60 AS window_end, "
    "srcIP // 256 * 256 AS subnet, count(*) AS packets, (sum(len) // count(*))::BIGINT AS mean_len, "
    "count(DISTINCT srcIP) AS hosts FROM tcp GROUP BY ALL",
    "top_talkers": "SELECT w + 60 AS time, srcIP, sum(len)::BIGINT AS bytes FROM (SELECT srcIP, len, "
    "unnest(range(floor((time - 60) / 10)::BIGINT + 1, time // 10 + 1)) * 10 AS w FROM tcp) "
    "GROUP BY w, srcIP HAVING sum(len) > 2000000",
}
READ = {"flows": pl.read_parquet, "subnets": pl.read_parquet, "suspicious": pl.read_ndjson}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(anabranch.__file__).parents[1])}


def run(folder: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "anabranch", "run", str(EXAMPLE), *options],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_network_example(tmp_path: Path) -> None:
    output = run(tmp_path)
    rows = Generator("packets", rows_per_second=2000, skew="zipf", disorder=3).rows(0, 500_000)
    connection = duckdb.connect()
    connection.register("tcp", rows.to_arrow())
    for view in ("flows", "heavy_flows"):
        connection.execute(f"CREATE VIEW {view} AS {PLAIN[view]}")
    for query, sql in PLAIN.items():
        expected = connection.sql(sql).pl()
        parts = sorted((tmp_path / "out/network" / query).glob("*/*"))
        found = pl.concat([READ.get(query, pl.read_csv)(part) for part in parts])
        assert found.columns == expected.columns
        assert sorted(found.rows()) == sorted(expected.rows()), query
        assert expected.height > 0
        assert f"  {query}: {expected.height:,} rows -> {tmp_path}/out/network/{query}" in output
    assert "│ 0   ┆ 10.0.211.14  ┆ 8     ┆ 423     │" in output
    # Without Spark, which takes a while to start: the checkpoint is the same
    assert run(tmp_path, "--in-process") == "There was nothing new to read.\n"
