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


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter without any library."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def said(bare: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What runs end with: with the bare interpreter, with one that is not there, with none chosen."""
    command = [sys.executable, str(PROGRAM), str(tmp_path_factory.mktemp("out"))]
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    done = subprocess.run(
        [*command, str(bare), "/no/such/python"], env=environment, capture_output=True, text=True,
        timeout=500, check=True,
    )  # fmt: skip
    return done.stdout.strip().splitlines()[-3:]


def test_executors_without_libraries_are_told_of_in_one_line(said: list[str], bare: Path) -> None:
    for word in (
        f"{bare} on ",
        "No module named '",
        "`anabranch package FILE.tar.gz`",
        "Set PYSPARK_PYTHON",
        sys.executable,
    ):
        assert word in said[0]


def test_an_interpreter_that_executors_do_not_have_is_told_of_in_one_line(said: list[str]) -> None:
    assert "there is no /no/such/python on an executor's machine. Set PYSPARK_PYTHON" in said[1]


def test_executors_get_the_interpreter_of_the_driver(said: list[str]) -> None:
    assert said[2] == f"done with {sys.executable}"
