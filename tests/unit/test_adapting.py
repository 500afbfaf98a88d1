"""The handle of a run that adapts: what it refuses and in which words, what it remembers, what stays still.

Whether results stay right is for `tests/chaos/test_adaptation.py`.
"""

from __future__ import annotations

import doctest
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
import pytest

from anabranch import Query, Session, col, count, sum_
from anabranch.control.governor import Governor
from anabranch.engine.loop import Loop
from anabranch.engine.orders import Orders
from anabranch.engine.run import Run
from anabranch.errors import PlanningError, RunError, SettingsError
from anabranch.settings import Settings
from anabranch.testing import chaos, faults
from anabranch.testing.faults import (
    Schedule,
    killed_worker,
    random_schedule,
    slow,
    small_memory,
    stalled,
)
from anabranch.testing.oracle import Oracle
from anabranch.testing.sources import EpochSource

EPOCHS, ROWS = 8, 120
FRAMES = [
    pl.DataFrame({"time": [epoch * 10 + row % 10 for row in range(ROWS)], "k": range(ROWS)})
    for epoch in range(EPOCHS)
]
SETTINGS = {"fsync": False, "partitions_per_site": 4, "least_gain_seconds": 0.0}
Action = Callable[[Run], Any]


def flows_of(rows: Query) -> Query:
    return rows.group_by((col("time") // 20).alias("tb"), "k").agg(
        count().alias("n"), sum_("time").alias("total")
    )


class Trialled:
    """Runs one query over eight epochs, with something to do at the beginning of some of them."""

    def __init__(self, checkpoint: Path, sites: int = 2, **settings: Any) -> None:
        self.checkpoint, self.sites = checkpoint, sites
        self.settings = {**SETTINGS, **settings}
        self.rows = pl.DataFrame()
        self.sites_seen: list[tuple[int, ...]] = []

    def run(
        self, actions: dict[int, Action] | None = None, *, step: str = "begin", until: int = EPOCHS,
        burdens: Any = None, at_end: str = "keep",
    ) -> Run:  # fmt: skip
        session = Session.in_process(self.sites, self.settings)
        rows = session.stream("rows", EpochSource(FRAMES), ordered="time", lateness=20)
        self.query = session.query("flows", flows_of(rows))
        ready, started = threading.Event(), []

        def on_step(at: str, epoch: int) -> None:
            ready.wait()
            (run,) = started
            if at == step and actions and epoch in actions:
                actions[epoch](run)
            if at == "before-tasks":
                self.sites_seen.append(run.partition_map("flows@1").sites)
            if at == "after-publish" and epoch == until:
                run.stop()

        run = session.start(
            sinks={"flows": "memory"}, checkpoint=self.checkpoint, on_step=on_step, burdens=burdens,
            at_end=at_end,
        )  # fmt: skip
        started.append(run)
        ready.set()
        run.await_termination()
        self.rows = run.results("flows")
        return run

    def check(self) -> None:
        oracle = Oracle({"flows": self.query}, {"rows": FRAMES}, {"rows": 20})
        oracle.check("flows", self.rows)


@pytest.fixture
def trialled(tmp_path: Path) -> Trialled:
    return Trialled(tmp_path / "checkpoint", policy="none")


def refused(trialled: Trialled, action: Action, *words: str) -> None:
    """The handle refuses it with these words, and the run goes on as if it had not been asked."""
    seen: list[str] = []

    def ask(run: Run) -> None:
        before, pins = run.partition_map("flows@1"), run.pins
        with pytest.raises(RunError) as caught:
            action(run)
        seen.append(str(caught.value))
        assert run.partition_map("flows@1") == before
        assert run.pins == pins

    trialled.run({3: ask}, at_end="close")
    for word in words:
        assert word in seen[0], seen[0]
    trialled.check()


# -- what is refused --------------------------------------------------------------------------------


def test_a_site_that_does_not_exist(trialled: Trialled) -> None:
    refused(
        trialled, lambda run: run.pin("flows@1", 0, 2), "There is no site 2", "the sites 0 to 1"
    )


def test_a_site_before_the_first(trialled: Trialled) -> None:
    refused(trialled, lambda run: run.move("flows@1", 0, -1), "There is no site -1")


def test_a_partition_that_does_not_exist(trialled: Trialled) -> None:
    refused(
        trialled,
        lambda run: run.move("flows@1", 65, 1),
        "no partition that begins at slot 65",
        "the nearest begins at 64",
        "run.partition_map('flows@1').starts",
    )


def test_a_slot_that_does_not_exist(trialled: Trialled) -> None:
    refused(trialled, lambda run: run.move("flows@1", 10**6, 1), "begins at slot 1000000")


def test_a_subquery_that_does_not_exist(trialled: Trialled) -> None:
    refused(trialled, lambda run: run.pin("flow", 0, 1), "no subquery 'flow'", "flows@1")


def test_more_sites_than_partitions(trialled: Trialled) -> None:
    refused(
        trialled,
        lambda run: run.set_sites(9),
        "9 sites",
        "only 8 partitions",
        "partitions_per_site",
    )


@pytest.mark.parametrize("sites", [0, -3])
def test_no_sites(trialled: Trialled, sites: int) -> None:
    refused(trialled, lambda run: run.set_sites(sites), "at least one site", str(sites))


def test_unpin_what_is_not_pinned(trialled: Trialled) -> None:
    refused(trialled, lambda run: run.unpin("flows@1", 64), "Partition 64", "not pinned")


def test_a_map_for_more_sites(trialled: Trialled) -> None:
    refused(
        trialled,
        lambda run: run.repartition("flows@1", run.partition_map("flows@1").moved({0: 5})),
        "at most 2 sites",
    )


@pytest.mark.parametrize("how", ["move", "map", "merge", "sites"])
def test_what_contradicts_a_pin(trialled: Trialled, how: str) -> None:
    ask: dict[str, Action] = {
        "move": lambda run: run.move("flows@1", 64, 0),
        "map": lambda run: run.repartition("flows@1", run.partition_map("flows@1").moved({64: 0})),
        "merge": lambda run: run.repartition("flows@1", run.partition_map("flows@1").merged(64)),
        "sites": lambda run: run.set_sites(1),
    }

    def pin_and_ask(run: Run) -> None:
        run.pin("flows@1", 64, 1)
        before = run.partition_map("flows@1")
        with pytest.raises(RunError, match=r"pinned\s+to site 1.*unpin"):
            ask[how](run)
        assert run.partition_map("flows@1") == before
        run.unpin("flows@1", 64)
        ask[how](run)

    trialled.run({2: pin_and_ask}, at_end="close")
    trialled.check()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"policy": "memory", "site_memory_bytes": None}, ["site_memory_bytes"]),
        ({"site_memory_bytes": 0}, ["at least 1"]),
        ({"imbalance_threshold": 1.5}, ["self_tuning", "imbalance_threshold"]),
        (
            {"self_tuning": False, "least_collection_seconds": 60.0},
            ["least_collection_seconds", "most_collection_seconds"],
        ),
        ({"policy": "heat"}, ["hybrid, load, memory, lazy-disk, active-disk, none"]),
        ({"moved_bytes_per_epoch": 0}, ["at least 1"]),
        ({"least_gain_seconds": -1.0}, ["at least 0"]),
    ],
    ids=str,
)
def test_settings_that_contradict_each_other(settings: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(**settings)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: slow(-1), "site -1"),
        (lambda: slow("a"), "site 'a'"),
        (lambda: slow(0, slowdown=0.5), "slowdown 0.5"),
        (lambda: slow(0, seconds_per_row=-1e-3), "seconds_per_row"),
        (lambda: slow(0, from_epoch=5, until=5), "never be felt"),
        (lambda: stalled(0, epoch=1, seconds=-1), "seconds -1"),
        (lambda: small_memory(0, bytes=0), "at least 1"),
        (lambda: killed_worker(0, epoch=-1), "epoch -1"),
        (lambda: Schedule([{0: 1}]), "made of slow()"),
        (lambda: random_schedule(0, sites=0, epochs=3), "sites 0"),
        (lambda: random_schedule(0, sites=1, epochs=0), "epochs 0"),
    ],
)
def test_faults_that_make_no_sense(make: Callable[[], Any], word: str) -> None:
    with pytest.raises(SettingsError) as caught:
        make()
    assert word in str(caught.value)


