"""Hot keys of joins: in which cells rows of each input are, who gives them back, when that is proposed."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.adapt.policies.cooling import COOLING, CellLoad, propose_cooling
from anabranch.routing.grid import Scattered, choose_grid
from anabranch.routing.partition_map import even_map

RATES = st.sampled_from([0.0, 1.0, 5.0, 100.0])


def cells_of(one: Scattered, rows: int, input: int, start: int) -> list[set[int]]:
    """The cells of each row of an input."""
    which, cells = one.place(rows, input, start)
    found: list[set[int]] = [set() for _ in range(rows)]
    for row, cell in zip(which.tolist(), cells.tolist(), strict=True):
        assert cell not in found[row], "a row twice in one cell"
        found[row].add(cell)
    return found


@given(
    st.integers(1, 9), RATES, RATES, st.sampled_from([(0, 1), (0, 2), (1, 2)]), st.integers(0, 20)
)
def test_three_rows_meet_in_one_cell(
    cells: int, left: float, right: float, sides: tuple[int, int], start: int
) -> None:
    one = Scattered(3, 50, choose_grid(cells, left, right).bands, sides)
    inputs = [cells_of(one, 7, input, start) for input in range(3)]
    for a, b, c in product(*inputs):
        assert len(a & b & c) == 1


@pytest.mark.parametrize(
    ("bands", "mirrored"),
    [((1, 1, 1), False), ((3,), False), ((2, 1, 1), False), ((1, 1, 1), True), ((1,), True)],
)
def test_every_row_comes_back_once(bands: tuple[int, ...], mirrored: bool) -> None:
    one = Scattered(3, 50, bands, mirrored=mirrored)
    for input in range(3):
        slots = {slot for first, end in one.homes(input) for slot in range(first, end)}
        for found in cells_of(one, 11, input, 4):
            assert len(found & slots) == 1
            assert found <= set(range(*one.cells))


def test_rows_of_both_preserved_inputs_see_all_that_they_could_meet() -> None:
    one = Scattered(3, 50, (1, 1, 1), mirrored=True)
    left, right = (cells_of(one, 6, input, 0) for input in range(2))
    for input, own, others in ((0, left, right), (1, right, left)):
        slots = {slot for first, end in one.homes(input) for slot in range(first, end)}
        copies = {slot for first, end in one.copies(input) for slot in range(first, end)}
        assert slots | copies == set(range(*one.cells))
        assert not slots & copies
        for cells in own:
            (dealt,) = cells & slots
            assert all(dealt in cells_of_other for cells_of_other in others)
    # Combinations are given where the left row is no copy: once each
    copies = {slot for first, end in one.copies(0) for slot in range(first, end)}
    assert all(len((a & b) - copies) == 1 for a, b in product(left, right))


def test_a_burden_is_what_arrives_at_a_site() -> None:
    one = Scattered(0, 10, choose_grid(4, 30, 10).bands, (0, 2))
    rows = {0: 300, 1: 50, 2: 100}
    arrived: Counter[int] = Counter()
    for input, count in rows.items():
        arrived.update(one.place(count, input, 0)[1].tolist())
    mean = np.mean([arrived[cell] for cell in range(*one.cells)]) / sum(rows.values())
    assert one.burden(list(rows.values())) == pytest.approx(mean, rel=0.02)


def test_cells_are_used_again() -> None:
    known = even_map(4, 2).with_cells([0, 1, 0]).merged(5).merged(6)
    again = known.with_cells([1, 1], first=4)
    assert (again.slots, again.cells) == (7, 3)
    assert again.sites[4:] == (1, 1, 0)


def test_what_has_cooled_is_gathered_and_what_has_too_few_cells() -> None:
    hot = CellLoad("pairs", 3, 2.0, 0, 8)
    cooling = CellLoad("pairs", 4, 0.1, COOLING - 1, 8)
    cold = CellLoad("pairs", 5, 0.1, COOLING, 8)
    few = CellLoad("pairs", 6, 2.0, 0, 4)
    found = list(propose_cooling([hot, cooling, cold, few], alive=8))
    assert [action.slot for action in found] == [5, 6]
    assert "cooled: 10%" in found[0].cause
    assert "4 cells on 8 sites" in found[1].cause
