"""A disk that fills up: the epoch under way fails whole, and the next start goes on from the last one.

Once with a real full file system, once with a limit on the size of files (where mounting is not allowed).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anabranch.errors import AnabranchError, RunError, StateError
from helpers import FORMATS, SCHEMA, Stage, orphans, plain, visible_epochs


@dataclass
class Disk:
    """A place to put one of the folders, and how to fill and free it."""

    folder: Path
    fill: Callable[[], None]
    free: Callable[[], None]
    complaint: str


@pytest.fixture
def full(small_disk: Path) -> Disk:
    """A small file system."""
    ballast = small_disk / "ballast"

    def fill() -> None:
        if not ballast.exists():
            left = os.statvfs(small_disk)
            ballast.write_bytes(bytes(left.f_bavail * left.f_frsize))

    def free() -> None:
        ballast.unlink(missing_ok=True)

    return Disk(small_disk, fill, free, "No space left on device")


@pytest.fixture(params=["file system", "limit"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """A small file system, or a limit on the size of every file this process writes."""
    if request.param == "file system":
        yield request.getfixturevalue("full")
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, before[1]))

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    try:
        yield Disk(tmp_path / "disk", fill, free, "File too large")
    finally:
        free()


def many_groups(number: int) -> pl.DataFrame:
    """File `number`: 4000 groups of its ten seconds."""
    at = range(4000)
    rows = {"time": [number * 10 + n % 10 for n in at], "k": [f"key-{n}" for n in at], "v": [*at]}
    return pl.DataFrame(rows, SCHEMA)


FRAMES = [many_groups(number) for number in range(4)]


def fail_in_epoch_2(
    stage: Stage, disk: Disk, step: str, error: type[AnabranchError], words: str, **options: Any
) -> None:
    """Fills the disk at this step of epoch 2, twice; checks message and aftermath; frees the disk."""

    def fill(at: str, epoch: int) -> None:
        if (at, epoch) == (step, 2):
            disk.fill()

    outcome = (words, "not counted")
    for _ in range(2):
        message = stage.refused(
            error, stage.session(**options), on_step=fill, dead_letter=stage.dead
        )
        for word in (*outcome, disk.complaint, str(disk.folder), "start again"):
            assert word in message
        if step == "before-tasks" and stage.checkpoint.is_relative_to(disk.folder):
            # The second start comes to nothing already: it cannot claim the checkpoint
            outcome, error = ("manifests/0000", "has not begun"), StateError
        assert visible_epochs(stage.out) == [1]
        assert not list(stage.dead.glob("*/*/epoch=*"))
        if step == "before-tasks":
            stage.check_whole(last_epoch=1)
            assert not list(stage.dead.glob("*/*/*"))
        else:
            disk.free()
    disk.free()
    stage.finish(stage.session(**options), dead_letter=stage.dead)
    assert stage.results() == stage.expected(*FRAMES)
    assert list(stage.out.glob("_epoch=*")) == []
    assert orphans(stage.checkpoint) == set()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("before-tasks", "Cannot write the state segment"),
        ("before-commit", "manifests/0000"),
    ],
    ids=["segment", "manifest"],
)
def test_full_while_writing_to_the_checkpoint(
    tmp_path: Path, disk: Disk, step: str, words: str
) -> None:
    stage = Stage(tmp_path)
    stage.checkpoint = disk.folder / "checkpoint"
    for number, rows in enumerate(FRAMES):
        stage.write(number, rows)
    error: type[AnabranchError] = StateError
    if step == "before-tasks" and disk.complaint == "File too large":
        # A limit holds everywhere, and results are written before segments
        error, words, stage.out = RunError, "Cannot write results to", disk.folder / "out"
    fail_in_epoch_2(stage, disk, step, error, words)


@pytest.mark.parametrize("format", FORMATS)
def test_full_while_writing_results(tmp_path: Path, full: Disk, format: str) -> None:
    stage = Stage(tmp_path, out_format=format)
    stage.out = full.folder / "out"
    for number, rows in enumerate(FRAMES):
        stage.write(number, rows)
    fail_in_epoch_2(stage, full, "before-tasks", RunError, "Cannot write results to")


def test_full_while_keeping_late_rows(tmp_path: Path, full: Disk) -> None:
    stage = Stage(tmp_path, settings={"overlap": False})
    stage.dead = full.folder / "dead"
    late = pl.DataFrame({"time": [0, 3], "k": ["late", None], "v": [1, 2]}, SCHEMA)
    for number, rows in enumerate(FRAMES):
        stage.write(number, pl.concat([rows, late]) if number == 2 else rows)
    options = {"on_late": "dead-letter"}
    fail_in_epoch_2(stage, full, "before-tasks", RunError, "Cannot write results to", **options)
    assert stage.manifest().streams["rows"].late == 2
    kept = pl.read_parquet(f"{stage.dead}/late/rows/epoch=*/*.parquet", hive_partitioning=False)
    assert plain(kept) == plain(late)


def test_full_while_keeping_a_broken_file(tmp_path: Path, full: Disk) -> None:
    stage = Stage(tmp_path, settings={"overlap": False})
    stage.dead = full.folder / "dead"
    for number, rows in enumerate(FRAMES):
        stage.write(number + (number > 1), rows)
    broken = stage.write(2, b"PAR1 and no more")
    options = {"on_bad": "dead-letter"}
    words = "Cannot write to the dead-letter folder"
    fail_in_epoch_2(stage, full, "before-tasks", RunError, words, **options)
    assert stage.manifest().streams["rows"].bad_files == 1
    (copy,) = stage.dead.glob(f"bad/rows/epoch=000000000002/*{broken.name}")
    assert copy.read_bytes() == broken.read_bytes()


def test_a_disk_that_is_full_from_the_start(tmp_path: Path, small_disk: Path) -> None:
    stage = Stage(tmp_path)
    stage.checkpoint = small_disk / "checkpoint"
    for number in range(3):
        stage.write(number)
    left = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(left.f_bavail * left.f_frsize))
    message = stage.refused(StateError)
    assert "No space left on device" in message
    assert str(stage.checkpoint) in message
    assert visible_epochs(stage.out) == []
    (small_disk / "ballast").unlink()
    stage.finish()
    assert len(stage.results()) == 15
