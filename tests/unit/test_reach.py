"""Rows that wait before an exchange: none is lost, late or out of order, whatever waits for how long."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Session
from anabranch.adapt.policies.holding import MOST_EPOCHS
from anabranch.adapt.view import Partitions, Sites, View
from anabranch.control.skew_buffer import SkewBuffer
from anabranch.engine.faults import Burden
from anabranch.errors import RunError, SettingsError
from anabranch.routing.partition_map import even_map
from anabranch.routing.reach import Hold, renew, within
from anabranch.settings import Settings

ROWS = 24_000
QUERIES = {
    "flows": "SELECT tb, srcIP, COUNT(*) AS c, SUM(len) AS b FROM tcp GROUP BY time/20 AS tb, srcIP",
    "sizes": "SELECT w, c, COUNT(*) AS n, SUM(b) AS b FROM flows GROUP BY tb/3 AS w, c",
}


def session(**settings: Any) -> Session:
    made = Session.in_process(3, {"max_rows_per_epoch": 2_000, "fsync": False, **settings})
    made.stream(
        "tcp", generator="packets", rows=ROWS, ordered="time", rows_per_second=100, keys=200, seed=3
    )
    for name, text in QUERIES.items():
        made.query(name, text)
    return made


def run(step: Any = None, checkpoint: Path | None = None, **settings: Any) -> Any:
    holder: list[Any] = []

    def hook(name: str, epoch: int) -> None:
        if name == "begin" and holder and step:
            step(holder[0], epoch)

    started = session(**settings).start(
        sinks=dict.fromkeys(QUERIES, "memory"), checkpoint=checkpoint, at_end="close", on_step=hook
    )
    holder.append(started)
    assert started.await_termination(120)
    return started


def rows_of(run: Any) -> dict[str, list[Any]]:
    return {name: sorted(run.results(name).rows()) for name in QUERIES}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[Any]]:
    return rows_of(run())


def test_what_waits_below_does_not_come_too_late_above(expected: dict[str, list[Any]]) -> None:
    """The second aggregate must not close windows while rows of the first wait."""
    held = []

    def step(run: Any, epoch: int) -> None:
        starts = run.partition_map("flows@1").starts
        if epoch == 2:
            for start in starts[:40]:
                run.pause("flows@1", start)
        if epoch == 7:
            for start in starts[:40]:
                run.resume("flows@1", start)
        held.append(len(run._checkpoint.manifest.held))

    ended = run(step)
    assert max(held) > 3
    assert ended._checkpoint.manifest.held == []
    assert rows_of(ended) == expected


@pytest.mark.parametrize("seed", range(3))
def test_anything_may_wait_at_any_time(seed: int, expected: dict[str, list[Any]]) -> None:
    rng = np.random.default_rng(seed)

    def step(run: Any, epoch: int) -> None:
        for subquery in ("flows@1", "sizes@1"):
            for start in run.partition_map(subquery).starts:
                known = (subquery, start) in run._governor.stopped
                if rng.random() < 0.3:
                    (run.resume if known else run.pause)(subquery, start)

    assert rows_of(run(step)) == expected


def test_what_waits_survives_a_restart(tmp_path: Path, expected: dict[str, list[Any]]) -> None:
    def step(run: Any, epoch: int) -> None:
        if epoch == 1:
            for start in run.partition_map("flows@1").starts[::2]:
                run.pause("flows@1", start)
        if epoch == 4:
            raise OSError("a crash")

    sinks = {name: str(tmp_path / name) for name in QUERIES}

    def start(hook: Any) -> Any:
        holder: list[Any] = []
        made = session().start(
            sinks=sinks, checkpoint=tmp_path / "ckpt", at_end="close",
            on_step=lambda name, epoch: hook(holder[0], epoch) if name == "begin" and holder else None,
        )  # fmt: skip
        holder.append(made)
        return made

    with pytest.raises(RunError, match="a crash"):
        start(step).await_termination(60)
    again = start(lambda run, epoch: None)
    assert again._governor.stopped == set()
    assert again.await_termination(60)
    found = {
        name: sorted(pl.read_parquet(tmp_path / name / "**/*.parquet").rows()) for name in QUERIES
    }
    assert found == expected


def test_the_space_for_waiting_rows_is_bounded(expected: dict[str, list[Any]]) -> None:
    held = []

    def step(run: Any, epoch: int) -> None:
        if epoch == 1:
            for start in run.partition_map("flows@1").starts[:60]:
                run.pause("flows@1", start)
        held.append(sum(ref.bytes for ref in run._checkpoint.manifest.held))

    ended = run(step, skew_buffer_bytes=60_000)
    assert max(held) > 60_000, "one epoch may exceed it"
    assert held[-1] == 0, "then all is let go"
    assert rows_of(ended) == expected


def test_a_slow_site_that_must_keep_its_partitions_holds_up_nobody_for_long(
    expected: dict[str, list[Any]],
) -> None:
    """Nothing moves (policy none): the rows of the slow site's partitions wait, and go on in time."""
    counts = []

    def step(run: Any, epoch: int) -> None:
        counts.append(sum(ref.rows for ref in run._checkpoint.manifest.held))

    holder: list[Any] = []
    slow = {0: Burden(seconds_per_row=2e-5, slowdown=8.0)}
    normal = {1: Burden(seconds_per_row=2e-5), 2: Burden(seconds_per_row=2e-5)}
    made = session(policy="none").start(
        sinks=dict.fromkeys(QUERIES, "memory"),
        at_end="close",
        on_step=lambda name, epoch: step(holder[0], epoch) if name == "begin" and holder else None,
        burdens=lambda epoch: {**normal, **(slow if 2 <= epoch < 6 else {})},
    )
    holder.append(made)
    assert made.await_termination(120)
    assert max(counts) > 0
    assert rows_of(made) == expected


