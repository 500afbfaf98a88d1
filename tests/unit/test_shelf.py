"""The shelf of a subquery: what it tells of its segments is what a look at each of them would tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from anabranch.routing.ranges import intersect
from anabranch.state.segment import SegmentRef, slots_in
from anabranch.state.shelf import Shelf, bytes_of, without

SLOTS = 40


def ref(
    number: int, live: tuple[tuple[int, int], ...], rows: int = 120, due: int = 10
) -> SegmentRef:
    slots = len(slots_in(live))
    steps = min(64, slots)
    along = np.diff(np.arange(steps + 1) * rows // steps)
    return SegmentRef(
        file=f"state/q/{number // 2}.arrow", batch=number % 2, table="ab"[number % 2], tier=0, rows=rows,
        bytes=10 * rows, min_due=due, max_due=due, live=live, along=tuple(along.tolist()),
        born=(number, number), checksum=0, packed=number % 3 == 0,
    )  # fmt: skip


@st.composite
def ranges(draw: st.DrawFn) -> tuple[tuple[int, int], ...]:
    edges = sorted(draw(st.sets(st.integers(0, SLOTS), min_size=2, max_size=6)))
    return tuple(zip(edges[0::2], edges[1::2], strict=False)) or ((0, 1),)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[SegmentRef], list[tuple[int, int]], int | None]]:
    """Epochs: what comes, which slots are masked everywhere, how far the watermark is."""
    numbers = itertools.count()
    return [
        (
            [
                ref(
                    next(numbers),
                    draw(ranges()),
                    draw(st.integers(0, 300)),
                    draw(st.integers(0, 30)),
                )
                for _ in range(draw(st.integers(0, 3)))
            ],
            list(draw(ranges())) if draw(st.booleans()) else [],
            draw(st.none() | st.integers(0, 30)),
        )
        for _ in range(draw(st.integers(1, 6)))
    ]


@given(histories(), ranges())
def test_a_shelf_tells_what_its_segments_would_tell(history: list, asked: tuple) -> None:
    shelf, plain = Shelf(), {}
    for coming, mask, passed in history:
        masked = [(r.file, r.batch, mask) for r in plain.values() if mask]
        shelf = shelf.after(shelf.change(coming, masked, passed))
        cut = {key: without(r, mask) for key, r in plain.items()} if mask else plain
        plain = {key: r for key, r in cut.items() if r is not None}
        plain |= {(r.file, r.batch): r for r in coming}
        if passed is not None:
            plain = {key: r for key, r in plain.items() if r.max_due > passed}
        assert {(r.file, r.batch): r for r in shelf} == plain
        assert len(shelf) == len(plain)
        assert shelf.bytes == sum(r.bytes for r in plain.values())
        assert shelf.packed_bytes == sum(r.bytes for r in plain.values() if r.packed)
        assert {*shelf.born_until(3)} == {r for r in plain.values() if r.born[0] <= 3}
        assert shelf.rows == sum(r.rows for r in plain.values())
        assert {*shelf.files} == {r.file for r in plain.values()}
        met = [r for r in plain.values() if intersect(r.live, asked)]
        near = shelf.within(asked)
        assert sorted((r.file, r.batch) for r in near) == sorted((r.file, r.batch) for r in met)
        whole = bytes_of([shelf], np.arange(0, SLOTS, 10), SLOTS)
        assert whole.sum() == pytest.approx(
            sum(r.bytes for r in plain.values() if r.rows), rel=1e-6
        )
        assert Shelf(shelf) == shelf


def test_bytes_are_where_the_rows_are() -> None:
    uneven = replace(ref(0, ((0, 40),)), along=tuple([120] + [0] * 39))
    assert bytes_of([Shelf([uneven])], np.array([0, 1, 20]), SLOTS).tolist() == [1200, 0, 0]
    left = without(uneven, [(1, 30)])
    assert left is not None
    assert (left.rows, left.bytes) == (120, 1200)
    assert without(uneven, [(0, 40)]) is None
    rest = without(uneven, [(0, 1)])
    assert rest is not None
    assert (rest.rows, rest.bytes) == (0, 0)


def test_no_ranges_have_no_slots() -> None:
    """An index into arrays all the same."""
    assert np.zeros(4)[slots_in([])].tolist() == []
