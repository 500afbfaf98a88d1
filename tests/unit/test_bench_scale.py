"""`bench scale`: what its figures are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anabranch.bench import many_files, scale
from anabranch.bench.result import Result
from anabranch.bench.scale import run_scale, scale_lines
from anabranch.observe.steps import silent
from anabranch.session import Session


def test_files_that_come_after_others_are_timed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_files, "TIMED", 3)
    session = Session.in_process(2)
    milliseconds, right = many_files.time_files(session, tmp_path, 5, 100)
    assert right
    assert milliseconds > 0


def test_the_figures_of_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    spread = {"median": 10.0, "least": 9.0, "most": 11.0}
    cores = {
        name: {"1": spread, "2": spread, "speedup": speedup}
        for name, speedup in (("w1", 1.9), ("w2", 1.6))
    }
    grown = {
        "growth": 1.1, "fastest_growth": 1.2, "delta_rows": 5,
        "stages": [{"state_rows": 10, "median_ms": 5.0}],
    }  # fmt: skip
    shared = {1: 50.0, 10: 60.0, 100: 149.0}
    seen = {20: 100.0, 10_000: 120.0}

    def run_shared(count: int, *others: Any) -> tuple[dict[str, float], bool]:
        return {"epoch_ms": shared[count], "rows_per_s": 1.0}, True

    class Nothing:
        def stop(self) -> None: ...

    monkeypatch.setattr(scale, "_cores", lambda *given: (cores, True))
    monkeypatch.setattr(scale, "write_numbers", lambda *given: {})
    monkeypatch.setattr(scale, "run_shared", run_shared)
    monkeypatch.setattr(
        scale, "time_files", lambda session, folder, count, rows: (seen[count], True)
    )
    monkeypatch.setattr(scale.Session, "local", lambda **given: Nothing())
    monkeypatch.setattr(scale, "run_state_growth", lambda *given: Result("state-growth", grown, ()))
    monkeypatch.setattr(scale, "time_of_driver", lambda *given: {"seconds": 0.01})
    result = run_scale(False, silent())
    figures = result.figures
    assert figures["speedup_2_cores"] == 1.6, "the lesser of both"
    assert (figures["ms_per_query"], figures["query_cost"]) == (1.0, 0.02)
    assert figures["files_growth"] == 1.2
    assert {*figures["driver"]} == {"8", "64", "256"}
    assert [bar.met for bar in result.bars] == [False, True, False]
    assert result.sound
    assert len(list(scale_lines(figures))) == 2 + 1 + 3 + 1 + 2 + 3
