"""`bench reorder` on few rows: every shape gives what DuckDB gives, and wrong results make it unsound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest

from anabranch.bench import matches, reorder
from anabranch.bench.shape_runs import expected_digest
from anabranch.observe.steps import silent


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reorder, "ROWS", 400)
    monkeypatch.setattr(reorder, "KEYS", 10)
    monkeypatch.setattr(reorder, "EPOCHS", (1, 3, 3))
    monkeypatch.setattr(reorder, "SETTLING", 1)
    monkeypatch.setattr(matches, "ROWS", 1200)
    monkeypatch.setattr(matches, "EPOCHS", 3)
    monkeypatch.setattr(matches, "SETTLING", 1)
    monkeypatch.setattr(matches, "MATCHES", (100,))


@pytest.mark.usefixtures("few")
def test_the_figures_of_reorder() -> None:
    result = reorder.run_reorder(True, silent())
    assert result.sound
    assert {*result.figures["runs"]} == {*reorder.TREES, "adaptive"}
    assert result.figures["results"] > 0
    for run in result.figures["runs"].values():
        assert min(run["halves"]) > 0
        assert min(run["pairs_per_row"]) > 0
        assert max(run["settled_after"]) <= 3
    assert all(
        run["settled_after"] == [0, 0] for run in map(result.figures["runs"].get, reorder.TREES)
    )
    assert [bar.name for bar in result.bars] == [
        "over_best", "over_worst", "matches.100.time_over_best",
    ]  # fmt: skip
    many = result.figures["matches"]["100"]
    assert {*many["runs"]} == {*reorder.TREES, "adaptive"}
    assert min(run["state_bytes"] for run in many["runs"].values()) > 0
    assert any("100 matches" in line for line in reorder.reorder_lines(result.figures))


@pytest.mark.usefixtures("few")
def test_a_shape_that_gives_other_rows_makes_it_unsound(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_is(digest: tuple[int, ...]) -> Callable[..., dict[str, tuple[int, ...]]]:
        def run(
            frames: dict[str, list[pl.DataFrame]], sql: str, shapes: Sequence[str], *_: Any
        ) -> dict[str, tuple[int, ...]]:
            known = expected_digest(frames, sql)
            return {shape: digest if shape == "adaptive" else known for shape in shapes}

        return run

    def figures(digest: tuple[int, ...]) -> dict[str, Any]:
        return {"digest": digest, "rows_per_s": 1, "halves": [1, 1], "settled_after": [0, 0]}

    monkeypatch.setattr(reorder, "_figures", figures)
    monkeypatch.setattr(reorder, "by_matches", lambda quick, steps: {})
    right = expected_digest(reorder._frames(200), reorder.SQL)
    for digest, sound in (right, True), ((0,), False):
        monkeypatch.setattr(reorder, "run_in_turn", one_is(digest))
        assert reorder.run_reorder(True, silent()).sound == sound
