"""Two runs at a time: what they share, what they must not share, and who a result folder belongs to."""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import PlanningError, RunError, SettingsError, StateError
from anabranch.sinks import MemorySink
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reader
from anabranch.testing.sources import EpochReader, EpochSource
from helpers import Stage, sample

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
        def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
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


# -- result folders ---------------------------------------------------------------------------------


def spelt(folder: Path, how: str) -> Path:
    """The same folder in other words."""
    if how == "dots":
        return folder.parent / "x" / ".." / folder.name
    if how == "link":
        link = folder.parent / "link"
        link.symlink_to(folder)
        return link
    return folder


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    for number in range(3):
        stage.write(number)
    (tmp_path / "x").mkdir()
    return stage


@pytest.mark.parametrize("how", ["plain", "dots", "link"])
def test_two_runs_at_a_time_cannot_write_to_one_folder(stage: Stage, how: str) -> None:
    """The second is told whose it is, and neither loses a row."""
    refused: list[StateError] = []

    def second(step: str, epoch: int) -> None:
        if step == "before-tasks" and epoch == 1:
            with pytest.raises(StateError) as caught:
                stage.start(
                    sinks={"sums": spelt(stage.out, how)}, checkpoint=stage.root / "checkpoint2"
                )
            refused.append(caught.value)

    run = stage.start(at_end="close", on_step=second)
    assert run.await_termination(60)
    (error,) = refused
    for words in ("The sink of 'sums'", run.id, str(stage.checkpoint), "Stop that run first"):
        assert words in str(error)
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


@pytest.mark.parametrize("how", ["plain", "dots", "link"])
def test_a_folder_with_results_of_another_run_is_refused(stage: Stage, how: str) -> None:
    first = stage.finish()
    before = stage.results()
    other = {"sums": spelt(stage.out, how)}
    message = stage.refused(StateError, sinks=other, checkpoint=stage.root / "checkpoint2")
    for words in ("The sink of 'sums'", "epoch=000000000001", first.id, str(stage.checkpoint)):
        assert words in message
    assert stage.results() == before


def test_a_run_goes_on_in_its_folder_however_it_is_spelt(stage: Stage) -> None:
    """Also when a crash left results waiting in it."""

    def fail(step: str, epoch: int) -> None:
        if step == "after-commit" and epoch == 1:
            raise RuntimeError("the power fails")

    with pytest.raises(RunError, match="the power fails"):
        stage.run(on_step=fail)
    stage.run(sinks={"sums": spelt(stage.out, "link")})
    stage.finish(sinks={"sums": spelt(stage.out, "dots")})
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_a_folder_without_results_may_change_hands(stage: Stage) -> None:
    """As after a run that failed before its first epoch, whose checkpoint begins anew."""

    def fail(step: str, epoch: int) -> None:
        raise RuntimeError("the power fails")

    with pytest.raises(RunError, match="the power fails"):
        stage.run(on_step=fail)
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_results_that_someone_else_put_there_are_not_taken_for_ours(stage: Stage) -> None:
    def meddle(step: str, epoch: int) -> None:
        if step == "before-commit" and epoch == 1:
            (stage.out / "epoch=000000000001").mkdir()
            (stage.out / "epoch=000000000001" / "part-other.parquet").write_text("")

    message = stage.refused(RunError, on_step=meddle)
    assert "epoch=000000000001" in message
    assert "who wrote it?" in message
    shutil.rmtree(stage.out / "epoch=000000000001")
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_two_queries_cannot_have_one_folder(stage: Stage) -> None:
    session = stage.session()
    session.query("other", "SELECT time FROM rows")
    stage.out.mkdir()
    sinks = {"sums": stage.out, "other": spelt(stage.out, "link")}
    with pytest.raises(PlanningError, match="'other' and 'sums' have the same folder"):
        stage.start(session, sinks=sinks)


