"""Two runs at a time: what they share, what they must not share, and who a result folder belongs to."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import RunError
from anabranch.sources.base import Limits, Offer, ReadContext, Reader
from anabranch.testing.sources import EpochReader, EpochSource

FILES, ROWS = 20, 10


def numbered_files(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        first = number * ROWS
        rows = pl.DataFrame({"time": range(first, first + ROWS)})
        rows.write_parquet(folder / f"{number:04d}.parquet")


def streams(session: Session, folder: Path) -> None:
    numbered_files(folder)
    session.stream("files", path=folder, ordered="time")
    frames = [pl.DataFrame({"time": [number]}) for number in range(FILES)]
    session.stream("frames", EpochSource(frames), ordered="time")
    options = {"rows": FILES * ROWS, "rows_per_epoch": ROWS, "rows_per_second": 10}
    session.stream("made", generator="packets", ordered="time", lateness=1000, **options)
    session.query("of_files", "SELECT time FROM files")
    session.query("of_frames", "SELECT time FROM frames")
    session.query("of_made", "SELECT time, srcIP FROM made")


def test_two_runs_of_a_session_each_get_all_rows(tmp_path: Path) -> None:
    """Interleaved epoch by epoch, so that anything they share shows."""
    session = Session.in_process(2, {"fsync": False, "max_files_per_epoch": 1})
    streams(session, tmp_path / "in")
    together = threading.Barrier(2, timeout=20)

    def in_step(step: str, epoch: int) -> None:
        if step == "before-tasks":
            together.wait()

    sinks = dict.fromkeys(("of_files", "of_frames", "of_made"), "memory")
    runs = [
        session.start(sinks=sinks, checkpoint=tmp_path / name, on_step=in_step)
        for name in ("one", "two")
    ]
    for run in runs:
        assert run.await_termination(60)
    for run in runs:
        assert run.results("of_files")["time"].to_list() == list(range(FILES * ROWS))
        assert run.results("of_frames")["time"].to_list() == list(range(FILES))
        assert run.results("of_made").height == FILES * ROWS
    assert runs[0].results("of_made").equals(runs[1].results("of_made"))


class Jammed(EpochSource):
    """A source that cannot be let go of."""

    def open(self, context: ReadContext) -> Reader:
        return JammedReader(self.frames, int(context.offset or 0))


class JammedReader(EpochReader):
    def stop(self) -> None:
        raise OSError("the device is stuck")


def test_a_source_that_cannot_be_stopped_does_not_keep_the_run(tmp_path: Path) -> None:
    """The run ends with what happened, the others are released, and the lock is free."""
    frames = [pl.DataFrame({"time": [1, 2]})]

    def start(source: EpochSource) -> Any:
        session = Session.in_process(2, {"fsync": False})
        session.stream("s", source, ordered="time")
        session.query("q", "SELECT time FROM s")
        return session.start(sinks={"q": tmp_path / "out"}, checkpoint=tmp_path / "checkpoint")

    run = start(Jammed(frames))
    with pytest.raises(RunError, match=r"Stream 's' could not be let go of: .*the device is stuck"):
        assert run.await_termination(20)
    assert not run.is_active
    again = start(EpochSource(frames))
    assert again.await_termination(20)


class Refusing(EpochSource):
    def open(self, context: ReadContext) -> Reader:
        raise OSError("nobody answers")


def test_a_source_that_cannot_be_opened_is_told_and_frees_the_lock(tmp_path: Path) -> None:
    frames = [pl.DataFrame({"time": [1, 2]})]
    for source, words in ((Refusing(frames), "nobody answers"), (EpochSource(frames), "")):
        session = Session.in_process(2, {"fsync": False})
        session.stream("s", source, ordered="time")
        session.query("q", "SELECT time FROM s")
        if words:
            with pytest.raises(RunError, match=f"Stream 's' could not be opened: .*{words}"):
                session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint")
        else:
            run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint")
            assert run.await_termination(20)


def test_a_run_that_failed_says_so_first(tmp_path: Path) -> None:
    """What went wrong in an epoch is worth more than what went wrong while clearing up."""

    class Broken(JammedReader):
        def poll(self, limits: Limits, ordinal: int) -> Offer | None:
            raise ValueError("torn")

    class Worse(EpochSource):
        def open(self, context: ReadContext) -> Reader:
            return Broken(self.frames)

    session = Session.in_process(2, {"fsync": False})
    session.stream("s", Worse([pl.DataFrame({"time": [1]})]), ordered="time")
    session.query("q", "SELECT time FROM s")
    run = session.start(sinks={"q": "memory"}, checkpoint=tmp_path / "checkpoint")
    with pytest.raises(RunError, match="torn"):
        assert run.await_termination(20)
