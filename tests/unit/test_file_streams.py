"""Files as a stream: which are taken, when, how many at once; and streams that fall silent."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session, col, count
from anabranch.engine.run import Run
from anabranch.errors import LanguageError, SourceError, StateError
from anabranch.sources import seen
from helpers import SCHEMA, Stage, manifests, plain, read_results, sample, source_metrics


@pytest.mark.parametrize("most", [1, 2, 3, 1000])
def test_files_per_epoch(tmp_path: Path, most: int) -> None:
    stage = Stage(tmp_path, settings={"max_files_per_epoch": most})
    for number in range(7):
        stage.write(number)
    run = stage.run()
    assert source_metrics(run)["filesRead"] == 7
    counts = [progress["numInputRows"] // 40 for progress in run.recent_progress]
    assert counts == [min(most, 7 - taken) for taken in range(0, 7, most)]
    backlogs = [progress["sources"][0]["backlog"] for progress in run.recent_progress]
    assert backlogs == [max(0, 7 - taken - most) for taken in range(0, 7, most)]


def test_bytes_and_rows_per_epoch(tmp_path: Path) -> None:
    size = max(Stage(tmp_path / "try").write(number).stat().st_size for number in range(5))
    for limit in ({"max_rows_per_epoch": 100}, {"max_bytes_per_epoch": 2 * size}):
        stage = Stage(tmp_path / next(iter(limit)), settings={"max_files_per_epoch": 9, **limit})
        for number in range(5):
            stage.write(number)
        run = stage.run()
        counts = [progress["numInputRows"] // 40 for progress in run.recent_progress]
        assert counts == [2, 2, 1]


def test_more_files_than_the_manifest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names beyond the newest few move to log files, and survive restarts there."""
    monkeypatch.setattr(seen, "RECENT", 3)
    stage = Stage(tmp_path)
    frames = []
    for round in range(5):
        for number in range(round * 3, round * 3 + 3):
            frames.append(sample(number))
            stage.write(number)
        stage.run()
        assert stage.taken() == [stage.path(number).name for number in range(len(frames))]
    offset = stage.manifest().streams["rows"].offset
    assert [len(names) for names in logged(stage)] == [8, 4], (
        "logs no longer than the new one join it"
    )
    assert len(offset["recent"]) <= 3
    run = stage.run()
    assert run.last_progress is None, "there is nothing new"
    stage.finish()
    assert stage.results() == stage.expected(*frames)
    assert stage.manifest().streams["rows"].rows == 40 * len(frames)


def logged(stage: Stage) -> list[list[str]]:
    """The names in each log of the stream."""
    logs = stage.manifest().streams["rows"].offset["logs"]
    return [json.loads((stage.checkpoint / log).read_bytes())["files"] for log, _ in logs]


def test_a_list_of_read_files_copied_over_another_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are whole; but what the other one listed would be read again."""
    monkeypatch.setattr(seen, "RECENT", 2)
    stage = Stage(tmp_path)
    for number in range(6):
        stage.write(number)
    stage.run()
    first, second = sorted((stage.checkpoint / "sources").iterdir())
    content = second.read_bytes()
    second.write_bytes(first.read_bytes())
    message = stage.refused(StateError)
    assert f"'{second}', cannot be read: it is whole, but not the file that the manifest" in message
    second.write_bytes(content)
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(6)))


def test_lists_of_read_files_that_no_epoch_names_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch writes its list before it begins; it may fail, again and again."""
    monkeypatch.setattr(seen, "RECENT", 2)
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number)
    stage.run()
    for number in range(3, 6):
        stage.write(number, "broken" if number == 5 else None)
    for _ in range(3):
        stage.refused(SourceError)
    stage.write(5)
    stage.run()
    kept = [entry.streams["rows"].offset for entry in manifests(stage.checkpoint)]
    logs = {name for offset in kept for name, _ in offset["logs"]}
    lists = (stage.checkpoint / "sources").iterdir()
    assert {f"sources/{path.name}" for path in lists} == logs
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(6)))


