"""What is done between two epochs does not look at each segment or each partition."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from test_spilling import INPUTS, QUERIES, THREE, TWO

from anabranch import Session
from anabranch.adapt.protocols import replanning
from anabranch.adapt.protocols.replanning import Turn, Wishes, next_step
from anabranch.control import aside
from anabranch.control.aside import Slots
from anabranch.engine.run import Run
from anabranch.routing import ranges
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect, subtract, union
from anabranch.routing.reach import Reach, Spilled, brought_together, put_aside
from anabranch.routing.shaped import OnTrack, Shaped, Track, shapes_in_use, tracks_in_use
from anabranch.state import shelf
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

    def iterated(known: Shelf) -> Iterator[SegmentRef]:
        where = sys._getframe(1).f_globals["__name__"]
        if quiet[0] and where.startswith(BETWEEN_EPOCHS):
            looked[where] += 1
        return iterate(known)

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


def test_many_ranges_are_as_few_are(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = Random(1)
    for _ in range(500):
        left, right = (
            [(a, a + draw.randint(0, 9)) for a in draw.choices(range(200), k=40)] for _ in "lr"
        )
        found = []
        for many in (0, 1000):
            monkeypatch.setattr(ranges, "MANY", many)
            found.append((union(left, right), subtract(left, right)))
        assert found[0] == found[1]


def test_what_is_aside_is_not_put_together_again_range_by_range() -> None:
    spilled = tuple(Spilled(n, n + 1, 10, 2, (1,)) for n in range(0, 100, 2))
    assert put_aside(Reach(20, spilled=spilled), [], epoch=4, waits=False) is spilled
    assert brought_together(spilled, []) == (spilled, ())
    left, done = brought_together(spilled, [(10, 15)])
    assert done == spilled[5:8]
    assert all(one is other for one, other in zip(left, (*spilled[:5], *spilled[8:]), strict=True))


def test_segments_are_not_compared_with_each_spared_range(monkeypatch: pytest.MonkeyPatch) -> None:
    spared = [(n, n + 1) for n in range(0, 400, 2)]
    inside, outside = (
        [ref(f"{side}{n}", (2 * n + side, 2 * n + side + 1)) for n in range(200)] for side in (0, 1)
    )
    both = ref("both", (0, 4))
    known = Shelf([*inside, *outside, both])
    cut: list[Any] = []

    def counted(left: Any, right: Any) -> Any:
        cut.append((len(left), len(right)))
        return ranges.subtract(left, right)

    monkeypatch.setattr(shelf, "subtract", counted)
    change = known.change([], [], 5, spared)
    assert len(cut) == 2, "of the one that is partly spared"
    assert max(max(sizes) for sizes in cut) < 5
    assert {file for file, _ in change.gone} == {"both", *(one.file for one in outside)}
    assert [one.live for one in change.added] == [((0, 1), (2, 3))]
    after = known.after(change)
    again = Shelf([*inside, *change.added])
    assert after.bytes_by_slot[:399] == pytest.approx(again.bytes_by_slot)
    assert after.files == again.files


def ref(file: str, *live: tuple[int, int]) -> SegmentRef:
    return SegmentRef(
        file=file, batch=0, table="open", tier=0, rows=10, bytes=400, min_due=1, max_due=1, live=live,
        along=(10,), born=(0, 0), checksum=0,
    )  # fmt: skip


def test_shapes_that_are_as_wanted_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = tuple(Shaped(n, n + 1, "((0,1),2)") for n in range(0, 100, 2))
    monkeypatch.setattr(replanning, "differing", None)
    nothing = np.zeros(100), np.zeros(100, dtype=np.int64), 1.0, 5
    assert next_step(shapes, (), Wishes(shapes), (), *nothing).turn == Turn(shapes)
    flat = [(0, 50)]
    here = shapes[25:]
    assert next_step(here, (), Wishes(shapes, flat=flat), (), *nothing).turn == Turn(here)
    assert shapes_in_use(shapes, [0, 1, 2, 3, 98], 100) == {"((0,1),2)": 3, "": 2}
    tracks = [Track(n, n + 1, "", 6 + n % 4) for n in range(0, 100, 2)]
    assert tracks_in_use(tracks, [0, 1, 2, 99]) == [OnTrack("", 7, 1), OnTrack("", 9, 1)]
