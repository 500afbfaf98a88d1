"""Small epochs of result folders are gathered: every row is visible once, whatever is killed."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import AnabranchError, StateError
from anabranch.sinks import spans
from anabranch.sinks.files import FileSink
from anabranch.testing.sources import EpochSource
from helpers import sample, visible_epochs


class KilledError(BaseException):
    """In place of the end of the process."""


def run(root: Path, epochs: int, gather: str | None = "1 hour", **options: object) -> None:
    session = Session.in_process(2, {"fsync": False})
    session.stream("t", EpochSource([sample(n) for n in range(epochs)]), ordered="time")
    session.query("q", "SELECT time, k, v FROM t")
    sink = {"path": root / "out", **({"gather": gather} if gather else {}), **options}
    session.start(sinks={"q": sink}, checkpoint=root / "ck").await_termination()


def expected(epochs: int) -> list[tuple[object, ...]]:
    return sorted(pl.concat([sample(n) for n in range(epochs)]).rows(), key=str)


def seen(root: Path) -> list[tuple[object, ...]]:
    """As a plain reader sees the folder."""
    files = sorted((root / "out").glob("epoch=*/*.*"))
    frames = [pl.read_parquet(path, hive_partitioning=False) for path in files]
    return sorted((row for frame in frames for row in frame.rows()), key=str)


def make(folder: Path, epoch: int, rows: int = 1, format: str = "parquet") -> None:
    """An epoch that waits, with rows that say where they are from."""
    waiting = folder / f"{spans.WAITING}{epoch:012d}"
    waiting.mkdir(parents=True)
    frame = pl.DataFrame({"epoch": [epoch] * rows, "row": range(rows)})
    for site in range(2):
        spans.WRITERS[format](frame[site::2], waiting / f"part-site-{site}.{format}")


def gathered(folder: Path, target: int = 1 << 20, format: str = "parquet") -> spans.Spans:
    return spans.Spans(folder, format, fsync=False, private=True, target_bytes=target)


def rows_in(folder: Path) -> list[int]:
    files = folder.glob("epoch=*/*")
    return sorted(n for path in files for n in spans._read(path)["epoch"].to_list())


def test_epochs_of_a_run_become_one_file(tmp_path: Path) -> None:
    run(tmp_path, 5)
    assert visible_epochs(tmp_path / "out") == [0]
    assert len([*(tmp_path / "out").glob("epoch=*/*")]) == 1
    assert seen(tmp_path) == expected(5)
    run(tmp_path, 9)
    assert len([*(tmp_path / "out").glob("epoch=*/*")]) == 2
    assert seen(tmp_path) == expected(9)


def test_results_that_are_much_are_seen_at_once_and_large_epochs_stay_as_they_are(
    tmp_path: Path,
) -> None:
    run(tmp_path, 4, target_bytes=1)
    assert visible_epochs(tmp_path / "out") == [0, 1, 2, 3]
    assert seen(tmp_path) == expected(4)


def test_results_that_wait_are_seen_after_a_while(tmp_path: Path) -> None:
    session = Session.in_process(1, {"fsync": False})
    session.stream("t", generator="packets", rows=1000, ordered="time")
    session.query("q", "SELECT time, srcIP FROM t")
    sink = FileSink(tmp_path / "out", gather="1 second")
    with session.start(sinks={"q": sink}, checkpoint=tmp_path / "ck", trigger="1 hour"):
        until = time.monotonic() + 60
        while not visible_epochs(tmp_path / "out"):
            assert time.monotonic() < until
            time.sleep(0.05)


def test_all_is_visible_at_the_end_although_it_is_just_being_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = spans.Spans.gather

    def slowly(self: spans.Spans, now: float) -> None:
        if threading.current_thread().name.startswith("Thread"):
            time.sleep(0.3)  # the run ends meanwhile
        real(self, now)

    monkeypatch.setattr(spans.Spans, "gather", slowly)
    run(tmp_path, 1, gather="1 microsecond")
    assert seen(tmp_path) == expected(1)


@pytest.mark.parametrize("fault", [OSError(28, "No space left"), pl.exceptions.ComputeError("x")])
def test_what_cannot_be_gathered_beside_the_run_is_told_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def fails(self: spans.Spans, now: float) -> None:
        if self.waiting():
            raise fault

    with monkeypatch.context() as patch:
        patch.setattr(spans.Spans, "gather", fails)
        with pytest.raises(AnabranchError, match="are committed and wait in"):
            run(tmp_path, 1, gather="1 microsecond")
    run(tmp_path, 1)
    assert seen(tmp_path) == expected(1)


@pytest.mark.parametrize("target", [1 << 20, 20_000])
def test_files_of_other_columns_are_not_merged(tmp_path: Path, target: int) -> None:
    """A query that was changed goes on in its folder."""
    made = gathered(tmp_path, target)
    for epoch in range(60):
        make(tmp_path, epoch)
        if epoch % 20 > 6:
            for part in tmp_path.glob(f"{spans.WAITING}*/*"):
                spans._read(part).with_columns(more=pl.lit(1)).write_parquet(part)
        made.gather(time.time())
    assert rows_in(tmp_path) == [*range(60)]
    assert len([*tmp_path.glob("epoch=*/*")]) < 40


def test_with_and_without_gathering_in_turn(tmp_path: Path) -> None:
    run(tmp_path, 3)
    run(tmp_path, 5, gather=None)
    run(tmp_path, 7)
    # As if a driver had been killed while two epochs waited
    out = tmp_path / "out"
    for epoch in (3, 4):
        assert (out / f"epoch={epoch:012d}").exists()
    assert seen(tmp_path) == expected(7)


def test_what_waits_is_shown_by_a_run_that_does_not_gather(tmp_path: Path) -> None:
    run(tmp_path, 3, gather=None)
    out = tmp_path / "out"
    (out / "epoch=000000000002").rename(out / f"{spans.WAITING}000000000002")
    (out / spans.LOCK).touch()
    run(tmp_path, 4, gather=None)
    assert visible_epochs(out) == [0, 1, 2, 3]
    assert seen(tmp_path) == expected(4)


def test_a_folder_with_more_than_the_checkpoint_knows_is_refused(tmp_path: Path) -> None:
    run(tmp_path, 3)
    make(tmp_path / "out", 7)
    with pytest.raises(
        StateError, match=r"has results of epoch 7, but the checkpoint has come to epoch 2"
    ):
        run(tmp_path, 4)


def test_a_folder_in_which_results_wait_is_used(tmp_path: Path) -> None:
    run(tmp_path / "one", 1)
    out = tmp_path / "one" / "out"
    (out / "epoch=000000000000").rename(out / f"{spans.WAITING}000000000000")
    other = Session.in_process(1)
    other.stream("t", generator="packets", rows=10, ordered="time")
    other.query("q", "SELECT time FROM t")
    with pytest.raises(StateError, match="already has"):
        other.start(sinks={"q": out}, checkpoint=tmp_path / "two")


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_many_small_epochs_leave_few_files(tmp_path: Path, format: str) -> None:
    made = gathered(tmp_path, format=format)
    for epoch in range(280):
        make(tmp_path, epoch, format=format)
        made.gather(time.time())
    files = [*tmp_path.glob("epoch=*/*")]
    # Those of each rank, in one span
    assert len(files) <= 3 * spans.FAN
    assert rows_in(tmp_path) == [*range(280)]


def test_full_spans_become_one_file_each(tmp_path: Path) -> None:
    made = gathered(tmp_path, target=4_000)
    for epoch in range(40):
        make(tmp_path, epoch, rows=20)
        made.gather(time.time())
    folders = sorted(tmp_path.glob("epoch=*"))
    assert len(folders) > 2
    assert [len([*folder.iterdir()]) for folder in folders[:-1]] == [1] * (len(folders) - 1)
    assert rows_in(tmp_path) == sorted([*range(40)] * 20)


def test_spans_end_in_time_to_be_taken_away(tmp_path: Path) -> None:
    made = spans.Spans(tmp_path, "parquet", False, True, 1 << 20, oldest_seconds=100.0)
    now = time.time()
    for epoch, later in enumerate((0, 50, 101)):
        make(tmp_path, epoch)
        made.gather(now + later)
    assert visible_epochs(tmp_path) == [0, 2]


STEPS = ("replace", "link", "utime", "chmod")


@pytest.mark.parametrize("step", [*STEPS, "exchange", "rmtree"])
@pytest.mark.parametrize("after", [False, True])
def test_killed_at_any_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    """At the n-th call of each kind, before it or after: no row is ever seen twice, none is lost."""
    for number in range(3):
        folder = tmp_path / str(number)
        made = gathered(folder, target=6_000)
        committed: list[int] = []
        for epoch in range(40):
            make(folder, epoch, rows=10)
            committed += [epoch] * 10
            # Killed once in every ninth epoch
            try:
                with (
                    killing(monkeypatch, step, number, after)
                    if epoch % 9 == 8
                    else contextlib.nullcontext()
                ):
                    made.gather(time.time())
            except KilledError:
                pass
            visible = rows_in(folder)
            assert sorted(visible) == committed[: len(visible)], f"epoch {epoch}"
        made.gather(time.time())
        assert rows_in(folder) == committed
        left = {path.name.split("=")[0] for path in folder.iterdir()}
        assert left <= {"epoch", spans.LOCK}


@contextlib.contextmanager
def killing(monkeypatch: pytest.MonkeyPatch, step: str, number: int, after: bool) -> Iterator[None]:
    owner = spans if step == "exchange" else spans.shutil if step == "rmtree" else spans.os
    real = getattr(owner, step)
    calls = iter(range(1000))

    def killed(*args: object, **named: object) -> object:
        if next(calls) != number:
            return real(*args, **named)
        if after:
            real(*args, **named)
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, killed)
        yield


def test_a_reader_beside_sees_every_row_at_most_once_and_none_go(tmp_path: Path) -> None:
    """Files that are gone when they are opened are told, and the folder is listed again."""
    stop, faults, looks = threading.Event(), [], 0
    (tmp_path / "_").mkdir()

    def read() -> None:
        nonlocal looks
        least = 0
        while not stop.is_set():
            try:
                now = rows_in(tmp_path)
            except FileNotFoundError:
                continue
            looks += 1
            if now != [*range(len(now))] or len(now) < least:
                faults.append(now)
            least = len(now)

    reader = threading.Thread(target=read)
    reader.start()
    made = gathered(tmp_path, target=20_000)
    try:
        for epoch in range(250):
            make(tmp_path, epoch)
            made.gather(time.time())
    finally:
        stop.set()
        reader.join()
    assert faults == []
    assert looks > 3
    assert rows_in(tmp_path) == [*range(250)]


def test_all_types_come_through(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "d": [dt.timedelta(seconds=1), None], "t": [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None],
            "x": [[1, 2], None], "s": [{"a": 1, "b": "x"}, None], "b": [b"1", None],
            "n": pl.Series([1, None], dtype=pl.UInt8), "day": [dt.date(2026, 1, 1), None],
            "dec": pl.Series(["1.50", None]).str.to_decimal(scale=2),
        }
    )  # fmt: skip
    for format in ("parquet", "arrow"):
        path = tmp_path / f"one.{format}"
        spans.WRITERS[format](frame, path)
        assert spans._read(path).schema == frame.schema
        assert spans._read(path).rows() == frame.rows()


def test_what_cannot_be_gathered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AnabranchError, match="Results as csv cannot be gathered"):
        FileSink(tmp_path, "csv", gather="1 minute")
    with pytest.raises(AnabranchError, match="gather 'soon' is not a length of time"):
        FileSink(tmp_path, gather="soon")
    with pytest.raises(AnabranchError, match="target_bytes is 0; expected a number of bytes"):
        FileSink(tmp_path, gather="1 minute", target_bytes=0)

    def fails(*paths: Path) -> None:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(spans, "exchange", fails)
    with pytest.raises(AnabranchError, match="cannot exchange two folders at one moment"):
        run(tmp_path, 1)


def test_files_are_as_private_as_results_are(tmp_path: Path) -> None:
    run(tmp_path, 3)
    (file,) = (tmp_path / "out").glob("epoch=*/*")
    assert os.stat(file).st_mode & 0o077 == 0
    assert os.stat(file.parent).st_mode & 0o077 == 0