def test_only_known_partitions_can_wait() -> None:
    def step(run: Any, epoch: int) -> None:
        with pytest.raises(RunError, match="no partition that begins at slot 1;"):
            run.pause("flows@1", 1)
        with pytest.raises(RunError, match="is not paused"):
            run.resume("flows@1", 0)

    run(step)
    with pytest.raises(SettingsError, match="'skew_buffer' is 'some'; expected one of shared"):
        session(skew_buffer="some")


ranges = st.lists(st.integers(0, 30), max_size=6, unique=True).map(
    lambda edges: list(zip(sorted(edges)[0::2], sorted(edges)[1::2], strict=False))
)


@given(ranges, ranges)
def test_slots_go_on_waiting_with_the_watermark_they_stopped_at(
    before: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    old = [Hold(first, end, 10, 1) for first, end in before]
    kept, released = renew(old, wanted, watermark=20, epoch=5)
    every = np.arange(31)
    was, asked = within(every, before), within(every, wanted)
    now = within(every, [(hold.first, hold.end) for hold in kept])
    assert (now == asked).all()
    gone = within(every, sorted((hold.first, hold.end) for hold in released))
    assert (gone == (was & ~asked)).all()
    for hold in kept:
        assert (hold.watermark == 10) == bool(was[hold.first])


class TestGivingUp:
    """Sites for which nothing more waits: those that stay slow, until they are fast, level by level."""

    LEVELS = (1, 2)

    def view(self, level: int, slow: bool) -> View:
        pace = np.array([3.0 if slow else 1.0, 1.0, 1.0])
        each, none = np.full(3, 100.0), np.zeros(3)
        return View(
            (f"q@{level}",), 1.0,
            Sites(0.3 * pace, none, each, pace, none, none, none, np.full(3, 1e9), np.ones(3, bool)),
            Partitions(
                np.zeros(3, int), np.arange(3), np.ones(3, int), np.arange(3), each, each,
                np.full(3, 0.3), each, none, none, none > 0, none > 0, none, none, none > 0, none > 0,
                none, np.arange(3),
            ),
        )  # fmt: skip

    def buffer(self) -> tuple[SkewBuffer, Any]:
        plan = SimpleNamespace(exchanges={})
        record = SimpleNamespace(
            rows_received=300, bytes_received=3_000, map=lambda: even_map(3, 3)
        )
        records = {f"q@{level}": record for level in self.LEVELS}
        manifest = SimpleNamespace(
            epoch=0, held=[], holds={}, exchanges=records, subqueries=records
        )
        return SkewBuffer(plan, Settings()), manifest  # type: ignore[arg-type]

    def epoch(self, buffer: SkewBuffer, manifest: Any, slow: dict[int, bool]) -> list[str]:
        """The exchanges of which something waits after one more epoch with these slow levels."""
        maps = {f"q@{level}": even_map(3, 3) for level in self.LEVELS}
        views = {level: self.view(level, slow[level]) for level in self.LEVELS}
        urgent = [level for level in self.LEVELS if slow[level]]
        buffer.choose(views, urgent, manifest, maps, 3, all_stay=True)
        manifest.epoch += 1
        wanted = buffer.waiting(maps, [])
        manifest.holds = {
            exchange: renew(manifest.holds.get(exchange, ()), slots, 0, manifest.epoch)[0]
            for exchange, slots in wanted.items()
        }
        return sorted(wanted)

    def test_one_level_does_not_forget_what_another_gave_up(self) -> None:
        buffer, manifest = self.buffer()
        waits = [self.epoch(buffer, manifest, {1: True, 2: False}) for _ in range(12)]
        assert waits == [["q@1"]] * MOST_EPOCHS + [[]] * (12 - MOST_EPOCHS)

    def test_a_site_that_was_fast_again_is_waited_for_again(self) -> None:
        buffer, manifest = self.buffer()
        for _ in range(8):
            self.epoch(buffer, manifest, {1: True, 2: False})
        self.epoch(buffer, manifest, {1: False, 2: False})
        assert self.epoch(buffer, manifest, {1: True, 2: False}) == ["q@1"]

    def test_what_the_user_pauses_gives_no_site_up(self) -> None:
        buffer, manifest = self.buffer()
        buffer.stopped.add(("q@1", 0))
        for _ in range(8):
            self.epoch(buffer, manifest, {1: False, 2: False})
        buffer.stopped.clear()
        self.epoch(buffer, manifest, {1: False, 2: False})
        assert self.epoch(buffer, manifest, {1: True, 2: False}) == ["q@1"]
