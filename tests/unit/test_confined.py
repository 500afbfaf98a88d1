"""Processes in a control group: the kernel keeps the limit, and what happened is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from anabranch.bench.confined import Confinement, missing, run_confined

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"no control group: {missing()}")

MB = 1 << 20


def run(tmp_path: Path, program: str, limit: int = 256 * MB, seconds: float = 60) -> Confinement:
    command = [sys.executable, "-c", program]
    return run_confined(command, limit, lambda passed: passed > seconds, tmp_path / "noise")


def test_what_fits_is_done(tmp_path: Path) -> None:
    outcome = run(tmp_path, "import time; kept = bytearray(64 << 20); time.sleep(0.5)")
    assert (outcome.exit, outcome.killed) == ("done", 0)
    assert 64 * MB <= outcome.peak_bytes <= outcome.most_bytes <= 256 * MB


def test_what_does_not_fit_is_killed(tmp_path: Path) -> None:
    outcome = run(tmp_path, "kept = bytearray(512 << 20)")
    assert (outcome.exit, outcome.killed) == ("killed", 1)
    assert outcome.most_bytes <= 256 * MB


def test_a_child_is_in_the_group_too(tmp_path: Path) -> None:
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'bytearray(512 << 20)'])"
    assert run(tmp_path, child).killed == 1


def test_an_error_is_told(tmp_path: Path) -> None:
    outcome = run(tmp_path, "raise SystemExit('out of luck')")
    assert outcome.exit == "failed"
    assert "out of luck" in outcome.noise


def test_what_takes_too_long_is_given_up_with_all_it_started(tmp_path: Path) -> None:
    program = "import subprocess, time; subprocess.Popen(['sleep', '100']); time.sleep(100)"
    outcome = run(tmp_path, program, seconds=1)
    assert outcome.exit == "given up"
    assert outcome.seconds < 30
