"""Mutated SQL, specification files, settings and source files are taken or refused cleanly."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from anabranch import Session, col, lit
from anabranch.engine.run import Run
from anabranch.errors import LanguageError, RunError
from anabranch.testing import nonsense
from anabranch.testing.nonsense import run_case, run_nonsense


def test_nonsense_is_refused_cleanly(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []
    waiting = Run.await_termination

    def await_termination(self: Run, timeout: float | None = None) -> bool:
        ended.append(waiting(self, timeout))
        return ended[-1]

    monkeypatch.setattr(Run, "await_termination", await_termination)
    report = run_nonsense(400)
    assert report.failed == []
    assert report.passed == 400
    assert sum(ended) >= 10  # of all kinds that can be run, some are


def test_a_case_that_stands_still_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of the processor does not show it."""
    monkeypatch.setattr(nonsense, "MOST_WAITED", 0.2)
    asleep = lambda chance, folder: time.sleep(0.4)  # noqa: E731
    monkeypatch.setattr(nonsense, "KINDS", {"asleep": asleep})
    fault = run_case(0, tmp_path)
    assert fault is not None
    assert "waited 0.4 s for nothing" in fault["problem"]


def test_a_run_that_does_not_end_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nonsense, "LONGEST_RUN", 0.0)
    monkeypatch.setattr(nonsense, "mutate", lambda chance, text: text)
    monkeypatch.setattr(nonsense, "KINDS", {"query": nonsense._query})
    fault = run_case(0, tmp_path)
    assert fault is not None
    assert "the run has not ended" in fault["problem"]


def test_a_run_that_breaks_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of ours around one that nobody raised on purpose is none that was meant."""

    def breaks(chance: random.Random, folder: Path) -> None:
        raise RunError("The run failed: KeyError('x')")

    monkeypatch.setattr(nonsense, "KINDS", {"breaks": breaks})
    fault = run_case(0, tmp_path)
    assert fault is not None
    assert "KeyError" in fault["problem"]


@pytest.mark.parametrize("kind", ["query", "yaml", "sql", "file"])
def test_what_is_right_is_run(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []
    starting = Session.start
    monkeypatch.setattr(Session, "start", lambda *a, **b: starts.append(1) or starting(*a, **b))
    monkeypatch.setattr(nonsense, "mutate", lambda chance, text: text)
    monkeypatch.setattr(nonsense, "KINDS", {kind: nonsense.KINDS[kind]})
    assert [run_case(case, tmp_path) for case in range(20)] == [None] * 20
    assert len(starts) > (0 if kind == "file" else 15)


@pytest.mark.parametrize(
    "text", ["SELECT time, 'a\ud800' AS s FROM t", "SELECT time AS \ud800 FROM t"]
)
def test_what_is_no_unicode_is_refused(text: str) -> None:
    session = Session.in_process(sites=1)
    session.stream("t", generator="packets", rows=10, ordered="time")
    with pytest.raises(LanguageError, match=r"\\ud800 is half of a letter"):
        session.query("q", text)
    with pytest.raises(LanguageError, match="a text of Unicode"):
        lit("\ud800")
    with pytest.raises(LanguageError, match="it is no Unicode"):
        session.from_stream("t").select(col("time").alias("\ud800"))
