"""Mutated SQL, specification files, settings and source files are taken or refused cleanly."""

from __future__ import annotations

from anabranch.testing.nonsense import run_nonsense


def test_nonsense_is_refused_cleanly() -> None:
    report = run_nonsense(400)
    assert report.failed == []
    assert report.passed == 400
