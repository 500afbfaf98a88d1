"""Rows that wait before an exchange: none is lost, late or out of order, whatever waits for how long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Session
from anabranch.engine.epoch import Burden
from anabranch.errors import RunError, SettingsError
from anabranch.routing.holdback import Hold, renew, within

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
                known = (subquery, start) in run._steering.adaptation.buffer.stopped
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
    assert again._steering.adaptation.buffer.stopped == set()
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
