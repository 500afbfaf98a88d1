"""Results that a crash left between commit and publication, when their place has another path by then."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from anabranch import Session
from anabranch.errors import RunError, StateError
from anabranch.sinks import MemorySink
from helpers import read_results

EPOCHS = 3
Delivery = list[tuple[int, list[int]]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(EPOCHS):
        rows = pl.DataFrame({"time": [number]})
        rows.write_parquet(tmp_path / "in" / f"{number}.parquet")
    return tmp_path


def start(root: Path, sinks: dict[str, Any], checkpoint: Path | str, crash: bool = False) -> Any:
    """One row an epoch; a crash comes when epoch 1 is committed and not yet to be seen."""
    session = Session.in_process(settings={"max_files_per_epoch": 1, "fsync": False})
    session.stream("s", path=root / "in", file_order="name", ordered="time")
    for query in ("q", "other"):
        session.query(query, "SELECT time FROM s")

    def step(name: str, epoch: int) -> None:
        if crash and name == "after-commit" and epoch == 1:
            raise RuntimeError("the power fails")

    run = session.start(sinks=sinks, checkpoint=checkpoint, on_step=step)
    if crash:
        with pytest.raises(RunError, match="the power fails"):
            run.await_termination(20)
    else:
        assert run.await_termination(20)
    return run


def collecting(into: Delivery) -> Any:
    def collect(table: pa.Table, epoch: int) -> None:
        into.append((epoch, table["time"].to_pylist()))

    return collect


def whole(folder: Path) -> bool:
    return read_results(folder)["time"].to_list() == [*range(EPOCHS)]


def test_a_result_folder_that_was_moved_after_a_crash_gets_what_waits_in_it(root: Path) -> None:
    start(root, {"q": root / "out"}, root / "checkpoint", crash=True)
    (root / "out").rename(root / "out2")
    start(root, {"q": root / "out2"}, root / "checkpoint")
    assert whole(root / "out2")


@pytest.mark.parametrize("kind", ["folder", "function", "memory"])
def test_a_checkpoint_that_was_moved_after_a_crash_goes_on(root: Path, kind: str) -> None:
    taken: Delivery = []
    memory = MemorySink()
    sink = {"folder": root / "out", "function": collecting(taken), "memory": memory}[kind]
    start(root, {"q": sink}, root / "checkpoint", crash=True)
    (root / "checkpoint").rename(root / "other")
    start(root, {"q": sink}, root / "other")
    if kind == "folder":
        assert whole(root / "out")
    elif kind == "memory":
        assert memory.rows()["time"].to_list() == [*range(EPOCHS)]
    else:
        assert taken == [(epoch, [epoch]) for epoch in range(EPOCHS)]


@pytest.mark.parametrize("kind", ["function", "memory"])
def test_results_for_the_driver_survive_its_machine_with_a_checkpoint_at_a_uri(
    root: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache of the URI is another one, or was emptied."""
    taken: Delivery = []
    memory = MemorySink()
    sink = collecting(taken) if kind == "function" else memory
    for machine in ("one", "two", "three"):
        (root / machine).mkdir(mode=0o700)
        monkeypatch.setattr(tempfile, "tempdir", str(root / machine))
        start(root, {"q": sink}, f"file://{root}/checkpoint", crash=machine == "one")
        shutil.rmtree(root / machine)
    if kind == "function":
        assert taken == [(epoch, [epoch]) for epoch in range(EPOCHS)]
    else:
        assert memory.rows()["time"].to_list() == [*range(EPOCHS)]


@pytest.mark.parametrize("now", ["folder", "function", "none"])
@pytest.mark.parametrize("before", ["folder", "function"])
def test_results_that_are_not_where_the_sink_looks_are_told_and_not_dropped(
    root: Path, before: str, now: str
) -> None:
    """Whatever sink the query had, the one that it gets has neither the parts nor the epoch."""
    taken: Delivery = []
    first = root / "out" if before == "folder" else collecting(taken)
    start(root, {"q": first, "other": "memory"}, root / "checkpoint", crash=True)
    changed: dict[str, Any] = {"folder": root / "elsewhere", "function": collecting([])}
    if before == now == "function":
        return  # another function is not another place
    sinks = {"other": "memory"} | ({"q": changed[now]} if now in changed else {})
    for _ in range(2):
        with pytest.raises(StateError, match=r"results of .*'q' in epoch 1") as caught:
            start(root, sinks, root / "checkpoint")
        assert "Start" in str(caught.value)
    start(root, {"q": first, "other": "memory"}, root / "checkpoint")
    assert whole(root / "out") if before == "folder" else len(taken) == EPOCHS


def test_a_folder_whose_waiting_results_are_lost_is_refused_until_told_to_do_without(
    root: Path,
) -> None:
    start(root, {"q": root / "out"}, root / "checkpoint", crash=True)
    (waiting,) = (root / "out").glob("_epoch=*")
    shutil.rmtree(waiting)
    with pytest.raises(StateError, match="make an empty folder") as caught:
        start(root, {"q": root / "out"}, root / "checkpoint")
    assert "epoch=000000000001" in str(caught.value)
    (root / "out" / "epoch=000000000001").mkdir()
    start(root, {"q": root / "out"}, root / "checkpoint")
    assert read_results(root / "out")["time"].to_list() == [0, 2]


def test_a_part_that_is_lost_or_cut_is_noticed_before_its_epoch_is_shown(root: Path) -> None:
    start(root, {"q": root / "out"}, root / "checkpoint", crash=True)
    (waiting,) = (root / "out").glob("_epoch=*")
    (part,) = waiting.iterdir()
    contents = part.read_bytes()
    for damage in (contents[:-1], None):
        part.unlink() if damage is None else part.write_bytes(damage)
        with pytest.raises(StateError, match=part.name):
            start(root, {"q": root / "out"}, root / "checkpoint")
    part.write_bytes(contents)
    start(root, {"q": root / "out"}, root / "checkpoint")
    assert whole(root / "out")


@pytest.mark.parametrize("change", ["emptied", "other folder", "function", "none"])
def test_once_results_were_shown_their_place_is_free_to_change(root: Path, change: str) -> None:
    """Whoever reads them may take them away, and the query may get another sink."""
    for number in (1, 2):
        (root / "in" / f"{number}.parquet").rename(root / f"_{number}")
    start(root, {"q": root / "out", "other": "memory"}, root / "checkpoint")
    for number in (1, 2):
        (root / f"_{number}").rename(root / "in" / f"{number}.parquet")
    for epoch in (root / "out").glob("epoch=*"):
        shutil.rmtree(epoch)
    taken: Delivery = []
    now = {"emptied": root / "out", "other folder": root / "out2", "function": collecting(taken)}
    sinks = {"other": "memory"} | ({"q": now[change]} if change in now else {})
    start(root, sinks, root / "checkpoint")
    if change == "function":
        assert taken == [(1, [1]), (2, [2])]
    elif change in now:
        assert read_results(now[change])["time"].to_list() == [1, 2]


def test_a_relative_checkpoint_is_one_of_the_folder_that_the_process_is_in(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (root / name).mkdir()
        monkeypatch.chdir(root / name)
        sink = MemorySink()
        start(root, {"q": sink}, "checkpoint").await_termination()
        assert (root / name / "checkpoint").is_dir()
