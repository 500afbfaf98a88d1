"""The commands without Spark: what they print, what they return, how they end."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import anabranch
from anabranch.amount import in_bytes
from anabranch.cli import app
from anabranch.observe.terminal import bar, picture, sparkline
from anabranch.observe.totals import Totals
from anabranch.observe.watch import LineView
from anabranch.operators import meeting
from anabranch.sources.generate import Generator

SPEC = """\
streams:
  tcp: {{generator: packets, rows: 3000, rows_per_second: 10, ordered: time}}
queries:
  flows: {{from: tcp, group_by: [time/60 AS tb, srcIP], aggregate: [count(*) AS cnt]}}
  top: {{from: flows, group_by: [tb], aggregate: [max(cnt) AS most]}}
sinks:
  flows: {out}/flows
  top: console
settings: {{max_rows_per_epoch: 1000}}
run: {{at_end: close, checkpoint: {out}/checkpoint}}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(anabranch.__file__).parents[1])}


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.yml"
    path.write_text(SPEC.format(out=tmp_path))
    return path


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(part) for part in arguments])


def expected_flows(rows: int = 3000) -> list[tuple[Any, ...]]:
    made = Generator("packets", rows_per_second=10).rows(0, rows)
    grouped = made.group_by(pl.col("time").floordiv(60).alias("tb"), "srcIP").agg(
        pl.len().cast(pl.Int64).alias("cnt")
    )
    return sorted(grouped.rows())


def written_flows(folder: Path) -> list[tuple[Any, ...]]:
    found = pl.read_parquet(folder / "flows", hive_partitioning=False)
    return sorted(found.select("tb", "srcIP", "cnt").rows())


def test_version() -> None:
    assert invoke("version").stdout == f"anabranch {anabranch.__version__}\n"
    told = json.loads(invoke("version", "--json").stdout)
    assert told == {"anabranch": anabranch.__version__}


def test_help_names_the_commands() -> None:
    told = invoke("--help")
    assert told.exit_code == 0
    for command in ("demo", "run", "explain", "bench", "version"):
        assert command in told.stdout


def test_help_loads_none_of_the_libraries() -> None:
    """They take more than a second together; nothing of them stands in the help."""
    heavy = ("pyspark", "polars", "pyarrow", "numpy", "sqlglot", "duckdb", "anabranch.session")
    code = f"import sys, anabranch.cli; print([name for name in {heavy} if name in sys.modules])"
    told = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True, check=True
    )
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize("group", ["bench", "simulate", "checkpoint"])
def test_a_group_that_is_loaded_later_is_told_of_in_its_own_words(group: str) -> None:
    own = " ".join(invoke(group, "--help").stdout.split("╭")[0].split())
    (line,) = [one.help for one in app.registered_groups if one.name == group]
    assert str(line) in own


def test_all_names_of_the_package_are_there() -> None:
    assert all(hasattr(anabranch, name) for name in anabranch.__all__)
    assert {*anabranch.__all__} <= {*dir(anabranch)}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        anabranch.nonsense  # noqa: B018


def test_explain(spec: Path) -> None:
    told = invoke("explain", spec)
    assert told.exit_code == 0
    assert "partitioned by srcIP: 64 partitions on 2 sites" in told.stdout
    plan = json.loads(invoke("explain", spec, "--json").stdout)
    assert [part["name"] for part in plan["subqueries"]] == ["flows@1", "top@1"]
    assert plan["subqueries"][0]["partitioning"] == ["srcIP"]
    assert plan["streams"][0]["columns"] == {"time": "Int64", "srcIP": "Int64"}
    assert plan["outputs"][0]["columns"] == {"tb": "Int64", "srcIP": "Int64", "cnt": "Int64"}


def test_run_prints_a_line_per_epoch(spec: Path, tmp_path: Path) -> None:
    told = invoke("run", spec, "--in-process")
    assert told.exit_code == 0, told.output
    lines = [line for line in told.stdout.splitlines() if line.startswith("epoch 0: ")]
    assert len(lines) == 1
    assert "1,000 rows in " in lines[0]
    assert "3,000 rows in 4 epochs" in told.stdout
    assert f"-> {tmp_path}/flows (parquet)" in told.stdout
    assert written_flows(tmp_path) == expected_flows()


def test_run_as_json_keeps_standard_output_for_json(spec: Path, tmp_path: Path) -> None:
    told = invoke("run", spec, "--in-process", "--json")
    assert told.exit_code == 0, told.output
    *epochs, last = [json.loads(line) for line in told.stdout.splitlines()]
    assert [epoch["batchId"] for epoch in epochs] == [0, 1, 2, 3]
    assert sum(epoch["numInputRows"] for epoch in epochs) == 3000
    summary = last["summary"]
    assert (summary["epochs"], summary["numInputRows"], summary["stopped"]) == (4, 3000, False)
    assert {sink["query"]: sink["numOutputRows"] for sink in summary["sinks"]} == {
        "flows": len(expected_flows()), "top": 5
    }  # fmt: skip
    assert sum(site["share"] for site in summary["sites"]) == pytest.approx(1, abs=1e-3)
    assert "top: " in told.stderr  # the console sink


