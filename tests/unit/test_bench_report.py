"""Benchmarks for people: each one's saved figures can be shown, and bars and lines are there."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from anabranch.bench.every import BENCHMARKS
from anabranch.bench.report import LINES, show
from anabranch.bench.result import Result
from anabranch.observe.bars import Bar

UNSAVED = (
    "overflow", "idle", "topn", "reorder", "observe", "kafka", "store", "timeline", "zipf", "dataframe",
    "start", "nexmark", "scale",
)  # fmt: skip
"""Those whose figures are not kept yet."""
SAVED = Path(__file__).parents[2] / "benchmarks" / "results"


def test_every_benchmark_can_be_shown() -> None:
    assert {*LINES} == {*BENCHMARKS}


@pytest.mark.parametrize("name", [name for name in BENCHMARKS if name not in UNSAVED])
def test_figures_are_shown(name: str) -> None:
    saved = json.loads((SAVED / f"{name}.json").read_text())
    bars = tuple(Bar(bar["name"], bar["value"], *_limit(bar["bar"])) for bar in saved.pop("bars"))
    told = StringIO()
    circumstances = {key: saved[key] for key in ("loadavg", "cores")}
    show(Result(name, saved, bars, circumstances=circumstances), Console(file=told, width=160))
    text = told.getvalue()
    assert f"bench {name}" in text
    assert all(bar.name in text for bar in bars)
    after_table = text[text.rindex("└") :].splitlines()[1:]
    assert len(after_table) >= 2, "nothing is said beside the bars"


def _limit(told: str) -> tuple[str, float]:
    relation, limit = told.split(" ")
    return relation, float(limit)
