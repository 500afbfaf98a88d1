"""Spark's classes kept in a file: where it is, when it is mapped, and that a damaged one does no harm."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.engine.class_archive import CACHE, MAPPED, archive_options, archive_path

SMALL = """
import sys
from anabranch.session import Session
session = Session.local(1)
session.stream("calls", generator="calls", rows=1000, seed=7, ordered="time")
session.query("many", "SELECT tb, COUNT(*) AS n FROM calls GROUP BY time/60 AS tb")
session.start(sinks={"many": sys.argv[1]}, trigger="available-now", at_end="close").await_termination()
session.stop()
"""


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the place of the archive."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv(CACHE, str(tmp_path))
    path = archive_path()
    assert path is not None
    path.write_bytes(b"classes")
    return path


def test_a_file_that_is_there_is_mapped(kept: Path) -> None:
    assert f"{MAPPED}{kept}" in archive_options()
    kept.unlink()
    assert archive_options() == ""


def test_whoever_says_what_to_map_is_obeyed(kept: Path) -> None:
    assert archive_options("-Dx=y")
    assert archive_options("-Xshare:off") == ""
    assert archive_options(f"{MAPPED}/other.jsa") == ""


def test_another_java_has_a_file_of_its_own(kept: Path) -> None:
    (Path(os.environ["JAVA_HOME"]) / "bin" / "java").write_bytes(b"newer")
    assert archive_path() != kept


def test_a_folder_that_the_jvm_cannot_be_told_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Path
) -> None:
    monkeypatch.setenv(CACHE, str(tmp_path / "with space"))
    assert archive_path() is None
    assert archive_options() == ""


@pytest.mark.soak
def test_a_kept_file_is_mapped_and_a_damaged_one_passed_over(tmp_path: Path) -> None:
    given = {**os.environ, CACHE: str(tmp_path)}
    command = [Path(sys.executable).with_name("anabranch"), "warm"]
    told = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    (path,) = tmp_path.glob("*.jsa")
    assert str(path) in told.stdout
    assert "warning" not in told.stdout + told.stderr
    damaged = path.read_bytes()[:-1000]
    for number, contents in enumerate((None, damaged, b"")):
        if contents is not None:
            path.write_bytes(contents)
        out = tmp_path / f"out{number}"
        run = [sys.executable, "-c", SMALL, str(out)]
        told = subprocess.run(run, env=given, capture_output=True, text=True, check=True)
        assert [*out.glob("epoch=*")]
        assert told.stderr == ""