@pytest.mark.parametrize("module", [faults, chaos], ids=lambda module: module.__name__)
def test_examples_in_the_text_are_right(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert tried > 0
    assert failed == 0


# -- what moves, and what does not ------------------------------------------------------------------


def slow_site(tmp_path: Path, **settings: Any) -> tuple[Trialled, Run]:
    trialled = Trialled(tmp_path / "checkpoint", **settings)
    load = Schedule([slow(0, seconds_per_row=0.003)])
    return trialled, trialled.run(burdens=load, at_end="close")


def test_a_slow_site_is_relieved(tmp_path: Path) -> None:
    trialled, run = slow_site(tmp_path)
    trialled.check()
    first, last = trialled.sites_seen[0], trialled.sites_seen[-1]
    assert last.count(0) < first.count(0)
    taken = [line for line in run.history() if line["accepted"] and line["kind"] == "move"]
    assert taken
    # What comes later may be a correction
    assert (taken[0]["source"], taken[0]["target"]) == (0, 1)
    assert "load: site 0" in taken[0]["cause"]
    assert all(line["seconds"] > 0 for line in taken)
    assert any(line["bytes"] > 0 for line in taken)
    effect = taken[0]["effect"]
    assert effect["imbalanceBefore"] > 1.2
    assert effect["imbalanceAfter"] >= 1


def test_nothing_moves_by_itself_with_policy_none(tmp_path: Path) -> None:
    trialled, run = slow_site(tmp_path, policy="none")
    trialled.check()
    assert len({*trialled.sites_seen}) == 1
    # Whether rows are put together before they are sent goes by measured time, and moves nothing
    assert {line["kind"] for line in run.history()} <= {"combine"}


@pytest.mark.parametrize("sites", [(0,), (0, 1)], ids=["one", "all"])
def test_all_sites_are_slow(tmp_path: Path, sites: tuple[int, ...]) -> None:
    """Then nobody is better off elsewhere: nothing moves, and the run goes on. With one it would."""
    trialled = Trialled(tmp_path / "checkpoint", split_partitions=False, least_gain_seconds=0.1)
    load = Schedule([stalled(site, epoch, 0.3) for site in sites for epoch in range(3)])
    run = trialled.run(burdens=load, at_end="close")
    trialled.check()
    taken = [line for line in run.history() if line["accepted"]]
    assert bool(taken) == (len(sites) == 1), taken
    assert (len({*trialled.sites_seen}) > 1) == (len(sites) == 1)


def test_rebalance_returns_its_decisions(tmp_path: Path) -> None:
    """Even where nothing would move by itself for so small a gain."""
    trialled = Trialled(tmp_path / "checkpoint", least_gain_seconds=1000.0)
    made: list[dict[str, Any]] = []
    load = Schedule([slow(0, seconds_per_row=0.003)])
    run = trialled.run({4: lambda run: made.extend(run.rebalance())}, burdens=load)
    moves = [line for line in made if line["kind"] == "move" and line["accepted"]]
    assert moves
    assert {(line["source"], line["target"]) for line in moves} == {(0, 1)}
    # Without the effect, which is measured later
    known = [(line["epoch"], line["action"]) for line in run.history()]
    assert [(line["epoch"], line["action"]) for line in made] == known
    assert trialled.sites_seen[4] != trialled.sites_seen[3]


def test_moves_by_hand_are_in_the_history(trialled: Trialled) -> None:
    run = trialled.run({2: lambda run: run.move("flows@1", 64, 1)})
    (line,) = run.history()
    assert line["action"] == "move flows@1/64 from site 0 to 1"
    assert (line["epoch"], line["cause"], line["accepted"]) == (1, "asked for", True)
    assert {*line} >= {"bytes", "seconds", "effect", "reason"}
    assert trialled.sites_seen[1][1] == 0
    assert trialled.sites_seen[2][1] == 1


# -- pins -------------------------------------------------------------------------------------------


def test_pins_survive_a_restart(trialled: Trialled) -> None:
    trialled.run({1: lambda run: run.pin("flows@1", 64, 1)}, until=3)
    seen: list[Any] = []
    run = trialled.run({4: lambda run: seen.append(run.pins)}, until=5)
    assert seen == [{"flows@1": {64: 1}}]
    assert run.partition_map("flows@1").sites[1] == 1
    # On one site there is no site 1; when there is again, the partition goes back to it
    trialled.sites = 1
    assert trialled.run(until=6).partition_map("flows@1").sites[1] == 0
    trialled.sites = 3
    run = trialled.run({7: lambda run: run.unpin("flows@1", 64)})
    assert trialled.sites_seen[-1][1] == 1
    assert run.pins == {}


@pytest.mark.parametrize("step", ["before-tasks", "before-commit"])
def test_a_pin_made_while_an_epoch_runs_survives_a_crash(trialled: Trialled, step: str) -> None:
    """The manifest has the pin, but the map that the epoch began with."""
    trialled.run({2: lambda run: run.pin("flows@1", 64, 1)}, step=step, until=2)
    run = trialled.run(until=3)
    assert run.pins == {"flows@1": {64: 1}}
    assert trialled.sites_seen[-1][1] == 1


def test_pins_hold_when_the_number_of_sites_changes(trialled: Trialled) -> None:
    """All on one site, most of them pinned: others move to the new sites."""

    def pin_most(run: Run) -> None:
        for start in run.partition_map("flows@1").starts[:-2]:
            run.pin("flows@1", start, 0)
        run.set_sites(5)

    trialled.run({2: pin_most}, at_end="close")
    trialled.check()
    assert trialled.sites_seen[2][:-2] == (0,) * 6


def test_a_hot_pinned_partition_is_not_cut(tmp_path: Path) -> None:
    """Half of it could leave."""
    trialled = Trialled(tmp_path / "checkpoint", partitions_per_site=1)
    run = trialled.run({0: lambda run: [run.pin("flows@1", at, 0) for at in (0, 64)]})
    assert trialled.sites_seen[-1] == (0, 0)
    assert not [line for line in run.history() if line["kind"] == "split"]


# -- other numbers of sites -------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["begin", "before-tasks", "before-commit", "after-publish"])
def test_sites_change_at_any_step(tmp_path: Path, step: str) -> None:
    trialled = Trialled(tmp_path / "checkpoint")
    changes = {epoch: 1 + epoch % 5 for epoch in range(EPOCHS)}
    actions: dict[int, Action] = {
        epoch: lambda run, sites=sites: run.set_sites(sites) for epoch, sites in changes.items()
    }
    run = trialled.run(actions, step=step, at_end="close")
    trialled.check()
    assert run.sites == changes[EPOCHS - 1]


def test_an_epoch_has_a_map_for_its_own_sites(
    trialled: Trialled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever changes the number of sites while an epoch is being prepared waits for it."""
    made: list[Orders] = []
    runs: list[Run] = []
    whole, start = Loop._orders, Run.start
    preparing, others = threading.Event(), []

    def slowly(governor: Governor) -> int:
        found: int = vars(governor)["sites"]
        if preparing.is_set():
            preparing.clear()
            others.append(threading.Thread(target=runs[0].set_sites, args=(6,)))
            others[0].start()
            others[0].join(0.3)
        return found

    def prepare(loop: Loop, *rest: Any) -> Orders:
        if loop.checkpoint.manifest.epoch == 1:
            preparing.set()
        made.append(whole(loop, *rest))
        return made[-1]

    def started(run: Run) -> Run:
        runs.append(run)
        return start(run)

    keep = lambda governor, sites: vars(governor).update(sites=sites)  # noqa: E731
    monkeypatch.setattr(Governor, "sites", property(slowly, keep), raising=False)
    monkeypatch.setattr(Loop, "_orders", prepare)
    monkeypatch.setattr(Run, "start", started)
    trialled.run(at_end="close")
    others[0].join()
    assert made[-1].sites == 6
    assert all(max(orders.maps["flows@1"].sites) < orders.sites for orders in made)
    trialled.check()


def test_only_whole_numbers_are_sites_and_partitions(tmp_path: Path) -> None:
    """A site of 3.5 would spoil the manifest for good."""

    def ask(run: Run) -> None:
        exchange = next(iter(run.plan.exchanges))
        for call in (
            lambda: run.move(exchange, 0, 0.5),  # type: ignore[arg-type]
            lambda: run.pin(exchange, "0", 0),  # type: ignore[arg-type]
            lambda: run.set_sites("3"),  # type: ignore[arg-type]
        ):
            with pytest.raises(RunError, match="Expected a whole number for"):
                call()
        with pytest.raises(PlanningError, match="Expected a list of sites by number"):
            run.partition_map(exchange).on([0.5] * 8)  # type: ignore[list-item]

    trialled = Trialled(tmp_path / "checkpoint")
    trialled.run({1: ask}, at_end="close")
    trialled.check()


def test_a_run_that_has_ended_takes_no_orders(tmp_path: Path) -> None:
    trialled = Trialled(tmp_path / "checkpoint")
    run = trialled.run(at_end="close")
    exchange = next(iter(run.plan.exchanges))
    for call in (run.rebalance, lambda: run.move(exchange, 0, 1), lambda: run.set_sites(3)):
        with pytest.raises(RunError, match="This run has ended"):
            call()
    assert run.history() is not None


def test_what_is_done_by_hand_is_told(tmp_path: Path) -> None:
    trialled = Trialled(tmp_path / "checkpoint", policy="none")
    exchange: list[str] = []

    def ask(run: Run) -> None:
        exchange.append(next(iter(run.plan.exchanges)))
        run.move(exchange[0], 0, 1)
        run.set_sites(3)

    run = trialled.run({3: ask}, at_end="close")
    causes = [entry["cause"] for entry in run.history()]
    assert causes[0] == "asked for"
    assert set(causes[1:]) == {"3 sites from now on"}
    told = [p["customMetrics"]["adaptation"]["decisions"] for p in run.recent_progress]
    assert sum(map(len, told)) == len(causes)
