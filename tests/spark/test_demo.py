"""The demonstration on real Spark: right results, clean output, quiet console, quick."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

import anabranch
from anabranch.demo.check import PLAIN
from anabranch.demo.scenario import MARK, PHASES, QUERIES
from anabranch.sources.generate import Generator

pytestmark = pytest.mark.spark

ROWS = 90_000

SPARKS_OWN = re.compile(r"java\.util\.concurrent\.RejectedExecutionException.*\n(\tat .*\n)*")
"""What Spark says now and then when it ends while something of its own is still under way."""


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """A command in a process group of its own, as a shell starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "anabranch", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(anabranch.__file__).parents[1])},
    )  # fmt: skip


def run(*arguments: str | Path) -> tuple[int, str, str]:
    started = start(*arguments)
    output, complaints = started.communicate(timeout=300)
    return started.returncode, output, SPARKS_OWN.sub("", complaints)


@pytest.mark.soak
def test_demo_equals_the_plain_queries(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    leftover = out / "flows" / "epoch=000000000099" / "part-of-an-earlier-demo.parquet"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"")
    (out / MARK).touch()
    code, output, complaints = run("demo", "--rows", str(ROWS), "--json", "--out", out)
    assert (code, complaints) == (0, "")
    summary = json.loads(output)
    assert summary["numInputRows"] > ROWS
    assert summary["stopped"] is False
    assert {source["lateRowsTotal"] for source in summary["sources"]} == {0}
    assert [phase["phase"] for phase in summary["phases"]] == [phase.title for phase in PHASES]
    assert sum(sum(phase["actions"].values()) for phase in summary["phases"]) > 0
    off = summary["adaptationOff"]
    assert off["numInputRows"] > 0
    assert {kind for phase in off["phases"] for kind in phase["actions"]} <= {"allot"}
    assert summary["equalToPlainQueries"] == dict.fromkeys(QUERIES, True)

    options = dict(summary["generator"])
    tcp = Generator(options.pop("generator"), **options).rows(0, ROWS)
    connection = duckdb.connect()
    connection.register("tcp", tcp.to_arrow())
    for view in ("flows", "heavy_flows"):
        connection.execute(f"CREATE VIEW {view} AS {PLAIN[view]}")
    for query in ("flows", "heavy_flows", "flow_pairs", "suspicious"):
        expected = connection.sql(PLAIN[query]).pl()
        found = pl.read_parquet(f"{out}/{query}/*/*.parquet", hive_partitioning=False)
        assert found.columns == expected.columns
        assert sorted(found.rows()) == sorted(expected.rows()), query
        assert summary["queries"][query]["rows"] == expected.height
        assert expected.height > 0


def test_demo_for_people(tmp_path: Path) -> None:
    code, output, complaints = run("demo", "--rows", "20000", "--out", tmp_path, "--sites", "2")
    assert (code, complaints) == (0, "")
    for part in (
        "epoch 0: ", "calm: ", "join order: ", "max_cnt_before", "Rows a second, by phase",
        "are those of the plain queries", "pl.read_parquet", f"anabranch report {tmp_path}/checkpoint",
    ):  # fmt: skip
        assert part in output


def test_interrupt_ends_with_a_whole_epoch(tmp_path: Path) -> None:
    spec = tmp_path / "spec.yml"
    spec.write_text(f"""\
streams:
  tcp: {{generator: packets, rate: 5000, rows_per_second: 10, ordered: time}}
queries:
  flows: {{from: tcp, group_by: [time/60 AS tb, srcIP], aggregate: [count(*) AS cnt]}}
sinks: {{flows: {tmp_path}/flows}}
run: {{trigger: continuous, checkpoint: {tmp_path}/checkpoint, cores: 1, sites: 2}}
""")
    started = start("run", spec, "--json")
    assert started.stdout is not None
    lines = [started.stdout.readline()]
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: the whole group, workers and all
    rest = started.stdout.read()  # communicate() would miss what readline() has buffered
    complaints = started.communicate(timeout=120)[1]
    *epochs, last = [json.loads(line) for line in [*lines, *rest.splitlines()]]
    assert started.returncode == 130, complaints
    assert complaints.startswith("stopping after the epoch under way")
    assert "Stopped after a whole epoch." in complaints
    assert len(complaints.splitlines()) == 2
    assert last["summary"]["stopped"] is True
    watermark = epochs[-1]["eventTime"]["watermark"]
    rows = epochs[-1]["sources"][0]["customMetrics"]["rowsTotal"]
    times = Generator("packets", rows_per_second=10).rows(0, rows)["time"]
    counted = pl.read_parquet(f"{tmp_path}/flows/*/*.parquet", hive_partitioning=False)["cnt"]
    assert counted.sum() == (times < watermark // 60 * 60).sum()
