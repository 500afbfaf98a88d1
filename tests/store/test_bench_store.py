"""`bench store` on few epochs: what it counts, and that it finds results equal."""

from __future__ import annotations

import pytest

from anabranch.bench import store
from anabranch.bench.store import per_epoch, run_store
from anabranch.observe.steps import silent
from anabranch.testing.wire import Request


def test_the_figures_of_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "EPOCHS", 48)
    monkeypatch.setattr(store, "PUTS", 5)
    result = run_store(True, silent())
    assert result.sound
    assert result.figures["equal"]
    assert result.figures["two_drivers"] == {"entries": 5, "with_one_winner": 5}
    assert result.figures["requests_per_epoch"] < 40
    assert {*result.figures["by_kind"]} >= {"GET", "PUT", "LIST"}


def test_requests_are_counted_from_entry_to_entry() -> None:
    read, entry = Request("GET", "/b/in/1", False), Request("PUT", "/b/ck/manifests/1.json", True)
    assert [len(one) for one in per_epoch([read, entry, read, read, entry, read])] == [2, 3]
