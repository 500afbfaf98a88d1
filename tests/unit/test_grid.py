"""Grids: every pair meets once, in even shares, at any number of cells."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anabranch.routing.grid import Grid, choose_grid


@settings(max_examples=150)
@given(
    bands=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    left=st.integers(0, 40), right=st.integers(0, 40), start=st.integers(0, 1000),
)  # fmt: skip
def test_every_pair_meets_in_one_cell(bands: list[int], left: int, right: int, start: int) -> None:
    grid = Grid(tuple(bands))
    met = np.zeros((left, right), dtype=int)
    rows, cells = grid.places(left, 0, start)
    others, other_cells = grid.places(right, 1, start)
    for row, cell in zip(rows, cells, strict=True):
        for other in others[other_cells == cell]:
            met[row, other] += 1
    assert (met == 1).all()


@pytest.mark.parametrize("cells", range(1, 18))
def test_shares_are_even(cells: int) -> None:
    grid = choose_grid(cells)
    assert grid.cells == cells
    work = np.zeros(cells)
    counts = [np.bincount(grid.places(5040, side)[1], minlength=cells) for side in (0, 1)]
    work = counts[0] * counts[1]
    assert work.max() <= 1.1 * work.mean()


@pytest.mark.parametrize(
    ("cells", "left", "right", "shape"),
    [
        (4, 1, 1, "2 x 2"), (6, 1, 1, "2 x 3"), (9, 1, 1, "3 x 3"), (5, 1, 1, "3 + 2"),
        (7, 1, 1, "3 + 2 + 2"),
        (4, 100, 1, "4 x 1"), (4, 1, 100, "1 x 4"), (1, 3, 9, "1 x 1"),
    ],
)  # fmt: skip
def test_the_shape_follows_from_the_rates(
    cells: int, left: float, right: float, shape: str
) -> None:
    assert str(choose_grid(cells, left, right)) == shape


def test_no_other_shape_sends_fewer_rows() -> None:
    chosen = choose_grid(12, 3, 1)
    for bands in ([12], [6, 6], [4, 4, 4], [3] * 4, [2] * 6, [1] * 12):
        assert chosen.sent(3, 1) <= Grid(tuple(bands)).sent(3, 1)
