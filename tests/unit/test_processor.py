"""Which processors NumPy is told to use with narrower words, and who is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch.processor import DISABLED, WIDE, WORKER, settle_numpy, sorts_slowly

ZEN_4 = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: avx2 avx512f\n\n"
    "processor\t: 1\n"
)


@pytest.fixture
def info(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Set and taken away, so that what a test sets is taken back
    monkeypatch.setenv(DISABLED, "")
    monkeypatch.delenv(DISABLED)
    (tmp_path / "cpuinfo").write_text(ZEN_4)
    return tmp_path / "cpuinfo"


def test_a_processor_that_sorts_slowly_with_wide_words(info: Path) -> None:
    settle_numpy(info)
    assert os.environ[DISABLED] == WIDE


@pytest.mark.parametrize(
    ("old", "new"),
    [("AuthenticAMD", "GenuineIntel"), (": 25", ": 26"), (" avx512f", "")],
)
def test_others_are_left_alone(info: Path, old: str, new: str) -> None:
    info.write_text(ZEN_4.replace(old, new))
    settle_numpy(info)
    assert DISABLED not in os.environ


def test_what_the_user_has_said_stays(info: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DISABLED, "AVX2")
    settle_numpy(info)
    assert os.environ[DISABLED] == "AVX2"


def test_without_a_file_nothing_is_said(tmp_path: Path) -> None:
    assert not sorts_slowly(tmp_path / "none")


def test_numpy_takes_the_words_without_complaint() -> None:
    environment = {**os.environ, DISABLED: WIDE, "PYTHONWARNINGS": "error::ImportWarning"}
    subprocess.run([sys.executable, "-c", "import numpy"], env=environment, check=True)


def test_importing_us_says_nothing_outside_of_workers() -> None:
    look = "import os, anabranch; print(os.environ.get('NPY_DISABLE_CPU_FEATURES', ''))"
    plain = {name: value for name, value in os.environ.items() if name not in (DISABLED, WORKER)}
    for more, told in (({}, ""), ({WORKER: "1"}, WIDE if sorts_slowly() else "")):
        command = [sys.executable, "-c", look]
        found = subprocess.run(
            command, env=plain | more, capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == told
