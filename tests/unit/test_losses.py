"""What a run leaves out is told: bad input, late rows, state that is discarded; and nothing else is."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from anabranch.cli import app
from anabranch.demo.results import top_rows
from anabranch.observe.terminal import picture
from anabranch.observe.totals import Totals


def run(file: Path, text: str, *options: str) -> Result:
    file.write_text(text)
    return CliRunner().invoke(app, ["run", str(file), "--in-process", *options])


@pytest.fixture
def damaged(tmp_path: Path) -> str:
    """A specification over one good file, one with two bad lines, and one that is none."""
    data = tmp_path / "data"
    data.mkdir()
    pl.DataFrame({"time": range(10), "k": [1] * 10}).write_csv(data / "a.csv")
    (data / "b.csv").write_text("time,k\n11,1\nx,1\n12,y\n13,1\n")
    (data / "c.csv").write_bytes(b"PK\x03\x04\x00\xff\xfe not a table")
    return f"""
CREATE STREAM t (time BIGINT, k BIGINT) ORDERED BY time
  WITH (path = '{data}', format = 'csv', on_bad = 'dead-letter', file_order = 'name');
CREATE QUERY q AS SELECT time, k FROM t;
CREATE SINK q TO '{tmp_path}/out';
SET dead_letter = '{tmp_path}/dead';
SET max_files_per_epoch = 1;
"""


def test_bad_input_is_told_in_its_epoch_and_at_the_end(tmp_path: Path, damaged: str) -> None:
    told = run(tmp_path / "spec.sql", damaged)
    assert told.exit_code == 0, told.output
    lines = [line for line in told.stdout.splitlines() if line.startswith("epoch")]
    assert ["; bad 0;" in line for line in lines] == [True, False, False]
    assert "; bad 2 rows;" in lines[1]
    assert "; bad 1 file;" in lines[2]
    assert "Warning: Stream 't': bad input, 2 rows and 1 file, took no part." in told.stderr
    assert f"'{tmp_path}/dead'" in told.stderr


def test_bad_input_is_counted_in_json(tmp_path: Path, damaged: str) -> None:
    told = run(tmp_path / "spec.sql", damaged, "--json")
    *epochs, last = [json.loads(line) for line in told.stdout.splitlines()]
    counts = [epoch["sources"][0]["customMetrics"] for epoch in epochs]
    assert [(one["badRows"], one["badFiles"]) for one in counts] == [(0, 0), (2, 0), (0, 1)]
    source = last["summary"]["sources"][0]
    assert (source["badRows"], source["badFiles"], source["lateRows"]) == (2, 1, 0)
    assert "2 rows and 1 file" in last["summary"]["warnings"][0]


LATE = """
CREATE STREAM t ORDERED BY time WITH (path = '{data}', file_order = '{order}');
CREATE QUERY q AS SELECT time FROM t;
CREATE SINK q TO '{out}';
SET checkpoint = '{out}-checkpoint';
SET max_files_per_epoch = 1;
"""


def late_spec(folder: Path, order: str) -> str:
    data = folder / "data"
    data.mkdir(exist_ok=True)
    pl.DataFrame({"time": range(10, 20)}).write_parquet(data / "b.parquet")
    pl.DataFrame({"time": range(10)}).write_parquet(data / "a.parquet")
    os.utime(data / "b.parquet", (1e9, 1e9))
    return LATE.format(data=data, order=order, out=folder / f"out-{order}")


def test_many_late_rows_are_told_with_what_may_cause_them(tmp_path: Path) -> None:
    """b was written first, so it is taken first: all rows of a are late."""
    told = run(tmp_path / "spec.sql", late_spec(tmp_path, "time"))
    assert "20 rows in 2 epochs" in told.stdout
    assert ", 10 of them late" in told.stdout
    assert "10 rows of 20 (50%) came too late" in told.stderr
    assert "file_order" in told.stderr
    assert "lateness" in told.stderr
    told = run(tmp_path / "spec.sql", late_spec(tmp_path, "name"))
    assert "late" not in told.stderr


def test_counts_of_an_epoch_and_of_the_end_are_those_of_this_run(tmp_path: Path) -> None:
    text = late_spec(tmp_path, "time")
    run(tmp_path / "spec.sql", text)
    pl.DataFrame({"time": [5, 30]}).write_parquet(tmp_path / "data" / "c.parquet")
    told = run(tmp_path / "spec.sql", text)
    assert "epoch 2: 2 rows in " in told.stdout
    assert "; late 1; bad 0; results q 1; watermark t 30; " in told.stdout
    assert "2 rows in 1 epoch and" in told.stdout
    assert ", 1 of them late" in told.stdout
    assert "q: 1 row -> " in told.stdout


def test_a_watermark_that_is_not_there_yet_is_told_so(tmp_path: Path) -> None:
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    pl.DataFrame({"time": [1], "v": [2]}).write_parquet(tmp_path / "a.parquet")
    text = f"""
