"""Sites that come and go, and what the controller does by itself about hot partitions and full memories."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Session
from anabranch.engine.faults import Burden
from anabranch.engine.placement import bind
from anabranch.engine.transport import Twin
from anabranch.errors import RunError, SettingsError
from anabranch.testing.sources import EpochSource

FLOWS = "SELECT tb, k, COUNT(*) AS c, SUM(v) AS v FROM s GROUP BY time/20 AS tb, k"
PER_ROW = 2e-5
CROWD = 60  # partitions that are put on one site by hand


def epochs(popular: float, count: int = 12, rows: int = 4_000, seed: int = 1) -> list[pl.DataFrame]:
    """Rows of which this share have one key, over epochs of ten seconds."""
    rng = np.random.default_rng(seed)
    made = []
    for epoch in range(count):
        keys = np.where(rng.random(rows) < popular, 7, rng.integers(100, 5_000, rows))
        times = 10 * epoch + np.sort(rng.integers(0, 10, rows))
        made.append(pl.DataFrame({"time": times, "k": keys, "v": rng.integers(0, 50, rows)}))
    return made


def aggregate(frames: Sequence[pl.DataFrame]) -> list[Any]:
    whole = pl.concat(frames).group_by(pl.col("time") // 20, "k")
    return sorted(whole.agg(pl.len().alias("c"), pl.col("v").sum()).rows())


def session(sites: int, exchange: Twin | None = None, **settings: Any) -> Session:
    made = Session.in_process(
        sites, {"fsync": False, "least_gain_seconds": 0.001, "combine_reduction": 1e9, **settings}
    )
    if exchange is not None:
        made._transport = lambda: exchange  # type: ignore[method-assign]
    return made


def kinds(run: Any) -> set[str]:
    return {entry["kind"] for entry in run.history() if entry["accepted"]}


def start(made: Session, query: str) -> Any:
    """Runs a query on four sites; the controller is asked, so that it does not depend on the clock."""
    holder: list[Any] = []

    def step(name: str, epoch: int) -> None:
        if name == "begin" and epoch >= 3 and holder:
            holder[0].rebalance()

    run = made.start(sinks={query: "memory"}, at_end="close", burdens=burdens(4), on_step=step)
    holder.append(run)
    assert run.await_termination(60)
    return run


def burdens(sites: int) -> Any:
    return lambda epoch: {site: Burden(seconds_per_row=PER_ROW) for site in range(sites)}


def test_a_hot_key_of_an_aggregate_is_condensed_by_its_senders() -> None:
    frames = epochs(0.6)
    made = session(4)
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    run = start(made, "flows")
    assert "condense" in kinds(run)
    assert sorted(run.results("flows").rows()) == aggregate(frames)
    rows = [sum(s["rowsIn"] for s in p["customMetrics"]["sites"]) for p in run.recent_progress]
    assert min(rows[5:-1]) < 0.6 * rows[0], "what is condensed is not sent"


def test_a_hot_key_of_a_join_is_scattered_over_cells() -> None:
    left, right = epochs(0.5, rows=1_500, seed=2), epochs(0.02, rows=400, seed=3)
    made = session(4)
    made.stream("a", EpochSource(left), ordered="time")
    made.stream("b", EpochSource(right), ordered="time")
    made.query(
        "pairs",
        "SELECT a.time AS t, a.k AS k, a.v AS v, b.v AS w FROM a JOIN b ON a.k = b.k "
        "AND b.time BETWEEN a.time - 15 AND a.time + 15",
    )
    run = start(made, "pairs")
    assert "scatter" in kinds(run)
    assert run._checkpoint.manifest.exchanges["pairs@1"].scattered
    one, other = pl.concat(left), pl.concat(right)
    joined = one.join(other, on="k", suffix="_b")
    near = (pl.col("time_b") - pl.col("time")).abs() <= 15
    expected = joined.filter(near).select("time", "k", "v", "v_b")
    assert sorted(run.results("pairs").rows()) == sorted(expected.rows())


def test_a_hot_key_that_has_cooled_is_gathered() -> None:
    left = [*epochs(0.6, rows=1_500, seed=2)[:8], *epochs(0.0, rows=1_500, seed=4)[8:]]
    cool = epochs(0.0, rows=1_500, seed=5)
    last = pl.concat(left)["time"].max() + 1
    left += [frame.with_columns(pl.col("time") + last) for frame in cool]
    right = epochs(0.0, rows=300, seed=3)
    right += [frame.with_columns(pl.col("time") + last) for frame in right]
    made = session(4)
    made.stream("a", EpochSource(left), ordered="time")
    made.stream("b", EpochSource(right), ordered="time")
    made.query(
        "rows",
        "SELECT a.time AS t, a.k AS k, a.v AS v, b.v AS w FROM a LEFT JOIN b ON a.k = b.k "
        "AND b.time BETWEEN a.time - 15 AND a.time + 15",
    )
    run = start(made, "rows")
    assert {"scatter", "unscatter"} <= kinds(run)
    assert not run._checkpoint.manifest.exchanges["rows@1"].scattered
    one, other = pl.concat(left).with_row_index(), pl.concat(right)
    near = (pl.col("time_b") - pl.col("time")).abs() <= 15
    met = one.join(other, on="k", suffix="_b").filter(near)
    alone = one.join(met, on="index", how="anti").select(
        "time", "k", "v", pl.lit(None, pl.Int64).alias("v_b")
    )
    expected = pl.concat([met.select("time", "k", "v", "v_b"), alone], how="vertical_relaxed")
    order = ["time", "k", "v", "v_b"]
    found = pl.DataFrame(run.results("rows").rows(), schema=expected.schema, orient="row")
    assert found.sort(order).equals(expected.sort(order))


def test_partitions_that_are_too_much_for_a_site_are_cut() -> None:
    """Four partitions on four sites: none could go anywhere as it is."""
    frames = epochs(0.0, rows=6_000)
    made = session(4, partitions_per_site=1)
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    run = start(made, "flows")
    assert "split" in kinds(run)
    assert run.partition_map("flows@1").partitions > 4
    assert sorted(run.results("flows").rows()) == aggregate(frames)


@pytest.mark.parametrize("policy", ["memory", "hybrid"])
def test_a_site_that_is_short_of_memory_gives_partitions_away(policy: str) -> None:
    frames = epochs(0.0)
    made = session(3, policy=policy, site_memory_bytes=1 << 30, split_partitions=False)
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    small = {0: Burden(memory=20_000)}
    run = made.start(sinks={"flows": "memory"}, at_end="close", burdens=lambda epoch: small)
    assert run.await_termination(60)
    # By what evens memory out, or, if it is the first to look, by what relieves a site
    moves = [e for e in run.history() if e["accepted"] and e["kind"] == "move"]
    moves = [e for e in moves if "memory" in e["cause"]]
    assert moves
    assert {entry["source"] for entry in moves} == {0}
    assert sorted(run.results("flows").rows()) == aggregate(frames)


def test_load_and_memory_share_a_budget_and_do_not_undo_each_other() -> None:
    """Memory is short first on one site, then on another, and load is uneven all the while."""
    frames, budget = epochs(0.0, count=24, rows=2_000), 30_000
    made = session(
        3, site_memory_bytes=1 << 30, split_partitions=False, moved_bytes_per_epoch=budget,
        most_collection_seconds=0.01, least_gain_seconds=0.0,
        overlap=False,
    )  # fmt: skip
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)

    def burdens(epoch: int) -> dict[int, Burden]:
        short, slow = epoch // 3 % 3, epoch // 2 % 3
        found = {
            slow: Burden(seconds_per_row=5 * PER_ROW)
        }  # well above the noise of a busy machine
        seconds = found[slow].seconds_per_row if short == slow else 0.0
        return found | {short: Burden(seconds_per_row=seconds, memory=12_000)}

    run = made.start(sinks={"flows": "memory"}, at_end="close", burdens=burdens)
    assert run.await_termination(60)
    assert sorted(run.results("flows").rows()) == aggregate(frames)
    lines = [e for e in run.history() if e["accepted"] and e["kind"] == "move"]
    assert {"memory" in line["cause"] for line in lines} == {True, False}
    moved: dict[int, list[int]] = {}
    last: dict[tuple[str, int], int] = {}
    for line in lines:
        moved.setdefault(line["epoch"], []).append(line["bytes"])
        subject = line["exchange"], line["partition"]
        assert line["epoch"] - last.get(subject, -9) > 2, "it moved just before"
        last[subject] = line["epoch"]
    assert all(sum(some) <= budget or len(some) == 1 for some in moved.values()), moved


def test_who_asks_gets_an_even_load_whatever_the_policy() -> None:
    frames = epochs(0.0)
    made = session(4, policy="none", skew_buffer="none")
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    told: list[Any] = []
    holder: list[Any] = []

    def step(name: str, epoch: int) -> None:
        if name == "begin" and holder:
            if epoch == 2:
                known = holder[0].partition_map("flows@1")
                for start in known.starts[:CROWD]:
                    holder[0].move("flows@1", start, 0)
                with pytest.raises(RunError, match="skew_buffer is 'none'"):
                    holder[0].pause("flows@1", 0)
            if epoch >= 5:
                told.extend(holder[0].rebalance())

    heavy = {site: Burden(seconds_per_row=5 * PER_ROW) for site in range(4)}
    run = made.start(
        sinks={"flows": "memory"}, at_end="close", burdens=lambda epoch: heavy, on_step=step
    )
    holder.append(run)
    assert run.await_termination(60)
    assert any(entry["accepted"] and entry["source"] == 0 for entry in told)
    sites = list(run.partition_map("flows@1").sites)
    assert sites.count(0) < CROWD
    assert sorted(run.results("flows").rows()) == aggregate(frames)


class Flickering(Twin):
    """An exchange whose sites are alive as a script says, turn by turn; the last line stays."""

    def __init__(self, script: Sequence[list[bool]]) -> None:
        super().__init__()
        self.script = list(script)
        self.waited = 0

    def alive(self, sites: int) -> list[bool]:
        now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.waited += not any(now)
        return now


def flickering(script: Sequence[list[bool]]) -> tuple[Any, Flickering, list[pl.DataFrame]]:
    frames = epochs(0.0, rows=500)
    exchange = Flickering(script)
    made = session(3, exchange, poll_interval_seconds=0.05)
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    return made.start(sinks={"flows": "memory"}, at_end="close"), exchange, frames


def test_what_a_lost_site_had_is_spread_over_the_others() -> None:
    run, _, frames = flickering([[True] * 3] * 3 + [[True, False, True]])
    assert run.await_termination(60)
    assert set(run.partition_map("flows@1").sites) == {0, 2}
    causes = {entry["cause"] for entry in run.history()}
    assert "site 1 is gone" in causes
    assert sorted(run.results("flows").rows()) == aggregate(frames)


def test_a_site_that_comes_back_has_its_share_at_once() -> None:
    run, _, frames = flickering([[True] * 3] * 3 + [[True, False, True]] * 3 + [[True] * 3])
    assert run.await_termination(60)
    sites = list(run.partition_map("flows@1").sites)
    assert min(sites.count(site) for site in range(3)) > len(sites) // 5
    assert sorted(run.results("flows").rows()) == aggregate(frames)


def test_without_any_site_the_run_waits_and_says_so() -> None:
    run, exchange, frames = flickering([[True] * 3] * 2 + [[False] * 3] * 12 + [[True] * 3])
    seen = set()
    while not run.await_termination(0.02):
        seen.add(run.status["message"])
    assert exchange.waited == 12
    assert any(message.startswith("Waiting for executors") for message in seen)
    assert sorted(run.results("flows").rows()) == aggregate(frames)


def test_a_run_can_be_stopped_while_it_waits_for_executors() -> None:
    run, _, _ = flickering([[False] * 3])
    time.sleep(0.2)
    run.stop()
    assert not run.is_active


@given(
    st.lists(st.sets(st.sampled_from("abcde"), min_size=1), min_size=1, max_size=6),
    st.integers(1, 9),
)
def test_sites_stay_on_executors_that_live(history: list[set[str]], sites: int) -> None:
    bound: dict[int, str] = {}
    seen = 0
    for living in history:
        executors = sorted(living)
        seen = max(seen, len(executors))
        most = -(-sites // seen)
        before, bound = bound, bind(bound, executors, sites, most)
        loads = [list(bound.values()).count(executor) for executor in executors]
        assert set(bound.values()) <= living
        assert max(loads) - min(loads) <= 1 or len(bound) == sites
        if living == set(before.values()) and len(before) == sites:
            assert bound == before, "nobody came or went"


def test_more_executors_than_before_take_some_of_the_sites() -> None:
    assert bind({0: "a", 1: "b", 2: "a", 3: "b"}, ["a", "b", "c"], 4, most=2) == {
        0: "a", 1: "b", 2: "c", 3: "b",
    }  # fmt: skip
    assert bind({0: "a", 1: "a", 2: "a"}, ["a", "b"], 3, most=3) == {0: "a", 1: "a", 2: "b"}


@pytest.mark.parametrize("policy", ["load", "hybrid", "none"])
def test_a_run_goes_on_when_all_sites_are_slow(policy: str) -> None:
    frames = epochs(0.0, rows=1_000)
    made = session(3, policy=policy)
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    slow = {site: Burden(seconds_per_row=PER_ROW, slowdown=3.0) for site in range(3)}
    run = made.start(sinks={"flows": "memory"}, at_end="close", burdens=lambda epoch: slow)
    assert run.await_termination(60)
    assert sorted(run.results("flows").rows()) == aggregate(frames)


@pytest.mark.parametrize("sites", [0, -1, "4", 1.5])
def test_a_session_needs_a_number_of_sites(sites: Any) -> None:
    with pytest.raises(SettingsError, match=f"at least one, not {sites!r}"):
        Session.in_process(sites)


def test_a_partition_can_be_pinned_to_a_site_that_is_gone() -> None:
    """It goes there when the site is back; a mere move is refused."""
    frames = epochs(0.0, rows=500)
    exchange = Flickering([[True] * 3] * 3 + [[True, False, True]] * 4 + [[True] * 3])
    made = session(3, exchange)
    made.stream("s", EpochSource(frames), ordered="time")
    made.query("flows", FLOWS)
    holder, seen = [], []

    def step(name: str, epoch: int) -> None:
        if not holder or name != "begin":
            return
        run = holder[0]
        if epoch == 4:
            with pytest.raises(RunError, match="Site 1 is gone now"):
                run.move("flows@1", 0, 1)
            run.pin("flows@1", 0, 1)
        seen.append((epoch, run.partition_map("flows@1").sites[0]))

    run = made.start(sinks={"flows": "memory"}, at_end="close", on_step=step)
    holder.append(run)
    assert run.await_termination(60)
    assert all(site != 1 for epoch, site in seen if 4 <= epoch < 7)
    assert run.partition_map("flows@1").sites[0] == 1
    assert sorted(run.results("flows").rows()) == aggregate(frames)
    assert {one["origin"] for one in run.history() if "gone" in one["cause"]} == {"sites"}


def test_exchanges_get_sites_in_proportion_again_after_another_number_of_sites() -> None:
    """What was moved by hand is left alone; with other sites, everything is spread anew."""
    made = session(3, Twin(), policy="none")
    made.stream("s", EpochSource(epochs(0.0, rows=500)), ordered="time")
    made.query("flows", FLOWS)
    holder: list[Any] = []
    kept = []

    def step(name: str, epoch: int) -> None:
        if holder and name == "begin":
            if epoch == 3:
                holder[0].move("flows@1", 0, 2)
            if epoch == 6:
                holder[0].set_sites(2)
        elif holder and name == "after-commit":
            kept.append(holder[0]._checkpoint.manifest.exchanges["flows@1"].adapted)

    run = made.start(sinks={"flows": "memory"}, at_end="close", on_step=step)
    holder.append(run)
    assert run.await_termination(60)
    assert True in kept
    assert not kept[-1]