@pytest.mark.parametrize(
    ("sink", "words"),
    [
        ("checkpoint/out", "inside the checkpoint"),
        ("checkpoint", "inside the checkpoint"),
        ("x/../checkpoint/state/out", "inside the checkpoint"),
        ("in/out", "which stream 'rows' would read as input"),
        ("in", "which stream 'rows' would read as input"),
        ("link/out", "which stream 'rows' would read as input"),
    ],
)
@pytest.mark.parametrize("kind", ["sink", "dead letters"])
def test_results_inside_the_checkpoint_or_the_input_are_refused(
    stage: Stage, sink: str, words: str, kind: str
) -> None:
    (stage.root / "link").symlink_to(stage.input)
    place = stage.root / sink
    options: dict[str, Any] = {"sinks": {"sums": place}}
    if kind == "dead letters":
        options = {"sinks": {"sums": "memory"}, "dead_letter": place}
    with pytest.raises(SettingsError, match=words) as caught:
        stage.start(**options)
    assert str(place) in str(caught.value)
    stage.finish()
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_a_checkpoint_inside_the_input_is_refused(stage: Stage) -> None:
    with pytest.raises(SettingsError, match=r"The checkpoint is .* would read as input"):
        stage.start(checkpoint=stage.input / "checkpoint")
    stage.finish(checkpoint=stage.input / "_checkpoint")
    assert stage.results() == stage.expected(*(sample(number) for number in range(3)))


def test_dead_letters_belong_to_a_run_too(stage: Stage) -> None:
    late = stage.session(on_late="dead-letter")
    stage.write(3, sample(0))
    stage.finish(late, dead_letter=stage.dead)
    letters = sorted(stage.dead.rglob("*.parquet"))
    assert letters
    message = stage.refused(
        StateError,
        late,
        dead_letter=stage.dead,
        checkpoint=stage.root / "two",
        sinks={"sums": "memory"},
    )
    assert "The dead-letter folder" in message
    assert sorted(stage.dead.rglob("*.parquet")) == letters
    with pytest.raises(SettingsError, match="have the same folder"):
        stage.start(late, dead_letter=stage.out)


def test_one_memory_sink_cannot_serve_two_runs(stage: Stage) -> None:
    memory = MemorySink()
    stage.run(sinks={"sums": memory})
    before = memory.rows()
    message = stage.refused(StateError, sinks={"sums": memory}, checkpoint=stage.root / "two")
    assert "give every run a MemorySink of its own" in message
    assert memory.rows().equals(before)
    stage.finish(sinks={"sums": memory})


@pytest.mark.parametrize("kind", ["sink", "dead letters"])
def test_a_place_that_cannot_be_written_is_told_at_the_start(stage: Stage, kind: str) -> None:
    (stage.root / "file").write_text("")
    place = stage.root / "file" / "out"
    what = {"sink": "The sink of 'sums'", "dead letters": "The dead-letter folder"}[kind]
    options: dict[str, Any] = {"sinks": {"sums": place}}
    if kind == "dead letters":
        options = {"sinks": {"sums": "memory"}, "dead_letter": place}
    with pytest.raises(SettingsError) as caught:
        stage.start(**options)
    message = str(caught.value)
    assert message.startswith(f"{what} cannot be written to '{place}': Not a directory.")
    assert "\n" not in message
    stage.finish()  # the checkpoint is free


def test_a_run_that_a_library_ends_by_panic_says_so(stage: Stage) -> None:
    """Panics of Polars are no Exception; the run must not end as if all were well."""

    class Panic(BaseException):
        pass

    def panic(step: str, epoch: int) -> None:
        raise Panic("out of range")

    with pytest.raises(RunError, match="out of range"):
        stage.run(on_step=panic)


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_type_that_a_format_cannot_hold_is_refused_at_the_start(
    tmp_path: Path, format: str
) -> None:
    rows = pl.DataFrame({"time": [dt.datetime(2026, 1, 1)]})
    rows.write_parquet(tmp_path / "in.parquet")
    session = Session.in_process(1, {"fsync": False})
    session.stream("s", path=tmp_path / "in.parquet", ordered="time")
    session.query("q", "SELECT time, time - time AS d FROM s")
    with pytest.raises(SettingsError, match="The sink of 'q' cannot be written as") as caught:
        session.start(sinks={"q": {"path": tmp_path / "out", "format": format}})
    assert "column 'd' is Duration" in str(caught.value)
    assert "parquet or arrow" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_start_that_fails_leaves_no_temporary_checkpoint(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stage.root / "temporary"
    made.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made))
    (stage.root / "file").write_text("")
    for sink in (stage.root / "file", stage.input / "out"):
        with pytest.raises(SettingsError):
            stage.start(sinks={"sums": sink}, checkpoint=None)
    assert list(made.iterdir()) == []
    stage.finish(checkpoint=None)
    assert list(made.iterdir()) == []
