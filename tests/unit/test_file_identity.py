"""Which files are a stream's, which are the same file, in which order they come; odd things in folders."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.engine.run import Run
from anabranch.errors import SourceError, StateError
from anabranch.sinks.reach import reaches
from anabranch.sources.watching import list_files
from helpers import SCHEMA, Stage, sample, source_metrics


def would_read(path: str, file: str) -> bool:
    return reaches(path, Path(file).parent, [Path(file).name])


def names(path: Path | str) -> list[str]:
    return [file.name for file in list_files(str(path))]


def expected(stage: Stage, *numbers: int) -> object:
    return stage.expected(*(sample(number) for number in numbers))


# -- files that are still written -------------------------------------------------------------------


def test_patterns_pass_over_files_that_are_still_written(tmp_path: Path) -> None:
    """Written under `_` and renamed, as the guide says, each file is read once."""
    stage = Stage(tmp_path, "csv")
    session = stage.session(path=f"{stage.input}/*")
    for number in range(2):
        stage.write(number)
    for name in ("_2.csv", ".2.csv"):
        (stage.input / name).write_text("time,k,v\n1,1,1\n")
    (stage.input / "_folder").mkdir()
    (stage.input / "_folder" / "3.csv").write_text("nonsense")
    stage.run(session)
    assert stage.taken() == ["0000.csv", "0001.csv"]
    (stage.input / "_2.csv").unlink()
    stage.write(2)
    stage.finish(stage.session(path=f"{stage.input}/*"))
    assert stage.results() == expected(stage, 0, 1, 2)


def test_a_pattern_within_a_hidden_folder_is_meant(tmp_path: Path) -> None:
    folder = tmp_path / "_landed" / "day=1"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("")
    assert names(tmp_path / "_landed" / "*" / "*.csv") == ["day=1/a.csv"]
    assert names(tmp_path / "*" / "day=1" / "*.csv") == []
    assert names(tmp_path / "_landed" / "day*") == ["day=1/a.csv"], "folders are looked into"


@pytest.mark.parametrize("pattern", ["_*.csv", ".[ab].csv", "_day*/a.csv"])
def test_a_pattern_of_hidden_names_is_refused(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(
        SourceError, match=r"names that begin with '_' or '.', which are passed over"
    ):
        Session.in_process().stream(
            "s", path=tmp_path / pattern, format="csv", schema=SCHEMA, ordered="time"
        )


# -- the same files by another name -----------------------------------------------------------------


@pytest.mark.parametrize("how", ["link", "dots", "moved", "link to the parent", "copied"])
def test_a_folder_by_another_name_is_not_read_again(tmp_path: Path, how: str) -> None:
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number)
    stage.run()
    other = tmp_path / "other"
    if how == "link":
        other.symlink_to(stage.input)
    elif how == "dots":
        other = stage.input / ".." / "in"
    elif how == "moved":
        stage.input.rename(other)
        stage.input = other
    elif how == "link to the parent":
        (tmp_path / "up").symlink_to(tmp_path)
        other = tmp_path / "up" / "in"
    else:
        subprocess.run(["cp", "-rp", stage.input, other], check=True)
        stage.input = other
    stage.write(3)
    stage.finish(stage.session(path=other))
    assert stage.results() == expected(stage, 0, 1, 2, 3)
    assert stage.manifest().streams["rows"].rows == 160


def test_another_folder_under_the_same_checkpoint_is_refused(tmp_path: Path) -> None:
    """Its files have the same names: taken for the old ones they would be lost, for new ones doubled."""
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number)
    stage.run()
    before, stage.input = stage.input, tmp_path / "other"
    stage.input.mkdir()
    for number in range(4):
        stage.write(number, sample(number + 5))
    message = stage.refused(StateError, stage.session(path=stage.input))
    for word in (
        "Stream 'rows'",
        f"'{before}'",
        f"'{stage.input}'",
        "'0002.parquet'",
        "new checkpoint",
    ):
        assert word in message
    stage.input = before
    stage.finish()
    assert stage.results() == expected(stage, 0, 1, 2)


def test_another_folder_while_the_run_goes_on_is_refused(tmp_path: Path) -> None:
    """A link that is pointed elsewhere between two looks."""
    stage = Stage(tmp_path, settings={"poll_interval_seconds": 0.01})
    stage.write(0)
    link = tmp_path / "link"
    link.symlink_to(stage.input)
    other = Stage(tmp_path / "second")
    other.write(0, sample(9))

    def swap(step: str, epoch: int) -> None:
        if step == "after-publish":
            link.unlink()
            link.symlink_to(other.input)

    run = stage.start(stage.session(path=link), trigger="continuous", on_step=swap)
    with pytest.raises(StateError, match="now is to be read from"):
        assert run.await_termination(20)


def test_links_to_files_and_folders_are_read_once(tmp_path: Path) -> None:
    """Within the folder by the file's own name, from elsewhere by that of the link."""
    stage = Stage(tmp_path, "csv")
    day, elsewhere = stage.input / "day", tmp_path / "elsewhere"
    day.mkdir()
    elsewhere.mkdir()
    for number in range(3):
        stage.write(number)
    stage.path(1).rename(day / "0001.csv")
    stage.path(2).rename(elsewhere / "0002.csv")
    (stage.input / "again.csv").symlink_to(stage.path(0))
    (stage.input / "a-link").symlink_to(day)
    (stage.input / "z-link").symlink_to(elsewhere)
    (stage.input / "self").symlink_to(stage.input)
    (stage.input / "up").symlink_to(tmp_path / "nothing-yet")
    assert names(stage.input) == ["0000.csv", "day/0001.csv", "z-link/0002.csv"]
    stage.run()
    (stage.input / "third.csv").symlink_to(elsewhere / "0002.csv")
    stage.finish()
    assert stage.results() == expected(stage, 0, 1, 2)
    assert stage.manifest().streams["rows"].rows == 120