CREATE STREAM a ORDERED BY time WITH (path = '{tmp_path}/a.parquet');
CREATE STREAM b (time BIGINT) ORDERED BY time WITH (path = '{quiet}', format = 'parquet');
CREATE QUERY q AS SELECT time FROM a UNION ALL SELECT time FROM b;
CREATE SINK q TO '{tmp_path}/out';
"""
    assert "watermark a none yet, b none yet" in run(tmp_path / "spec.sql", text).stdout


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_have_a_zone_only_where_their_column_has_one(
    tmp_path: Path, zone: str | None
) -> None:
    times = pl.Series("ts", [dt.datetime(2026, 1, 31, 12)]).dt.replace_time_zone(zone)
    times.to_frame().write_parquet(tmp_path / "a.parquet")
    text = f"""
CREATE STREAM a ORDERED BY ts WITH (path = '{tmp_path}/a.parquet');
CREATE QUERY q AS SELECT ts FROM a;
CREATE SINK q TO '{tmp_path}/out';
"""
    told = run(tmp_path / "spec.sql", text, "--json")
    newest = json.loads(told.stdout.splitlines()[0])["eventTime"]["max"]
    assert newest == "2026-01-31T12:00:00.000" + ("+00:00" if zone else "")


STATE = """
CREATE STREAM t ORDERED BY time WITH (generator = 'packets', rows = 300, rows_per_second = 10);
CREATE QUERY q {query};
CREATE SINK q TO '{out}';
SET allow_unbounded_state = true;
"""
OTHERS = {
    "on update, without a window": "EMIT UPDATE AS SELECT srcIP, COUNT(*) AS c FROM t GROUP BY srcIP",
    "on update, with a window": "EMIT UPDATE AS SELECT tb, COUNT(*) AS c FROM t GROUP BY time/60 AS tb",
    "an inner join": "AS SELECT a.time FROM t a JOIN t b ON a.srcIP = b.srcIP AND a.time = b.time",
    "a semi join": "AS SELECT time FROM t a SEMI JOIN t b ON a.srcIP = b.srcIP AND a.time = b.time",
    "a count window": "AS SELECT srcIP, COUNT(*) AS c FROM t GROUP BY COUNT_WINDOW(900), srcIP",
}
OPEN = {
    "a window": "AS SELECT tb, COUNT(*) AS c FROM t GROUP BY time/60 AS tb",
    "a session": "AS SELECT srcIP, COUNT(*) AS c FROM t GROUP BY SESSION(time, 60), srcIP",
    "an anti join": """AS SELECT time FROM t a ANTI JOIN t b
        ON a.len = b.srcIP AND b.time BETWEEN a.time AND a.time + 60""",
    "rows that wait for their order": """AS SELECT time,
        COUNT(*) OVER (PARTITION BY srcIP ORDER BY time ROWS 3 PRECEDING) AS c FROM t""",
}


@pytest.mark.parametrize("query", OTHERS.values(), ids=OTHERS)
def test_state_that_would_give_nothing_more_is_not_missed(tmp_path: Path, query: str) -> None:
    text = STATE.format(query=query, out=tmp_path / "out") + "SET merge = 'best-effort';"
    told = run(tmp_path / "spec.sql", text)
    assert told.exit_code == 0, told.output
    assert "state 0 rows" not in told.stdout
    assert "discarded" not in told.stderr


@pytest.mark.parametrize("query", OPEN.values(), ids=OPEN)
def test_state_that_would_give_more_is_told(tmp_path: Path, query: str) -> None:
    told = run(tmp_path / "spec.sql", STATE.format(query=query, out=tmp_path / "out"))
    assert told.exit_code == 0, told.output
    assert "was discarded: there is no checkpoint" in told.stderr


def test_state_that_waits_in_the_checkpoint_is_told(tmp_path: Path) -> None:
    text = STATE.format(query=OPEN["a window"], out=tmp_path / "out")
    text += f"SET checkpoint = '{tmp_path / 'ckpt'}';"
    assert "of state) wait in the checkpoint for later" in " ".join(
        run(tmp_path / "spec.sql", text).stdout.split()
    )
    assert "nothing new to read" in run(tmp_path / "spec.sql", text).stdout
    closed = run(tmp_path / "spec.sql", text, "--set", "at_end=close")
    assert "wait in the checkpoint" not in closed.stdout


def test_tables_of_the_demo_end_with_their_last_letter() -> None:
    rows = pl.DataFrame({"tb": [1], "srcIP": [0x0A000001], "cnt": [1234]})
    assert top_rows(rows, "cnt") == ["tb     srcIP    cnt", " 1  10.0.0.1  1,234"]


def test_the_picture_says_where_rows_in_are_sub_aggregates(tmp_path: Path) -> None:
    text = (
        STATE.format(query=OPEN["a window"], out=tmp_path / "out") + "SET max_rows_per_epoch = 50;"
    )
    told = run(tmp_path / "spec.sql", text, "--json")
    totals = Totals()
    for line in told.stdout.splitlines()[:-1]:
        totals.add(json.loads(line))
    console = Console(width=100, file=io.StringIO())
    console.print(picture(totals, "run", 1.0))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert totals.subqueries["q@1"].rows_in < 300
    assert "senders sub-aggregate for q@1: fewer rows come in than were read" in shown
    assert "300 rows in this run" in shown
