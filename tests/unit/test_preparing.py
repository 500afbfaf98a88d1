"""Splits that are prepared while the sites of the epoch before work: taken only if all came as foretold."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl
import pytest

from anabranch import Session
from anabranch.engine import transport
from anabranch.engine.orders import Orders
from anabranch.engine.preparing import as_splits_see
from anabranch.engine.run import Run
from anabranch.testing.sources import EpochSource

FLOWS = "SELECT tb, key, COUNT(*) AS n, SUM(v) AS total FROM s GROUP BY time / 10 AS tb, key"
ONLY_SITES = {
    "shelves", "idle", "cleaning_all", "resettling", "turns", "sampling", "released", "cleaned", "fetch",
    "faults", "reach",
}  # fmt: skip
"""What splits are not told: the state, and what only becomes of it."""


def frames(*times: list[int]) -> list[pl.DataFrame]:
    return [
        pl.DataFrame({"time": part, "key": [time % 3 for time in part], "v": part})
        for part in times
    ]


QUIET = {
    "fsync": False, "policy": "none", "combine_reduction": 1000.0, "site_memory_bytes": None,
    "skew_buffer": "none",
}  # fmt: skip
"""Nothing is decided between two epochs, however slow the machine is just now."""
STEADY = frames(*([10 * n + at for at in range(10)] for n in range(6)))


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, str]]:
    """Every split and site task that is run: which, of which epoch, in which attempt."""
    tasks: list[tuple[str, int, str]] = []
    split, site = transport.run_split, transport.run_site

    def noted_split(orders: Orders, task: int, *more: Any) -> Any:
        tasks.append(("split", orders.epoch, orders.attempt))
        return split(orders, task, *more)

    def noted_site(orders: Orders, *more: Any) -> Any:
        tasks.append(("site", orders.epoch, orders.attempt))
        return site(orders, *more)

    monkeypatch.setattr(transport, "run_split", noted_split)
    monkeypatch.setattr(transport, "run_site", noted_site)
    return tasks


def run_over(
    source: EpochSource, lateness: int = 0, **settings: Any
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    session = Session.in_process(2, {**QUIET, **settings})
    session.stream("s", source, ordered="time", lateness=lateness)
    session.query("flows", FLOWS)
    run = session.start(sinks={"flows": "memory"}, at_end="close")
    assert run.await_termination()
    return run.results("flows").sort("tb", "key"), run.recent_progress


def test_the_splits_of_an_epoch_are_run_before_the_sites_of_the_one_before(
    done: list[tuple[str, int, str]],
) -> None:
    run_over(EpochSource(STEADY))
    order = list(dict.fromkeys((kind, epoch) for kind, epoch, _ in done))
    assert order[:5] == [("split", 0), ("split", 1), ("site", 0), ("split", 2), ("site", 1)]
    # Each once: what was prepared is what was used
    assert len({attempt for _, epoch, attempt in done if epoch < 6}) == 6
    assert sum(kind == "split" and epoch < 6 for kind, epoch, _ in done) == 12


def test_a_setting_switches_it_off(done: list[tuple[str, int, str]]) -> None:
    run_over(EpochSource(STEADY), overlap=False)
    order = list(dict.fromkeys((kind, epoch) for kind, epoch, _ in done))
    assert order[:4] == [("split", 0), ("site", 0), ("split", 1), ("site", 1)]


def test_rows_are_late_by_the_newest_time_of_the_epoch_before() -> None:
    """Known only when its splits have ended: a preparation that began with older times would keep them."""
    source = EpochSource(frames([1, 2, 3], [50, 51, 52], [20, 45, 53], [49, 60], [41, 70]))
    apart, slowly = run_over(source, lateness=4, overlap=False)
    together, overlapped = run_over(source, lateness=4)
    assert together.equals(apart)
    for told in (slowly, overlapped):
        late = [one["sources"][0]["customMetrics"]["lateRows"] for one in told]
        assert late[:5] == [0, 0, 2, 0, 1]


def test_another_map_in_between_makes_splits_be_run_anew(done: list[tuple[str, int, str]]) -> None:
    session = Session.in_process(2, QUIET)
    session.stream("s", EpochSource(STEADY), ordered="time")
    session.query("flows", FLOWS)
    runs, there = list[Run](), Event()

    def step(name: str, epoch: int) -> None:
        if (name, epoch) == ("before-commit", 2):
            assert there.wait(60)
            before = runs[0].partition_map("flows@1")
            runs[0].repartition("flows@1", before.respread([1]))

    runs.append(session.start(sinks={"flows": "memory"}, at_end="close", on_step=step))
    there.set()
    assert runs[0].await_termination()
    attempts = {
        epoch: [a for kind, e, a in done if (kind, e) == ("split", epoch)] for epoch in range(6)
    }
    assert len({*attempts[3]}) == 2, "the first preparation was for the old map"
    assert all(len({*attempts[epoch]}) == 1 for epoch in (0, 1, 2, 4, 5))
    expected, _ = run_over(EpochSource(STEADY), overlap=False)
    assert runs[0].results("flows").sort("tb", "key").equals(expected)


def test_what_a_preparation_in_vain_has_staged_is_taken_away(tmp_path: Path) -> None:
    """Rows that pass by without state are written by splits: those of a wrong guess must not stay."""
    data, results = tmp_path / "data", tmp_path / "results"
    data.mkdir()
    for number, rows in enumerate(STEADY):
        rows.write_parquet(data / f"{number}0.parquet")
    session = Session.in_process(2, {**QUIET, "max_files_per_epoch": 1})
    session.stream("s", path=data, ordered="time", file_order="name")
    session.query("flows", FLOWS)
    session.query("plain", "SELECT time, v FROM s")
    hidden: list[int] = []

    def step(name: str, epoch: int) -> None:
        if name == "before-commit":
            hidden.append(len([*results.glob("_epoch=*")]))
        if (name, epoch) == ("before-commit", 2):
            # Another file in the place of the one that is prepared
            replaced = STEADY[3].with_columns(v=pl.col("v") + 1000)
            replaced.write_parquet(data / "_new")
            (data / "_new").rename(data / "30.parquet")

    run = session.start(
        sinks={"flows": "memory", "plain": results}, checkpoint=tmp_path / "checkpoint",
        trigger="available-now", at_end="close", on_step=step,
    )  # fmt: skip
    assert run.await_termination()
    # The epoch under way, and the next one
    assert hidden[:3] == [2, 2, 2]
    assert not [*results.glob("_epoch=*")]
    found = pl.read_parquet(results / "**/*.parquet").sort("time")
    assert found.height == 60
    assert found.filter(pl.col("v") >= 1000)["time"].to_list() == [*range(30, 40)]


def test_splits_see_nothing_of_what_only_sites_are_told() -> None:
    """A split that asked for state would not get it: so what it makes cannot depend on it."""
    assert {field.name for field in fields(Orders)} >= ONLY_SITES
    seen: list[Orders] = []
    right = transport.run_split

    def noted(orders: Orders, task: int, *more: Any) -> Any:
        seen.append(orders)
        return right(orders, task, *more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transport, "run_split", noted)
        run_over(EpochSource(STEADY))
    assert all(not orders.shelves for orders in seen)
    assert all(as_splits_see(orders) == orders for orders in seen)
