"""Runs of neighbours: the places that they have, cut and taken some at a time."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.operators.runs import Runs, in_chunks, joined

RUNS = Runs(np.array([0, 1, 1, 4]), np.array([7, 0, 3, 5]), np.array([2, 1, 9, 4]))
PLACES = [7, 8, 0, *range(3, 12), *range(5, 9)]


def test_places_are_those_of_all_runs() -> None:
    assert RUNS.places.tolist() == PLACES
    assert RUNS.rows == len(PLACES)
    assert joined([]).places.tolist() == []


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_chunks_have_every_place_once_and_not_too_many(most: int) -> None:
    chunks = list(RUNS.chunks(most))
    assert [place for chunk in chunks for place in chunk.places.tolist()] == PLACES
    assert all(0 < chunk.rows <= most for chunk in chunks)
    whose = np.concatenate([chunk.which.repeat(chunk.length) for chunk in chunks])
    assert whose.tolist() == RUNS.which.repeat(RUNS.length).tolist()
    assert list(joined([]).chunks(most)) == []


@pytest.mark.parametrize("rows", [1, 2, 4, 50])
def test_a_cut_takes_the_first_rows_of_each_run(rows: int) -> None:
    head, rest = RUNS.cut(rows)
    assert head.length.tolist() == [min(rows, length) for length in (2, 1, 9, 4)]
    assert sorted([*head.places.tolist(), *rest.places.tolist()]) == sorted(PLACES)
    assert (rest.length > 0).all()


def test_slices_tell_whose_place_it_is() -> None:
    found = list(in_chunks(np.array([0, 5]), np.array([3, 7]), 2))
    assert [(places.tolist(), group.tolist()) for places, group in found] == [
        ([0, 1], [0, 0]), ([2, 5], [0, 1]), ([6], [1]),
    ]  # fmt: skip
