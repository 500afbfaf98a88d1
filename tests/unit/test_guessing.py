"""What other shapes would do, where no sample has counted it: from what is kept, and what comes."""

from __future__ import annotations

import numpy as np
import pytest

from anabranch.adapt.policies.guessing import InputFlow, guessed, on_the_way
from anabranch.adapt.policies.plans import Split, splits
from anabranch.adapt.policies.ways import Affected, choose_way
from anabranch.language.shape import read_shape
from anabranch.settings import AUTO, MOVING_STATE, PARALLEL_TRACK

AB, BC, ABC = ((0,), (1,)), ((1,), (2,)), ((0,), (1,), (2,))
STEADY = [InputFlow(rows=1000, fresh=100, epochs=10)] * 3
KEPT = {(0, 1): 10_000.0}
"""A hundredth of all pairs."""


def at(split: Split) -> int:
    return splits(3).index(split)


def test_inputs_are_taken_to_suit_each_other_as_those_do_that_are_kept() -> None:
    found = guessed(STEADY, KEPT)
    assert found is not None
    assert found.kept[at(BC)] == pytest.approx(10_000)
    assert found.made[at(BC)] == pytest.approx(2 * 100 * 1000 / 100)
    assert found.kept[at(ABC)] == pytest.approx(1000**3 / 100**2)
    assert list(found.fresh) == [100, 100, 100]


def test_of_three_kept_inputs_two_pairs_have_to_suit() -> None:
    found = guessed(STEADY, {(0, 1, 2): 1000**3 / 100**2})
    assert found is not None
    assert found.kept[at(AB)] == pytest.approx(10_000)


def test_nothing_is_guessed_where_nothing_is_kept() -> None:
    assert guessed(STEADY, {}) is None
    assert guessed([InputFlow(0, 100, 10)] * 3, KEPT) is None


def test_steady_streams_stay_as_they_are_on_the_way() -> None:
    found = guessed(STEADY, KEPT)
    assert found is not None
    assert np.allclose(on_the_way(found, STEADY, 20).made, found.made)


def test_after_a_rush_there_is_less_on_the_way() -> None:
    fallen = [InputFlow(1000, 100, 10), InputFlow(1000, 5, 10), InputFlow(1000, 5, 10)]
    found = guessed(fallen, KEPT)
    assert found is not None
    later = on_the_way(found, fallen, 20)
    # A quarter of the time as many as now on average, then what comes in ten epochs
    rows = 0.25 * 1000 + 0.75 * 5 * 10
    assert later.made[at(BC)] == pytest.approx(2 * 5 * rows / 100)
    assert list(later.kept) == list(found.kept), "what is made at once is made of what is there now"


@pytest.mark.parametrize(("fresh", "protocol"), [(100, MOVING_STATE), (5, PARALLEL_TRACK)])
def test_the_way_follows_what_is_guessed(fresh: float, protocol: str) -> None:
    """With steady streams state is moved; where B and C have fallen off a track costs less."""
    flows = [InputFlow(1000, 100, 5), InputFlow(1000, fresh, 5), InputFlow(1000, fresh, 5)]
    counted = guessed(flows, {(0, 1): 50_000.0})
    assert counted is not None
    known = Affected(
        3000, 100 + 2 * fresh, 10, counted=counted, meanwhile=on_the_way(counted, flows, 10)
    )
    before, after = read_shape("((0,1),2)", 3), read_shape("(0,(1,2))", 3)
    assert choose_way(AUTO, before, after, known).protocol == protocol
