"""`bench hotjoin` on few rows: what its figures say, and that wrong results make it unsound."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from anabranch.bench import hotjoin
from anabranch.bench.report import show
from anabranch.observe.steps import silent


def test_figures_of_every_size_of_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hotjoin, "ROWS", 10_000)
    result = hotjoin.run_hotjoin(True, silent())
    found = result.plain()
    assert result.sound
    assert found["equal"] is True
    assert found["rows"] == 30_000
    assert found["pairs_ratio"] == 1
    assert found["spread"] >= 1
    assert found["duckdb_seconds"] > 0
    assert list(found["epochs"]) == ["1000", "10000", "30000"]
    assert all(each["pairs"] == found["pairs_within_bound"] for each in found["epochs"].values())
    assert {bar.name: bar.limit for bar in result.bars} == {"spread": 1.3, "pairs_ratio": 1.2}
    console = Console(width=200, record=True)
    show(result, console)
    assert "epochs of 30,000 rows" in console.export_text()


def test_wrong_results_are_not_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hotjoin, "ROWS", 10_000)
    right = hotjoin._run

    def wrong(folder: Any, files: int, name: str) -> dict[str, Any]:
        run = right(folder, files, name)
        return run | {"results": {"rows": run["results"]["rows"], "checksum": "0"}}

    monkeypatch.setattr(hotjoin, "_run", wrong)
    assert not hotjoin.run_hotjoin(True, silent()).sound
