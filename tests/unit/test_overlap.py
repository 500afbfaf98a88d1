"""Results, dead letters and the checkpoint are never input, nor within each other, however that comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import PlanningError, SettingsError, StateError
from anabranch.sinks import ConsoleSink, ForeachSink, MemorySink
from helpers import Stage, read_results


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inner = tmp_path / "in" / "a" / "epoch=000000000000"
    inner.mkdir(parents=True)
    pl.DataFrame({"time": [1, 2, 3]}).write_parquet(inner / "part-0.parquet")
    return tmp_path


def start(root: Path, path: str, sink: str, checkpoint: str = "checkpoint", **options: Any) -> Any:
    session = Session.in_process(settings={"fsync": False})
    schema = {"time": "int64"}
    session.stream("s", path=root / path, format="parquet", schema=schema, ordered="time")
    session.query("q", "SELECT time FROM s")
    at = checkpoint.replace("ROOT", str(root)) if ":" in checkpoint else root / checkpoint
    return session.start(sinks={"q": root / sink}, checkpoint=at, **options)


READ = [
    ("in", "in/out"),
    ("in/*", "in/out"),
    ("in/*/*", "in/out"),
    ("in/*/epoch=*", "in/out"),
    ("in/*/epoch=*/*.parquet", "in/out"),
    ("in/*/*/*.parquet", "in/out"),
    ("in/*/*/part-s*", "in/out"),
    ("in/*/epoch=0000000001[1-3]?/*", "in/out"),
    ("in/[!a]*/*/*.p?rquet", "in/out"),
    ("*/*/*/*.parquet", "in/out"),
    ("in/*/_kept/*/*.parquet", "in/x/_kept"),
    ("out/epoch=000000000007", "out"),
    ("in/**/*.parquet", "in/x/out"),
    ("in/**", "in/out"),
    ("in/a*/**/epoch=*/*", "in/abc/d/out"),
]
NOT_READ = [
    ("in", "in/_out"),
    ("in/*.parquet", "in/out"),
    ("in/*/*.parquet", "in/out"),
    ("in/*/*/*.csv", "in/out"),
    ("in/*/*/other-*", "in/out"),
    ("in/a*/epoch=*/*.parquet", "in/out"),
    ("in/*/*/*/*.parquet", "in/out"),
    ("in/*/*/*.parquet", "in/_out"),
    ("in", "out"),
    ("in/**/*.csv", "in/x/out"),
]


@pytest.mark.parametrize("checkpoint", ["checkpoint", "file://ROOT/checkpoint"])
@pytest.mark.parametrize(("path", "sink"), READ)
def test_a_sink_that_a_stream_would_read_is_refused_by_whatever_pattern(
    root: Path, path: str, sink: str, checkpoint: str
) -> None:
    with pytest.raises(SettingsError, match=r"which stream 's' would read as input"):
        start(root, path, sink, checkpoint)


@pytest.mark.parametrize(("path", "sink"), NOT_READ)
def test_a_sink_that_no_listing_comes_to_is_accepted(root: Path, path: str, sink: str) -> None:
    for _ in range(2):
        assert start(root, path, sink).await_termination(20)
    assert read_results(root / sink).height in (0, 3)


@pytest.mark.parametrize("path", ["in", "in/*", "in/*/epoch=*/*.parquet", "in/l*/*/*"])
def test_a_sink_behind_a_link_that_the_listing_follows_is_refused(root: Path, path: str) -> None:
    (root / "out").mkdir()
    (root / "in" / "link").symlink_to(root / "out")
    with pytest.raises(SettingsError, match="would read as input"):
        start(root, path, "out")


def test_a_sink_below_a_link_within_a_linked_folder_is_refused(root: Path) -> None:
    (root / "far" / "deep").mkdir(parents=True)
    (root / "in" / "link").symlink_to(root / "far")
    (root / "far" / "back").symlink_to(root / "in")
    for sink in ("far/out", "far/deep/er/out"):
        with pytest.raises(SettingsError, match="would read as input"):
            start(root, "in", sink)


@pytest.mark.parametrize("path", ["dead", "dead/late/*", "dead/*/s/epoch=*/*.parquet"])
def test_dead_letters_that_a_stream_would_read_are_refused(root: Path, path: str) -> None:
    (root / "dead").mkdir()
    for checkpoint in ("checkpoint", "file://ROOT/checkpoint"):
        with pytest.raises(SettingsError, match=r"dead-letter folder .* would read as input"):
            start(root, path, "out", checkpoint, dead_letter=root / "dead")


@pytest.mark.parametrize("checkpoint", ["in/ck", "file://ROOT/in/ck"])
def test_a_checkpoint_in_the_input_is_refused_as_a_uri_too(root: Path, checkpoint: str) -> None:
    with pytest.raises(SettingsError, match="would read as input"):
        start(root, "in", "out", checkpoint)
    with pytest.raises(SettingsError, match="inside the checkpoint"):
        start(root, "in", checkpoint.rpartition("ROOT/")[2] + "/out", checkpoint)


@pytest.mark.parametrize(
    ("sink", "dead"), [("dead/late/rows", "dead"), ("dead/x", "dead"), ("out", "out/dead")]
)
def test_results_and_dead_letters_within_each_other_are_refused(
    tmp_path: Path, sink: str, dead: str
) -> None:
    stage = Stage(tmp_path)
    stage.write(0)
    with pytest.raises(SettingsError, match="whoever reads that would read both"):
        stage.start(sinks={"sums": tmp_path / sink}, dead_letter=tmp_path / dead)
    stage.finish(dead_letter=stage.out / "_dead")


@pytest.mark.parametrize("kind", [MemorySink, ConsoleSink, lambda: ForeachSink(print)])
def test_one_sink_object_cannot_take_the_results_of_two_queries(tmp_path: Path, kind: Any) -> None:
    stage = Stage(tmp_path)
    stage.write(0)
    session = stage.session()
    session.query("other", "SELECT time FROM rows")
    shared = kind()
    with pytest.raises(PlanningError, match=r"Queries 'other' and 'sums' have the same .* object"):
        stage.start(session, sinks={"sums": shared, "other": shared})
    stage.finish(session, sinks={"sums": kind(), "other": kind()})


def test_a_memory_sink_cannot_be_opened_while_it_is_open(tmp_path: Path) -> None:
    """Not by a second driver of the same run either."""
    stage = Stage(tmp_path)
    stage.write(0)
    memory = MemorySink()
    refused: list[StateError] = []

    def second(step: str, epoch: int) -> None:
        if step == "before-tasks" and not refused:
            (stage.checkpoint / "lock").unlink()
            with pytest.raises(
                StateError, match=r"is taking the results .* Stop that run"
            ) as caught:
                stage.start(sinks={"sums": memory})
            refused.append(caught.value)

    stage.finish(sinks={"sums": memory}, on_step=second)
    assert refused
    assert memory.rows().height