# -- the order of files -----------------------------------------------------------------------------


def order_of(tmp_path: Path, **options: str) -> Run:
    """Three files of growing times, the last of which was written after the clock had been set back."""
    stage = Stage(tmp_path, settings={"max_files_per_epoch": 1})
    for number in (1, 2, 3):
        stage.write(number)
    os.utime(stage.path(3), ns=(0, 0))
    return stage.run(stage.session(**options))


def test_files_are_taken_by_time_or_by_name(tmp_path: Path) -> None:
    by_time = order_of(tmp_path / "time")
    assert source_metrics(by_time)["lateRowsTotal"] == 80, "the newest file came first"
    assert source_metrics(order_of(tmp_path / "name", file_order="name"))["lateRowsTotal"] == 0
    with pytest.raises(SourceError, match="file_order is 'size'; expected one of time, name"):
        order_of(tmp_path / "size", file_order="size")


# -- odd things in a folder -------------------------------------------------------------------------


def put_fifo(path: Path) -> None:
    os.mkfifo(path)


def put_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


def put_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def put_loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize("format", ["parquet", "csv", "json", "arrow"])
@pytest.mark.parametrize(
    ("put", "words"),
    [
        (put_fifo, "it is a pipe"),
        (put_socket, "it is a socket"),
        (put_device, "it is a device"),
        (put_loop, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_is_named_and_hangs_nothing(
    tmp_path: Path, format: str, put: object, words: str
) -> None:
    stage = Stage(tmp_path, format, settings={"max_files_per_epoch": 9})
    odd = stage.path(0)
    put(odd)  # type: ignore[operator]
    for number in (1, 2):
        stage.write(number)
    with pytest.raises(SourceError) as caught:
        assert stage.start().await_termination(20)
    assert words in str(caught.value)
    assert str(odd) in str(caught.value)
    session = stage.session(on_bad="dead-letter", schema=None)
    run = stage.finish(session, dead_letter=stage.dead)
    assert stage.results() == expected(stage, 1, 2)
    assert source_metrics(run)["badFilesTotal"] == 1
    reasons = [path.read_text() for path in stage.dead.rglob("*.reason.json")]
    assert len(reasons) == 1
    assert words in reasons[0]


@pytest.mark.parametrize("put", [put_fifo, put_loop])
def test_a_path_that_is_no_file_is_refused_when_it_is_registered(
    tmp_path: Path, put: object
) -> None:
    put(tmp_path / "a.csv")  # type: ignore[operator]
    with pytest.raises(SourceError, match=r"a\.csv"):
        Session.in_process().stream("s", path=tmp_path / "a.csv", ordered="time")


TRUNCATING = """
import sys
from collections.abc import Callable
import pyarrow as pa, pyarrow.parquet as pq
import polars as pl
from anabranch.sources.formats import read_file
path, format = sys.argv[1:]
rows = pl.DataFrame({"time": range(1_000_000)})
rows.write_ipc(path) if format == "arrow" else rows.write_parquet(path, compression="uncompressed")
def cut():
    with open(path, "r+b") as file:
        file.truncate(100)
read_groups = pq.ParquetFile.read_row_groups
def cut_first(*arguments, **options):
    cut()
    return read_groups(*arguments, **options)
pq.ParquetFile.read_row_groups = cut_first
reading = read_file("s", path, format, rows.schema, ["time"], None, False)
if format == "arrow":
    cut()
    assert reading.rows["time"].sum() == rows["time"].sum()
else:
    print(reading.bad[0].reason)
"""


@pytest.mark.parametrize("format", ["arrow", "parquet"])
def test_a_file_cut_short_while_it_is_read_does_not_kill_the_process(
    tmp_path: Path, format: str
) -> None:
    path = tmp_path / f"a.{format}"
    done = subprocess.run(
        [sys.executable, "-c", TRUNCATING, str(path), format],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode != -signal.SIGBUS
    assert done.returncode == 0, done.stderr
    if format == "parquet":
        assert str(path) in done.stdout


def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines cut off at a line's end would be missed without a word."""
    from anabranch.sources import formats

    stage = Stage(tmp_path, "csv")
    whole = stage.write(0).read_text()
    read = formats.read_csv

    def cut_first(path: str, *arguments: object) -> object:
        Path(path).write_text("".join(whole.splitlines(keepends=True)[:20]))
        return read(path, *arguments)  # type: ignore[arg-type]

    monkeypatch.setitem(formats._READERS, "csv", cut_first)
    message = stage.refused(SourceError)
    assert "0000.csv" in message
    assert "was changed while it was read" in message


@pytest.mark.parametrize(
    ("path", "file", "read"),
    [
        ("in", "in/a.csv", True),
        ("in", "in/deep/er/a.csv", True),
        ("in", "in/_out/a.csv", False),
        ("in", "inner/a.csv", False),
        ("in/*.csv", "in/a.csv", True),
        ("in/*.csv", "in/out/a.csv", False),
        ("in/*", "in/out/a.csv", True),
        ("in/*/*.csv", "in/out/a.csv", True),
        ("in/*/*.csv", "in/_out/a.csv", False),
        ("in/*", "other/a.csv", False),
    ],
)
def test_which_files_a_path_would_read(tmp_path: Path, path: str, file: str, read: bool) -> None:
    (tmp_path / "in").mkdir()
    assert would_read(str(tmp_path / path), str(tmp_path / file)) is read


def test_a_folder_that_cannot_be_looked_into_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files would be missed without a word."""
    (tmp_path / "closed").mkdir()
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SourceError, match=r"closed' cannot be read: Permission denied"):
        list_files(str(tmp_path))


def test_a_file_by_its_own_path_is_read_whatever_its_name(tmp_path: Path) -> None:
    pl.DataFrame({"time": [1]}).write_csv(tmp_path / "_a.csv")
    assert names(tmp_path / "_a.csv") == ["_a.csv"]


# -- patterns ---------------------------------------------------------------------------------------


def tree(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("in/**/*.csv", ["a.csv", "x/b.csv", "x/y/c.csv"]),
        ("in/**", ["a.csv", "x/b.csv", "x/d.txt", "x/y/c.csv"]),
        ("in/**/y/*.csv", ["x/y/c.csv"]),
        ("in/**/y", ["x/y/c.csv"]),
        ("in/*/**/*.csv", ["x/b.csv", "x/y/c.csv"]),
        ("in/**/**/?.csv", ["a.csv", "x/b.csv", "x/y/c.csv"]),
        ("in/x/**/b.csv", ["b.csv"]),
        ("*n/**/b.csv", ["in/x/b.csv"]),
    ],
)
def test_two_stars_stand_for_any_number_of_folders(
    tmp_path: Path, pattern: str, matches: list[str]
) -> None:
    tree(tmp_path / "in", "a.csv", "x/b.csv", "x/d.txt", "x/y/c.csv")
    tree(tmp_path / "in", "_a.csv", "x/.b.csv", "_x/b.csv", "x/_y/y/c.csv")
    (tmp_path / "in" / "x" / "circle").symlink_to(tmp_path / "in" / "x")
    assert names(tmp_path / pattern) == matches
    root = tmp_path / "in" / ("x" if pattern.startswith("in/x/") else "")
    root = tmp_path if pattern.startswith("*n") else root
    assert all(would_read(str(tmp_path / pattern), str(root / match)) for match in matches)
    assert not would_read(str(tmp_path / pattern), str(tmp_path / "in" / "_x" / "b.csv"))
    assert not would_read(str(tmp_path / "in/**/*.csv"), str(tmp_path / "in" / "x" / "d.txt"))


def test_a_stream_of_all_folders_reads_each_file_once(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    for number, folder in enumerate(("", "x", "x/y")):
        (stage.input / folder).mkdir(exist_ok=True)
        file = stage.write(number)
        file.rename(stage.input / folder / file.name)
    stage.finish(stage.session(path=f"{stage.input}/**/*.parquet"))
    assert stage.results() == expected(stage, 0, 1, 2)


def test_hidden_folders_below_two_stars_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"'_x' in .* is about names that begin with"):
        Session.in_process().stream(
            "s", path=f"{tmp_path}/**/_x/*.csv", ordered="time", format="csv", schema=SCHEMA
        )


@pytest.mark.parametrize("given", [True, False])
def test_a_file_with_brackets_in_its_name_is_taken_literally(tmp_path: Path, given: bool) -> None:
    stage = Stage(tmp_path)
    for name in ("a[1].parquet", "a1.parquet"):
        stage.write(name == "a1.parquet").rename(stage.input / name)
    session = Session.in_process(2)
    schema = SCHEMA if given else None
    session.stream("rows", path=stage.input / "a[1].parquet", ordered="time", schema=schema)
    session.query("q", "SELECT * FROM rows")
    run = session.start(sinks={"q": "memory"})
    assert run.await_termination(30)
    assert run.results("q").sort("time", "k").equals(sample(0).sort("time", "k"))


# -- folders that are not there ---------------------------------------------------------------------


@pytest.mark.parametrize("path", ["none", "none/*.parquet", "none/**/*.parquet", "none/a.parquet"])
def test_a_folder_that_does_not_exist_is_told(tmp_path: Path, path: str) -> None:
    stage = Stage(tmp_path)
    message = stage.refused(SourceError, stage.session(path=tmp_path / path))
    expected_path = tmp_path / (path if path.endswith("a.parquet") else "none")
    assert f"Stream 'rows': '{expected_path}' does not exist" in message
    (tmp_path / "none").mkdir()
    if not path.endswith("a.parquet"):
        stage.run(stage.session(path=tmp_path / path))


def test_a_folder_that_was_moved_away_is_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write(0)
    stage.run()
    stage.input.rename(tmp_path / "elsewhere")
    assert "does not exist" in stage.refused(SourceError)
    (tmp_path / "elsewhere").rename(stage.input)
    stage.finish()
    assert stage.results() == expected(stage, 0)


def test_a_continuous_run_says_that_it_waits_for_a_folder(tmp_path: Path) -> None:
    stage = Stage(tmp_path, settings={"poll_interval_seconds": 0.01})
    folder = tmp_path / "later"
    session = stage.session(path=folder)
    with pytest.warns(UserWarning, match="'rows': '.*later' does not exist; the run waits for it"):
        run = stage.start(session, trigger="continuous")
    stage.write(0)
    stage.input.rename(folder)
    deadline = time.monotonic() + 30
    while run.last_progress is None and time.monotonic() < deadline:
        time.sleep(0.01)
    run.stop()
    assert run.exception() is None
    assert run.last_progress is not None
    assert run.last_progress["numInputRows"] == 40


# -- files that change ------------------------------------------------------------------------------


def replace_at_first_epoch(stage: Stage, rows: pl.DataFrame) -> Callable[[str, int], None]:
    """Puts another file in the place of file 0 after it was polled, with the time that it had."""

    def step(name: str, epoch: int) -> None:
        if (name, epoch) == ("begin", 0):
            file = stage.path(0)
            before = file.stat()
            rows.write_parquet(stage.input / "_new", row_group_size=10)
            os.utime(stage.input / "_new", ns=(before.st_mtime_ns, before.st_mtime_ns))
            (stage.input / "_new").rename(file)

    return step


@pytest.mark.parametrize("frozen", [True, False])
def test_a_file_replaced_between_poll_and_read_is_refused(tmp_path: Path, frozen: bool) -> None:
    """Its row groups were counted in the file that was there before."""
    stage = Stage(tmp_path)
    stage.write(0, sample(0).head(3))
    step = replace_at_first_epoch(stage, sample(0))
    trigger = "available-now" if frozen else "continuous"
    message = stage.refused(SourceError, on_step=step, trigger=trigger)
    assert f"file '{stage.path(0)}': was changed while it was read" in message
    stage.finish()
    assert stage.results() == expected(stage, 0), "what was refused is not counted as read"


def test_a_file_replaced_between_poll_and_read_goes_to_the_dead_letters(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.write(0, sample(0).head(3))
    stage.write(1)
    step = replace_at_first_epoch(stage, sample(0))
    session = stage.session(on_bad="dead-letter")
    run = stage.finish(session, on_step=step, dead_letter=stage.dead)
    assert stage.results() == expected(stage, 1)
    assert source_metrics(run)["badFilesTotal"] == 1
    (copy,) = stage.dead.rglob("*.parquet")
    assert pl.read_parquet(copy).equals(sample(0))


def test_a_file_mended_before_its_poll_is_read_as_it_is_then(tmp_path: Path) -> None:
    """A run over what is there lists files once, at its start."""
    stage = Stage(tmp_path)
    stage.write(0)
    stage.write(1, sample(1).head(3))

    def step(name: str, epoch: int) -> None:
        if (name, epoch) == ("begin", 0):
            stage.write(1)

    stage.finish(on_step=step)
    assert stage.results() == expected(stage, 0, 1)


def test_a_second_name_is_another_file(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"t": 1}\n{"t": 2}\n')

    def rows_read() -> int:
        session = Session.in_process()
        session.stream("s", path=folder, ordered="t", lateness=9)
        session.query("q", "SELECT t FROM s")
        run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint")
        run.await_termination()
        return source_metrics(run)["rowsTotal"] if run.last_progress else 0

    assert rows_read() == 2
    os.link(folder / "a.jsonl", folder / "hard.jsonl")
    assert rows_read() == 4
    (folder / "soft.jsonl").symlink_to(folder / "a.jsonl")
    assert rows_read() == 0, "there is nothing new"
    (folder / "hard.jsonl").rename(folder / "renamed.jsonl")
    assert rows_read() == 6
