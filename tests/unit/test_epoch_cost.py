"""What is done between two epochs does not look at each segment or each partition."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_spilling import INPUTS, QUERIES, THREE, TWO

from anabranch import Session
from anabranch.control import aside
from anabranch.control.aside import Slots
from anabranch.engine.run import Run
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect
from anabranch.state.segment import SegmentRef
from anabranch.state.shelf import Shelf
from anabranch.testing.sources import EpochSource

NEAR = "SELECT a.t AS t, x, y FROM a JOIN b ON a.x < b.y AND b.t BETWEEN a.t - 2 AND a.t + 2"
BETWEEN_EPOCHS = ("anabranch.control", "anabranch.adapt", "anabranch.engine.progress")


def spill_half(run: Run) -> None:
    for name, exchange in run.plan.exchanges.items():
        for start in run.partition_map(name).starts[::2] if not exchange.in_grid else ():
            run.spill(name, start)


def test_no_look_at_each_segment_nor_map_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a grid, a join that is not flat, state aside and two exchanges that share the sites."""
    looked: Counter[str] = Counter()
    made: Counter[str] = Counter()
    quiet = [False]
    iterate, check = Shelf.__iter__, PartitionMap.__post_init__

    def iterated(shelf: Shelf) -> Iterator[SegmentRef]:
        where = sys._getframe(1).f_globals["__name__"]
        if quiet[0] and where.startswith(BETWEEN_EPOCHS):
            looked[where] += 1
        return iterate(shelf)

    def checked(known: PartitionMap) -> None:
        if quiet[0]:
            # The frame before is that of the dataclass
            made[sys._getframe(2).f_globals["__name__"]] += 1
        check(known)

    def met(left: Slots, right: Slots) -> Slots:
        looked["owed slots"] += quiet[0]
        return intersect(left, right)

    monkeypatch.setattr(aside, "intersect", met)
    monkeypatch.setattr(Shelf, "__iter__", iterated)
    monkeypatch.setattr(PartitionMap, "__post_init__", checked)
    session = Session.in_process(
        2,
        {
            "allow_unbounded_state": True, "fsync": False, "partitions_per_site": 4,
            "join_shape": "left-deep", "plans": "fixed", "allot_imbalance": 1000.0, "combine_reduction": 1.0,
            "split_partitions": False, "least_gain_seconds": 1000.0,
        },
    )  # fmt: skip
    for name, epochs in INPUTS.items():
        session.stream(name, EpochSource(epochs), ordered="t", lateness=20)
    queries = {"three": THREE, "near": NEAR, "two": TWO, "windows": QUERIES["aggregate"]}
    for name, text in queries.items():
        session.query(name, text)
    runs: list[Any] = []

    def on_step(step: str, epoch: int) -> None:
        if step == "begin" and runs:
            quiet[0] = 4 <= epoch < 7
            if epoch == 2:
                spill_half(runs[0])

    run = session.start(
        sinks=dict.fromkeys(queries, "memory"), checkpoint=tmp_path / "c", on_step=on_step,
        at_end="close",
    )  # fmt: skip
    runs.append(run)
    assert run.await_termination(60)
    manifest = run._checkpoint.manifest
    assert any(one.grid for one in manifest.exchanges.values())
    assert any(one.shapes for one in manifest.subqueries.values())
    assert not +looked
    assert not made
