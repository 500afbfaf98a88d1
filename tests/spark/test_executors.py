"""Executors that cannot run our tasks are told of in one line; the driver's interpreter is tried first."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

PROGRAM = Path(__file__).with_name("executors.py")


def run(folder: Path, python: str | None) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    if python is not None:
        environment["PYSPARK_PYTHON"] = python
    command = [sys.executable, str(PROGRAM), str(folder)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=500, check=True
    )
    return done.stdout.strip().splitlines()[-1]


def test_executors_get_the_interpreter_of_the_driver(tmp_path: Path) -> None:
    assert run(tmp_path, None) == f"done with {sys.executable}"


def test_executors_without_the_package_are_told_of_in_one_line(tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", symlinks=True)
    bare = tmp_path / "bare" / "bin" / "python"
    said = run(tmp_path, str(bare))
    for word in (
        f"{bare} on ",
        "No module named 'anabranch'",
        "Set PYSPARK_PYTHON",
        sys.executable,
    ):
        assert word in said


def test_an_interpreter_that_executors_do_not_have_is_told_of_in_one_line(tmp_path: Path) -> None:
    said = run(tmp_path, "/no/such/python")
    assert "there is no /no/such/python on an executor's machine. Set PYSPARK_PYTHON" in said