def test_errors_are_one_paragraph(spec: Path) -> None:
    spec.write_text(spec.read_text().replace("srcIP]", "srcIPP]"))
    told = invoke("run", spec, "--in-process")
    assert (told.exit_code, told.stdout) == (1, "")
    assert "column 'srcIPP' is not found. Did you mean 'srcIP'?" in told.stderr
    assert "Traceback" not in told.stderr
    assert len(told.stderr.splitlines()) == 1


@pytest.mark.parametrize("before", [True, False])
def test_traceback_on_request(tmp_path: Path, before: bool) -> None:
    command = ["explain", str(tmp_path / "none.yml")]
    told = invoke(*(["--traceback", *command] if before else [*command, "--traceback"]))
    assert told.exit_code == 1
    assert "Traceback" in told.stderr
    assert "Cannot read" in told.stderr


def test_an_error_in_the_middle_of_a_run(spec: Path, tmp_path: Path) -> None:
    pl.DataFrame({"time": [1, 2], "srcIP": [1, 1]}).write_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(b"PAR1 and no more")
    text = spec.read_text().replace("max_rows_per_epoch: 1000", "max_files_per_epoch: 1")
    start, end = text.index("{generator"), text.index("\nqueries")
    source = f"{{path: '{tmp_path}/*.parquet', ordered: time}}"
    spec.write_text(text[:start] + source + text[end:])
    told = invoke("run", spec, "--in-process", "--json")
    assert told.exit_code == 1
    assert [json.loads(line)["batchId"] for line in told.stdout.splitlines()] == [0]
    assert "b.parquet" in told.stderr
    assert "Traceback" not in told.stderr


def test_demo_leaves_a_foreign_folder_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("ten years of work")
    told = invoke("demo", "--out", tmp_path)
    assert told.exit_code == 1
    assert "was not made by the demo" in told.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_wrong_options_are_usage_errors() -> None:
    assert invoke("demo", "--rows", "0").exit_code == 2
    assert invoke("fly").exit_code == 2


def endless(spec: Path) -> Path:
    text = spec.read_text().replace("rows: 3000", "rate: 20000").replace("at_end: close, ", "")
    spec.write_text(text.replace("run: {", "run: {trigger: continuous, "))
    return spec


def start_run(spec: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "anabranch", "run", str(spec), "--in-process", "--json"]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_ends_with_a_whole_epoch(
    spec: Path, tmp_path: Path, number: signal.Signals
) -> None:
    endless(spec)
    done = -1
    for _ in range(2):
        run = start_run(spec)
        assert run.stdout is not None
        line = run.stdout.readline()
        assert line, run.communicate()[1]
        first = json.loads(line)
        assert first["batchId"] == done + 1
        run.send_signal(number)
        rest = run.stdout.read()  # communicate() would miss what readline() has buffered
        complaints = run.communicate(timeout=120)[1]
        assert run.returncode == 130, complaints
        assert "Stopped after a whole epoch" in complaints
        assert "Traceback" not in complaints
        *epochs, last = [first, *(json.loads(line) for line in rest.splitlines())]
        assert last["summary"]["stopped"] is True
        done = epochs[-1]["batchId"]
        rows = epochs[-1]["sources"][0]["customMetrics"]["rowsTotal"]
        minute = epochs[-1]["eventTime"]["watermark"] // 60
    closed = [row for row in expected_flows(rows) if row[0] < minute]
    assert written_flows(tmp_path) == closed


def some_totals(spec: Path) -> Totals:
    told = invoke("run", spec, "--in-process", "--json")
    totals = Totals()
    for line in told.stdout.splitlines()[:-1]:
        totals.add(json.loads(line))
    return totals