def test_a_thousand_small_files_in_one_epoch(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "csv", settings={"max_files_per_epoch": 10_000})
    frames = []
    for number in range(seen.RECENT + 5):
        frames.append(sample(number // 10, rows=4))
        stage.write(number, frames[-1])
    stage.run()
    assert stage.manifest().epoch == 0
    assert len(stage.taken()) == len(frames)
    offset = stage.manifest().streams["rows"].offset
    assert (len(offset["logs"]), offset["recent"]) == (1, [])
    stage.write(len(frames), sample(300, rows=4))
    stage.finish()
    assert stage.results() == stage.expected(*frames, sample(300, rows=4))


def test_a_missing_log_of_file_names_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it every file it names would be read again."""
    monkeypatch.setattr(seen, "RECENT", 1)
    stage = Stage(tmp_path)
    for number in range(4):
        stage.write(number)
    stage.run()
    log = stage.checkpoint / stage.manifest().streams["rows"].offset["logs"][0][0]
    whole = log.read_bytes()
    log.unlink()
    assert str(log) in stage.refused(StateError)
    log.write_bytes(b"{")
    assert str(log) in stage.refused(StateError)
    log.write_bytes(whole)
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(4)))


def test_order_of_arrival_hidden_names_and_folders(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "csv")
    for number in (2, 0, 1):
        stage.write(number)
    nested = stage.input / "day=2"
    nested.mkdir()
    stage.path(1).rename(nested / "0001.csv")
    for name in ("_hidden.csv", ".hidden.csv"):
        (stage.input / name).write_text("nonsense")
    (stage.input / "_temporary").mkdir()
    (stage.input / "_temporary" / "0009.csv").write_text("nonsense")
    stage.finish()
    assert stage.taken() == ["0000.csv", "0001.csv", "0002.csv"]
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_format_and_schema_are_taken_from_the_first_file(tmp_path: Path) -> None:
    for format in ("parquet", "arrow", "csv", "json"):
        stage = Stage(tmp_path / format, format)
        for number in range(3):
            stage.write(number)
        stage.finish(stage.session(format=None, schema=None))
        assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"path": "nowhere", "format": "parquet"},
            "nowhere'. Mend the path, or give format= and schema=",
        ),
        ({"path": __file__}, "test_file_streams.py' cannot be told from its name"),
        (
            {"path": "x", "format": "xml"},
            "no file format 'xml'. Existing: parquet, arrow, csv, json",
        ),
        (
            {"path": "x", "format": "csv", "schema": {"time": "int46"}},
            "no type 'int46'. Did you mean",
        ),
        ({}, "needs one input"),
        ({"path": "x", "generator": "packets"}, "got path and generator"),
    ],
)
def test_a_stream_that_cannot_be_registered(options: dict[str, object], words: str) -> None:
    with pytest.raises(SourceError) as caught:
        Session.in_process().stream("rows", ordered="time", **options)  # type: ignore[arg-type]
    assert "Stream 'rows'" in str(caught.value)
    assert words in str(caught.value)


def test_the_schema_of_a_broken_first_file(tmp_path: Path) -> None:
    for name, content in (("a.parquet", b"PAR1"), ("a.arrow", b"ARROW1"), ("a.csv", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            SourceError, match="Give the stream a schema, or mend the file"
        ) as caught:
            Session.in_process().stream("rows", ordered="time", path=tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


def wait(run: Run, what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert run.is_active, run.exception()
        assert time.monotonic() < deadline, f"waited too long; {run.status}"
        time.sleep(0.01)


def test_files_that_come_while_the_run_goes_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, settings={"poll_interval_seconds": 0.01})
    run = stage.start(trigger="continuous")
    for number in range(3):
        stage.write(number)
        wait(run, lambda: (run.last_progress or {}).get("batchId") == number)  # noqa: B023
    run.stop()
    assert not run.is_active
    assert run.exception() is None
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_the_watermark_is_the_least_of_all_streams(tmp_path: Path) -> None:
    """Each stream's newest time is remembered, also while only the other one has rows."""
    left, right = Stage(tmp_path / "left"), Stage(tmp_path / "right")

    def run() -> dict[str, Any]:
        session = Session.in_process(settings={"fsync": False})
        both = [
            session.stream(name, path=stage.input, format="parquet", schema=SCHEMA, ordered="time")
            for name, stage in (("left", left), ("right", right))
        ]
        windows = both[0].union(both[1]).group_by((col("time") // 10).alias("tb"))
        session.query("n", windows.agg(count().alias("n")))
        running = session.start(sinks={"n": tmp_path / "out"}, checkpoint=tmp_path / "checkpoint")
        running.await_termination()
        assert running.last_progress
        sources: list[dict[str, Any]] = running.last_progress["sources"]
        times = {source["description"]: source["eventTime"] for source in sources}
        return {name: (entry["max"], entry["watermark"]) for name, entry in times.items()}

    left.write(2)
    assert run() == {"left": (29, None), "right": (None, None)}
    right.write(1)
    assert run() == {"left": (29, 19), "right": (19, 19)}
    right.write(4)
    assert run() == {"left": (29, 29), "right": (49, 29)}
    assert plain(read_results(tmp_path / "out")) == [(1, 40)]


@pytest.mark.parametrize("silent", ["from the start", "after a row"])
@pytest.mark.parametrize("idle", [None, 2.0])
def test_an_idle_stream_does_not_hold_the_watermark(
    tmp_path: Path, idle: float | None, silent: str
) -> None:
    """Two streams meet; one falls silent. Only with the setting do windows go on closing."""
    settings = {"fsync": False, "poll_interval_seconds": 0.01, "idle_after_seconds": idle}
    session = Session.in_process(settings=settings)
    busy, quiet = Stage(tmp_path / "busy"), Stage(tmp_path / "quiet")
    both = [
        session.stream(name, path=stage.input, format="parquet", schema=SCHEMA, ordered="time")
        for name, stage in (("busy", busy), ("quiet", quiet))
    ]
    windows = both[0].union(both[1]).group_by((col("time") // 10).alias("tb"))
    session.query("n", windows.agg(count().alias("n")))
    if silent == "after a row":
        quiet.write(0, sample(0).head(1))
    run = session.start(
        sinks={"n": "memory"}, checkpoint=tmp_path / "checkpoint", trigger="continuous"
    )
    extra = 1 if silent == "after a row" else 0
    try:
        for number in range(3):
            busy.write(number)
            wait(run, lambda: rows_of(run, 0) == 40 * (number + 1))  # noqa: B023
        if idle is None:
            time.sleep(0.3)
            assert run.results("n").is_empty()
        else:
            wait(run, lambda: run.results("n").height == 2)
            assert plain(run.results("n")) == [(0, 40 + extra), (1, 40)]
            # What it brings from the past is late now; awake again, it holds the watermark again
            quiet.write(1, pl.concat([sample(0).head(3), sample(2).tail(2)]))
            wait(run, lambda: rows_of(run, 1) == 5 + extra)
            assert metrics_of(run, 1)["lateRowsTotal"] == 3
            busy.write(4)
            wait(run, lambda: rows_of(run, 0) == 160)
            assert plain(run.results("n")) == [(0, 40 + extra), (1, 40)]
    finally:
        run.stop()
    assert run.exception() is None


def metrics_of(run: Run, index: int) -> dict[str, Any]:
    """What the last report says of a stream."""
    return source_metrics(run, index) if run.last_progress else {"rowsTotal": 0}


def rows_of(run: Run, index: int) -> int:
    return int(metrics_of(run, index)["rowsTotal"])


def test_a_broken_file_does_not_hide_the_schema_of_the_others(tmp_path: Path) -> None:
    """A restart must not depend on how the files that were kept aside are called."""
    (tmp_path / "aaa.parquet").write_bytes(b"not parquet")
    pl.DataFrame({"time": [1], "x": [2]}).write_parquet(tmp_path / "bbb.parquet")
    session = Session.in_process()
    session.stream("s", path=tmp_path, ordered="time", on_bad="dead-letter")
    assert list(session.from_stream("s").node.schema) == ["time", "x"]


def test_times_in_text_files_are_told_without_a_schema(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("ts,x\n2026-03-01T22:00:00.009000,1\n")
    session = Session.in_process()
    session.stream("s", path=tmp_path, ordered="ts")
    assert session.from_stream("s").node.schema["ts"] == pl.Datetime("us")
    session.query("q", "SELECT ts, x FROM s")
    run = session.start(sinks={"q": "memory"})
    assert run.await_termination(30)
    assert run.results("q").rows() == [(dt.datetime(2026, 3, 1, 22, 0, 0, 9000), 1)]


@pytest.mark.parametrize("first", ["t,x\n", "", "t,x\n,\n", "t,x\n,a\n"])
def test_types_are_told_from_the_first_file_that_has_values(tmp_path: Path, first: str) -> None:
    for number, content in enumerate((first, "t,x\n1,a\n")):
        (tmp_path / f"{number}.csv").write_text(content)
    session = Session.in_process()
    session.stream("s", path=tmp_path, ordered="t", format="csv", file_order="name")
    assert session.from_stream("s").node.schema == {"t": pl.Int64, "x": pl.String}


def test_columns_without_any_value_need_a_schema(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("t,x\n")
    with pytest.raises(LanguageError, match=r"no file has a value .* 't' .* Give schema="):
        Session.in_process().stream("s", path=tmp_path, ordered="t")


def test_explain_tells_the_types_that_were_told_from_texts(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("t,price,day\n1,0.1,2026-03-01\n")
    session = Session.in_process()
    session.stream("s", path=tmp_path, ordered="t")
    session.query("q", "SELECT * FROM s")
    assert "reads t int64, price float64, day date" in session.explain()
