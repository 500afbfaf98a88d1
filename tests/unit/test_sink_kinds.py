"""Where results can go, and that each place gets every epoch exactly once, also over a restart."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

from anabranch.errors import RunError, SettingsError, StateError
from anabranch.sinks import ConsoleSink, FileSink, ForeachSink, MemorySink
from anabranch.sinks.staging import Staging
from helpers import FORMATS, Stage, plain, read_results, sample, visible_epochs

GOOD = [sample(number) for number in range(4)]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    for number in range(4):
        stage.write(number)
    return stage


@pytest.mark.parametrize("format", FORMATS)
def test_folders(stage: Stage, format: str) -> None:
    stage.out_format = format
    stage.finish()
    assert plain(read_results(stage.out, format)) == stage.expected(*GOOD)
    # A window appears in the epoch that closes it; epoch 0 closes none, epoch 4 is the end
    assert visible_epochs(stage.out) == [1, 2, 3, 4]
    assert {path.suffix for path in stage.out.glob("*/*")} == {
        {"parquet": ".parquet", "arrow": ".arrow", "csv": ".csv", "json": ".jsonl"}[format]
    }


def test_memory(stage: Stage) -> None:
    run = stage.finish(sinks={"sums": "memory"})
    assert plain(run.results("sums")) == stage.expected(*GOOD)
    assert run.results("sums").columns == ["tb", "k", "n", "total"]


def test_memory_over_a_restart(stage: Stage) -> None:
    memory = MemorySink()
    stage.path(3).rename(stage.root / "later")
    stage.run(sinks={"sums": memory})
    (stage.root / "later").rename(stage.path(3))
    run = stage.finish(sinks={"sums": memory})
    assert plain(memory.rows()) == plain(run.results("sums")) == stage.expected(*GOOD)
    assert memory.to_arrow().num_rows == memory.rows().height


def test_memory_of_a_run_without_results(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write(0)
    run = stage.run(sinks={"sums": "memory"})
    assert run.results("sums").is_empty()
    assert run.results("sums").columns == ["tb", "k", "n", "total"]
    with pytest.raises(RunError, match="no results of a query"):
        run.results("other")


def test_console(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.run(sinks={"sums": "console"})
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.startswith("epoch")] == [
        f"epoch {epoch}, sums: 5 rows" for epoch in (1, 2, 3)
    ]
    assert "total" in printed
    stage.finish(sinks={"sums": ConsoleSink(limit=2, query="short")})
    printed = capsys.readouterr().out
    assert "epoch 4, short: 5 rows" in printed
    assert printed.count("│ 3   ┆") == 2


def test_foreach(stage: Stage) -> None:
    received: dict[int, pa.Table] = {}

    def take(rows: pa.Table, epoch: int) -> None:
        assert isinstance(rows, pa.Table)
        assert epoch not in received
        received[epoch] = rows

    stage.finish(sinks={"sums": take})
    assert sorted(received) == [1, 2, 3, 4]
    assert plain(pl.concat(map(pl.from_arrow, received.values()))) == stage.expected(*GOOD)
    assert not list((stage.checkpoint / "results").rglob("*.arrow"))


def test_foreach_that_fails_gets_the_whole_epoch_again(stage: Stage) -> None:
    received: dict[int, pa.Table] = {}
    broken = True

    def take(rows: pa.Table, epoch: int) -> None:
        if broken and epoch == 2:
            raise ValueError("the other side is down")
        received[epoch] = rows

    message = stage.refused(RunError, sinks={"sums": take})
    for word in ("epoch 2", "the other side is down", "will be handed over again"):
        assert word in message
    assert sorted(received) == [1]
    assert stage.manifest().epoch == 2, "the epoch is committed; only handing over has failed"
    assert "the other side is down" in stage.refused(RunError, sinks={"sums": take})
    broken = False
    stage.finish(sinks={"sums": ForeachSink(take)})
    assert sorted(received) == [1, 2, 3, 4]
    assert plain(pl.concat(map(pl.from_arrow, received.values()))) == stage.expected(*GOOD)


CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import helpers
unlink = os.unlink
def die_after_deleting(path, **options):
    unlink(path, **options)
    if "-part-" in os.path.basename(path):
        os.kill(os.getpid(), signal.SIGKILL)
os.unlink = die_after_deleting
stage = helpers.Stage(Path(sys.argv[1]))
stage.finish(sinks={"sums": lambda rows, epoch: None})
"""


def test_killed_while_clearing_away_a_delivered_epoch(stage: Stage, tmp_path: Path) -> None:
    """The rest of a half deleted epoch must not be handed over as if it were the epoch."""
    killed = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), str(Path(__file__).parents[1])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert killed.returncode == -signal.SIGKILL
    assert stage.manifest().epoch == 1
    received: dict[int, pa.Table] = {}
    stage.finish(sinks={"sums": lambda rows, epoch: received.update({epoch: rows})})
    for epoch, rows in received.items():
        assert rows.num_rows == 5, f"epoch {epoch} is not whole"
    assert set(received) >= {2, 3, 4}
    assert not list((stage.checkpoint / "results").rglob("*.arrow"))