def drawn(totals: Totals, width: int, **options: Any) -> str:
    console = Console(width=width, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(picture(totals, "run", 12.3, **options))
    return console.export_text()


def test_picture_fits_small_terminals(spec: Path) -> None:
    """Without moves, of which a machine with much to do may show some."""
    spec.write_text(spec.read_text().replace("1000}", "1000, policy: none}"))
    totals = some_totals(spec)
    shown = drawn(totals, 80, goal=3000)
    for part in ("3,000 of 3,000 rows", "tcp", "flows@1", "top@1", "rows/s", "watermark", "late"):
        assert part in shown
    assert len(shown.splitlines()) <= 20
    assert "…" not in shown


def test_picture_shows_both_times_of_a_stream_with_their_dates(spec: Path) -> None:
    totals = some_totals(spec)
    times = {"max": "2026-01-31T23:59:59.123", "watermark": "2026-01-31T23:59:49.123"}
    source = {**totals.last["sources"][0], "eventTime": times}
    totals.add({**totals.last, "sources": [source]})
    assert " 2026-01-31 23:59:59  2026-01-31 23:59:49" in drawn(totals, 80)


def test_picture_before_the_first_epoch() -> None:
    assert "Waiting for the first epoch" in drawn(Totals(), 80)


def test_picture_shows_the_sites_with_most_rows(spec: Path) -> None:
    spec.write_text(spec.read_text().replace("run: {", "run: {sites: 12, "))
    shown = drawn(some_totals(spec), 80, sites=4)
    assert "and 8 sites with fewer rows" in shown


def warned(totals: Totals, *warnings: tuple[int, str]) -> list[dict[str, Any]]:
    """The last report once more for other epochs, each with a warning; added to the totals."""
    reports = []
    for epoch, text in warnings:
        metrics = {**totals.last["customMetrics"], "warnings": [text] if text else []}
        reports.append({**totals.last, "batchId": epoch, "customMetrics": metrics})
        totals.add(reports[-1])
    return reports


def test_picture_shows_the_warnings_of_the_last_epochs(spec: Path) -> None:
    totals = some_totals(spec)
    assert totals.warnings == []
    warned(
        totals, *((epoch, f"Subquery 'pairs@1': key {epoch} is hot.") for epoch in range(20, 25))
    )
    assert [epoch for epoch, _ in totals.warnings] == [22, 23, 24]
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(picture(totals, "run", 12.3))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[33mepoch 24: Subquery 'pairs@1': key 24 is hot.\x1b[0m" in shown
    assert "key 21" not in shown
    warned(totals, (33, ""))
    assert [epoch for epoch, _ in totals.warnings] == [24]
    warned(totals, (34, ""))
    assert "is hot" not in drawn(totals, 80)


def test_lines_have_warnings_of_their_own(spec: Path) -> None:
    totals = some_totals(spec)
    lines: list[str] = []
    view = LineView(lines.append)
    for report in warned(totals, (7, "Subquery 'pairs@1': the key 5 is hot."), (8, "")):
        view.epoch(report, totals)
    assert len(lines) == 3
    assert lines[0].startswith("epoch 7: ")
    assert lines[1] == "warning in epoch 7: Subquery 'pairs@1': the key 5 is hot."
    assert lines[2].startswith("epoch 8: ")


def test_a_hot_key_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "HOT", 1000)
    file = tmp_path / "hot.sql"
    file.write_text("""\
CREATE STREAM tcp ORDERED BY time WITH (generator = 'packets', rows = 300, rows_per_second = 50, keys = 2);
CREATE QUERY pairs AS SELECT a.time, a.len, b.len AS other FROM tcp a JOIN tcp b
  ON a.srcIP = b.srcIP AND b.time BETWEEN a.time AND a.time + 60;
CREATE SINK pairs TO CONSOLE;
""")
    told = invoke("run", file, "--in-process")
    found = [line for line in told.stdout.splitlines() if line.startswith("warning in epoch 0")]
    assert found
    assert all(
        line.startswith("warning in epoch 0: Subquery 'pairs@1': the key 1") for line in found
    )


def test_small_drawings() -> None:
    assert bar(0.5, 4).plain == "██░░"
    assert bar(1.7, 4).plain == "████"
    assert bar(0.0, 4).plain == "░░░░"
    assert sparkline([0.0, 50.0, 100.0]) == "▁▄█"
    assert [in_bytes(count) for count in (5, 1500, 2_500_000, 7e12)] == [
        "5 B", "1.5 kB", "2.5 MB", "7000.0 GB"
    ]  # fmt: skip


def test_spark_noise_is_left_out() -> None:
    from anabranch.engine.local import without_noise

    worker = '  File "/x/pyspark.zip/pyspark/daemon.py", line 95, in worker\n'
    mine = ["Traceback (most recent call last):\n", '  File "job.py"\n', "ValueError: no\n"]
    lines = [
        "WARNING: Using incubator modules: jdk.incubator.vector\n",
        "26/01/01 ERROR Executor: disk is full\n",
        "Traceback (most recent call last):\n", worker, "BrokenPipeError: [Errno 32]\n",
        *mine,
        "Traceback (most recent call last):\n", worker, "MemoryError\n",
        "the end\n",
    ]  # fmt: skip
    assert list(without_noise(lines)) == [lines[1], *mine, *lines[8:]]
