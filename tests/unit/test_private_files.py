"""Who may read what a run leaves: its owner alone, unless the setting says otherwise; and what is flushed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from anabranch.errors import StateError
from anabranch.state import folders
from anabranch.state.folders import cache_folder
from helpers import SCHEMA, Stage, sample


@pytest.fixture(params=["022", "027", "077"])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    mask = int(request.param, 8)
    before = os.umask(mask)
    yield mask
    os.umask(before)


def modes(*roots: Path) -> dict[str, set[int]]:
    """The modes of all folders and files that a run has made."""
    found: dict[str, set[int]] = {"folders": set(), "files": set()}
    for root in roots:
        for path in (root, *root.rglob("*")):
            mode = stat.S_IMODE(path.lstat().st_mode)
            found["folders" if path.is_dir() else "files"].add(mode)
    return found


def run(stage: Stage) -> None:
    """With results, a log of files, dead letters of rows and of a broken file."""
    stage.write(0)
    stage.write(1, sample(3))
    late = pl.DataFrame({"time": [0], "k": ["late"], "v": [1]}, schema=SCHEMA)
    stage.write(2, late)
    stage.write(3, b"not parquet")
    session = stage.session(on_late="dead-letter", on_bad="dead-letter")
    stage.run(session, dead_letter=stage.dead)
    kinds = {path.relative_to(stage.dead).parts[0] for path in stage.dead.rglob("*.*")}
    assert kinds == {"bad", "late"}
    assert list(stage.out.rglob("*.parquet"))
    assert list(stage.checkpoint.rglob("*.arrow"))


def test_what_a_run_leaves_is_for_its_owner_alone(tmp_path: Path, umask: int) -> None:
    stage = Stage(tmp_path)
    run(stage)
    made = modes(stage.checkpoint, stage.out, stage.dead)
    assert made == {"folders": {0o700}, "files": {0o600}}


def test_without_the_setting_the_umask_says_who_may_read(tmp_path: Path, umask: int) -> None:
    stage = Stage(tmp_path, settings={"private_files": False})
    run(stage)
    made = modes(stage.checkpoint, stage.out, stage.dead)
    assert made == {"folders": {0o777 & ~umask}, "files": {0o666 & ~umask}}


def test_a_folder_that_was_there_stays_as_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.out.mkdir()
    stage.out.chmod(0o755)
    run(stage)
    assert stat.S_IMODE(stage.out.stat().st_mode) == 0o755
    assert modes(*stage.out.iterdir()) == {"folders": {0o700}, "files": {0o600}}


def test_folders_of_state_are_flushed_like_those_of_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[Path] = set()
    fsync = os.fsync

    def record(handle: int) -> None:
        flushed.add(Path(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    stage = Stage(tmp_path, settings={"fsync": True})
    for number in range(3):
        stage.write(number)
    stage.run()
    checkpoint = stage.checkpoint
    inner = [
        checkpoint,
        checkpoint / "manifests",
        checkpoint / "state",
        checkpoint / "state/sums@1",
    ]
    # A folder lasts once the one that names it is flushed
    assert {checkpoint.parent, *inner, stage.out} <= flushed


def test_the_cache_of_a_checkpoint_at_a_uri_is_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(tmp_path))
    cache = cache_folder()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700
    assert cache_folder() == cache


def _open(path: Path) -> None:
    path.mkdir()
    path.chmod(0o755)


def _foreign(path: Path) -> None:
    path.mkdir(0o700)
    os.chown(path, 12345, 12345)


def _linked(path: Path) -> None:
    (path.parent / "elsewhere").mkdir(0o700)
    path.symlink_to(path.parent / "elsewhere")


def _replaceable(path: Path) -> None:
    path.parent.chmod(0o777)


CASES = {
    "others have access to it (mode 755)": _open,
    "it belongs to the user with the number 12345": _foreign,
    "it is not a folder": _linked,
    "anybody can replace it": _replaceable,
    "cannot be made": lambda path: path.write_text("in the way"),
}


@pytest.mark.parametrize("words", CASES)
def test_a_cache_that_others_can_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    above = tmp_path / "temporary"
    above.mkdir()
    if words.startswith("it belongs") and os.getuid():
        pytest.skip("only root can give a folder away")
    monkeypatch.setattr(folders.tempfile, "gettempdir", lambda: str(above))
    CASES[words](above / f"anabranch-cache-{os.getuid()}")
    with pytest.raises(StateError) as caught:
        cache_folder()
    assert words in str(caught.value)
    assert "TMPDIR" in str(caught.value)


def test_a_copy_that_was_swapped_in_the_cache_is_fetched_again(tmp_path: Path) -> None:
    """The results are those of the checkpoint itself, not of what somebody put into the cache."""
    stage = Stage(tmp_path)
    far = f"file://{stage.checkpoint}"
    for number in range(3):
        stage.write(number)
    stage.run(checkpoint=far)
    swapped = 0
    for cached in cache_folder().rglob("*-open-*.arrow"):
        if (stage.checkpoint / "state/sums@1" / cached.name).exists():
            cached.write_bytes(cached.read_bytes()[::-1])
            swapped += 1
    assert swapped
    stage.finish(checkpoint=far)
    assert stage.results() == stage.expected(*map(sample, range(3)))
