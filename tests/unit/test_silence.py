"""A run that waits for input says so, once, and where it looks for it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from anabranch import Session
from anabranch.observe import silence
from anabranch.observe.silence import FIRST_SECONDS, LATER_SECONDS, Silence
from anabranch.observe.watch import LineView, watch

WAITING = {"message": "Waiting for data to arrive", "isDataAvailable": False}


def test_a_long_wait_is_told_with_where_input_comes_from() -> None:
    now = [0.0]
    waits = Silence({"s": "csv files of /in"}, lambda: now[0])
    now[0] = FIRST_SECONDS - 1
    assert waits.told(WAITING) == ""
    now[0] = FIRST_SECONDS
    told = waits.told(WAITING)
    assert told == (
        "Waiting for data to arrive: nothing new for 10 s. Read are s from csv files of /in. Ctrl-C ends "
        "the run."
    )
    now[0] += 5
    assert waits.told(WAITING) == told, "a line that is said already"
    waits.broken()
    now[0] += FIRST_SECONDS
    assert waits.told(WAITING) == "", "between files silence is usual"
    now[0] += LATER_SECONDS
    assert "nothing new for 600 s" in waits.told(WAITING)


def test_long_work_is_no_wait() -> None:
    now = [0.0]
    waits = Silence({"s": "csv files of /in"}, lambda: now[0])
    for second in range(100):
        now[0] = float(second)
        assert waits.told({"message": "Running epoch 0", "isDataAvailable": True}) == ""
    assert waits.told(WAITING) == ""


def test_lines_of_a_run_without_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "FIRST_SECONDS", 0.1)
    (tmp_path / "in").mkdir()
    session = Session.in_process()
    session.stream("s", path=tmp_path / "in", ordered="t", format="csv", schema={"t": "int64"})
    session.query("q", "SELECT t FROM s")
    run = session.start(sinks={"q": "memory"}, trigger="continuous")
    lines: list[str] = []
    interrupted = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        interrupted.set()

    watch(run, LineView(write), interrupted)
    assert lines[0].startswith("Waiting for data to arrive: nothing new for")
    assert f"Read are s from csv files of {tmp_path}/in." in lines[0]
