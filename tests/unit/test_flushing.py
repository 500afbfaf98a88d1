"""What a task writes is flushed beside its work, and all of it is on the disk before anything names it."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import pytest

from anabranch.errors import AnabranchError, StateError
from anabranch.state.folders import AT_ONCE, OPENED, flushed_beside, make_folder
from anabranch.state.ledger import Ledger
from anabranch.state.manifest import Manifest
from anabranch.state.place import Place
from anabranch.state.shelf import ShelfChange
from helpers import Stage


def write(place: Place, name: str) -> None:
    with place.writing(name, fsync=True) as path:
        path.write_text(name)


def test_flushes_of_a_block_wait_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each flush waits until three are under way: one after the other they would wait for ever
    together = threading.Barrier(3)

    def wait(handle: int) -> None:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            together.wait(timeout=60)

    monkeypatch.setattr(os, "fsync", wait)
    (tmp_path / "state").mkdir()
    with flushed_beside():
        for number in range(3):
            write(Place(tmp_path), f"state/{number}")


def test_few_files_and_folders_are_open_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task may write a file and a folder for each of a thousand partitions of a table."""
    most = 0

    def look(handle: int) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/fd")))

    monkeypatch.setattr(os, "fsync", look)
    before = len(os.listdir("/proc/self/fd"))
    with flushed_beside():
        for number in range(200):
            write(Place(tmp_path), f"state/part={number}/file")
    assert most - before <= OPENED + 2 * AT_ONCE


def test_a_new_folder_is_on_the_disk_before_its_task_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that fails leaves folders that the next one takes for flushed."""
    flushed: list[str] = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: flushed.append(os.readlink(f"/proc/self/fd/{handle}"))
    )
    with flushed_beside():
        make_folder(tmp_path / "a" / "b", private=True, fsync=True)
        assert {str(tmp_path), str(tmp_path / "a")} <= {*flushed}


def test_a_folder_is_flushed_once_when_all_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders: list[set[str]] = []

    def record(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        if path.is_dir():
            folders.append({*os.listdir(path)})

    monkeypatch.setattr(os, "fsync", record)
    (tmp_path / "state").mkdir()
    with flushed_beside():
        for name in "abc":
            write(Place(tmp_path), f"state/{name}")
    assert folders == [{"a", "b", "c"}]


def test_outside_of_a_block_a_file_is_flushed_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[str] = []

    def record(handle: int) -> None:
        flushed.append(threading.current_thread().name)

    monkeypatch.setattr(os, "fsync", record)
    (tmp_path / "state").mkdir()
    with flushed_beside():
        pass
    write(Place(tmp_path), "state/a")
    assert flushed == [threading.current_thread().name] * 2


def test_a_flush_that_fails_is_told_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / "state").mkdir()
    with (
        pytest.raises(StateError, match=r"/state' to the disk: Input/output error.*not counted"),
        flushed_beside(),
    ):
        write(Place(tmp_path), "state/a")


def test_an_epoch_whose_files_cannot_be_flushed_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def fail(handle: int) -> None:
        if ".arrow" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    stage = Stage(tmp_path, settings={"fsync": True})
    for number in range(3):
        stage.write(number)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail)
        with pytest.raises(AnabranchError, match=r"No space left on device.*not counted"):
            stage.run()
    assert not [*stage.out.glob("epoch=*")]
    stage.run()
    assert [*stage.out.glob("epoch=*")]


def test_what_an_entry_names_is_on_the_disk_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[int] = set()
    named: list[Path] = []
    fsync, commit = os.fsync, Ledger.commit
    stage = Stage(tmp_path, settings={"fsync": True})

    def record(handle: int) -> None:
        fsync(handle)
        flushed.add(os.fstat(handle).st_ino)

    def check(
        ledger: Ledger, manifest: Manifest, shelves: dict[str, ShelfChange] | None = None
    ) -> None:
        files = [stage.checkpoint / name for name in manifest.files()]
        files += [
            path
            for parts in manifest.results.values()
            for part in parts
            for path in stage.out.glob(f"_epoch=*/{part.name}")
        ]
        unsafe = [path for path in files if path.stat().st_ino not in flushed]
        unsafe += [path.parent for path in files if path.parent.stat().st_ino not in flushed]
        assert not unsafe
        named.extend(files)
        commit(ledger, manifest, shelves)

    monkeypatch.setattr(os, "fsync", record)
    monkeypatch.setattr(Ledger, "commit", check)
    for number in range(3):
        stage.write(number)
    stage.run()
    assert {path.suffix for path in named} >= {".arrow", ".parquet"}