def test_a_part_that_comes_again_after_its_epoch_was_handed_over(stage: Stage) -> None:
    """A task that ran twice may end late; its part alone is not the epoch."""
    received: dict[int, list[int]] = {}
    kept: list[tuple[Path, bytes]] = []

    def take(rows: pa.Table, epoch: int) -> None:
        received.setdefault(epoch, []).append(rows.num_rows)
        parts = sorted((stage.checkpoint / "results").rglob("*-part-*.arrow"))
        kept[:] = [(parts[0], parts[0].read_bytes())]

    stage.run(sinks={"sums": take})
    for _ in range(2):
        path, content = kept[0]
        path.write_bytes(content)
        stage.run(sinks={"sums": take})
    assert received == {1: [5], 2: [5], 3: [5]}
    assert not list((stage.checkpoint / "results").rglob("*.arrow"))


def test_several_sinks_of_one_run(stage: Stage) -> None:
    session = stage.session()
    session.query("rows_too", session.from_stream("rows"))
    memory = MemorySink()
    stage.finish(session, sinks={"sums": FileSink(stage.out), "rows_too": memory})
    assert stage.results() == stage.expected(*GOOD)
    assert plain(memory.rows()) == plain(pl.concat(GOOD))


def test_a_query_without_a_sink_is_still_run(stage: Stage) -> None:
    session = stage.session()
    session.query("rows_too", session.from_stream("rows"))
    stage.finish(session)
    assert stage.results() == stage.expected(*GOOD)


def test_no_such_sink(stage: Stage) -> None:
    with pytest.raises(SettingsError, match="The sink of 'sums' is a int; expected a folder"):
        stage.start(sinks={"sums": 7})
    with pytest.raises(SettingsError, match=r"no result format 'xml'. Existing: parquet, arrow"):
        FileSink(stage.out, "xml")
    assert not stage.checkpoint.exists()


def test_parquet_of_every_type(tmp_path: Path) -> None:
    """Numbers are written as differences, and come back as they were; so does the rest."""
    day, moment = dt.date(2026, 1, 31), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)
    rows = pl.DataFrame(
        {
            "int64": [2**63 - 1, None, -(2**63)],
            "int8": pl.Series([-128, None, 127], dtype=pl.Int8),
            "uint64": pl.Series([2**64 - 1, None, 0], dtype=pl.UInt64),
            "float": [0.1, None, float("inf")],
            "boolean": [True, None, False],
            "string": ["", None, "é" * 40],
            "binary": [b"", None, b"\0\xff"],
            "date": [day, None, day],
            "time": [dt.time(23, 59), None, dt.time(0)],
            "stamp": [moment, None, moment],
            "zoned": pl.Series([moment, None, moment]).dt.replace_time_zone("UTC"),
            "duration": [dt.timedelta(days=-3), None, dt.timedelta(0)],
            "decimal": pl.Series(["-1.25", None, "99999.99"]).cast(pl.Decimal(38, 2)),
            "strings": [["a", None], None, []],
        }
    )
    Staging(str(tmp_path), "", "parquet", fsync=False).write(rows, "0")
    assert_frame_equal(pl.read_parquet(tmp_path / "part-0.parquet"), rows)


def test_results_that_the_driver_cannot_see(stage: Stage) -> None:
    """As when an executor on another machine wrote them to a folder of its own."""

    def lose(step: str, epoch: int) -> None:
        if step == "before-commit" and epoch == 2:
            for waiting in stage.out.glob("_epoch=*"):
                shutil.rmtree(waiting)

    message = stage.refused(RunError, on_step=lose)
    assert "The results of query 'sums' in epoch 2 should be in" in message
    assert "were they written on another machine?" in message
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)


def test_another_sink_while_results_wait_for_theirs(stage: Stage) -> None:
    """A crash between commit and publishing, then a start with another sink: nothing may be lost."""

    def fail(step: str, epoch: int) -> None:
        if step == "after-commit" and epoch == 2:
            raise RuntimeError("the power fails")

    with pytest.raises(RunError, match="the power fails"):
        stage.run(on_step=fail)
    before = visible_epochs(stage.out)
    for sinks in ({"sums": "memory"}, {"sums": FileSink(stage.root / "elsewhere")}):
        with pytest.raises(StateError, match="with the sink that the query had"):
            stage.session().start(sinks=sinks, checkpoint=stage.checkpoint)
        assert visible_epochs(stage.out) == before
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)


@pytest.mark.parametrize("form", ["text", "dict"])
def test_folders_named_by_text(stage: Stage, form: str) -> None:
    folder = str(stage.out)
    sink = FileSink(folder, "csv") if form == "text" else {"path": folder, "format": "csv"}  # type: ignore[arg-type]
    stage.finish(sinks={"sums": sink})
    stage.out_format = "csv"
    assert stage.results() == stage.expected(*GOOD)


def test_a_sink_that_a_query_gets_later_is_told_to_lack_what_was_before(stage: Stage) -> None:
    def start(sinks: dict[str, Path]) -> list[str]:
        session = stage.session()
        session.query("rows_too", session.from_stream("rows"))
        run = stage.run(session, sinks=sinks)
        return [
            warning
            for progress in run.recent_progress
            for warning in progress["customMetrics"]["warnings"]
            if "sink" in warning
        ]

    assert start({"sums": stage.out}) == []
    stage.write(4)
    both = {"sums": stage.out, "rows_too": stage.root / "rows_too"}
    (warning,) = start(both)
    for words in ("'rows_too' had no sink before", "160 results up to epoch 3", "new checkpoint"):
        assert words in warning
    stage.write(5)
    assert start(both) == []
