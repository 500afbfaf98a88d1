"""When joins are looked at: what makes a look due, and what it may cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anabranch.control.looking import CREDIT, FIRST_COST, PATIENCE, SOONER, Looking, Looks, Mix
from anabranch.control.observed import JoinWork
from anabranch.routing.shaped import Shaped

MIX = Mix(10.0, (1000.0, 50.0, 50.0), (5000.0, 250.0, 250.0))
TREE = (Shaped(0, 64, "(0,(1,2))"),)
EFFORT = 0.02
PRICE = 0.1
WORK = JoinWork(rows=1100, pairs=11_000, seconds=1.0, kept=(5000.0, 250.0, 250.0))
ROWS = (1000.0, 50.0, 50.0)


def test_what_rows_are_like_differs_by_pairs_or_by_inputs() -> None:
    assert not MIX.differs(replace(MIX, pairs=18.0, rows=(2000.0, 110.0, 90.0)))
    assert MIX.differs(replace(MIX, pairs=25.0))
    assert MIX.differs(replace(MIX, rows=(50.0, 1000.0, 50.0)))
    assert not replace(MIX, rows=(1000.0, 1.0, 0.0)).differs(
        replace(MIX, rows=(990.0, 9.0, 8.0))
    ), "next to nothing"


def test_what_is_remembered_differs_later_than_what_comes() -> None:
    assert MIX.differs(replace(MIX, kept=(2000.0, 3000.0, 250.0)))
    assert not MIX.differs(replace(MIX, kept=(10_000.0, 500.0, 500.0))), "more of the same"


def test_pairs_of_another_shape_say_nothing() -> None:
    assert not MIX.differs(replace(MIX, pairs=500.0, shapes=TREE))
    assert MIX.differs(replace(MIX, rows=(50.0, 1000.0, 50.0), shapes=TREE))


def looked_at() -> Looks:
    """A join that was looked at once."""
    looks = Looks(PRICE)
    looks.take_in(WORK, ROWS, (), EFFORT)
    looks.looked(PRICE)
    return looks


def spend(looks: Looks, epochs: int, work: JoinWork = WORK) -> float:
    """The share of the time that looks take over so many epochs."""
    spent = 0.0
    for _ in range(epochs):
        wanted = looks.wanted(EFFORT, False)
        looks.take_in(work, ROWS, (), EFFORT)
        if wanted:
            looks.looked(PRICE)
            spent += PRICE
    return spent / epochs / work.seconds


def test_a_join_that_stays_as_it_is_is_looked_at_less_and_less() -> None:
    spent = spend(looked_at(), 1_000)
    assert 0.8 * EFFORT / PATIENCE < spent <= 1.2 * EFFORT / PATIENCE


def test_rows_that_become_others_end_the_patience() -> None:
    looks = looked_at()
    spend(looks, 1_000)
    assert looks.patience == PATIENCE
    looks.looked(PRICE)
    looks.take_in(WORK, (50.0, 1000.0, 50.0), (), EFFORT)
    assert looks.wanted(EFFORT, False)
    looks.looked(PRICE)
    assert looks.patience == 1


def test_a_look_that_was_held_up_does_not_keep_others_from_coming() -> None:
    looks = looked_at()
    looks.looked(100 * PRICE)
    assert looks.price <= 1.5 * PRICE
    assert looks.paid > -3 * PRICE
    for _ in range(20):
        looks.looked(4 * PRICE)
    assert looks.price == pytest.approx(4 * PRICE, rel=0.01), "what looks do take is found out"


def test_rows_that_are_always_otherwise_get_no_more_than_the_credit() -> None:
    looks, spent = looked_at(), 0.0
    for epoch in range(1_000):
        wanted = looks.wanted(EFFORT, doubtful=True)
        looks.take_in(replace(WORK, pairs=11_000 * (1 + 9 * (epoch % 2))), ROWS, (), EFFORT)
        if wanted:
            looks.looked(PRICE)
            spent += PRICE
    assert spent <= EFFORT * 1_000 + CREDIT * PRICE
    assert spent > EFFORT * 900


def test_a_first_look_comes_soon_and_the_next_when_rows_are_others() -> None:
    looks = Looks(PRICE)
    assert not looks.wanted(EFFORT, False), "nothing has been done yet"
    looks.take_in(WORK, ROWS, (), EFFORT)
    assert SOONER * EFFORT * WORK.seconds >= PRICE
    assert looks.wanted(EFFORT, False)
    looks.looked(PRICE)
    assert looks.anew
    looks.take_in(WORK, ROWS, (), EFFORT)
    assert not looks.wanted(EFFORT, False)
    assert looks.wanted(EFFORT, True), "what one look has shown is looked at again"
    looks.take_in(WORK, (50.0, 1000.0, 50.0), (), EFFORT)
    assert looks.wanted(EFFORT, False)
    looks.looked(PRICE)
    assert looks.anew
    # What is remembered follows later: another look, though what comes stays the same
    late = replace(WORK, kept=(500.0, 4750.0, 250.0))
    looks.take_in(late, (50.0, 1000.0, 50.0), (), EFFORT)
    assert looks.wanted(EFFORT, False)
    looks.looked(PRICE)
    looks.take_in(late, (50.0, 1000.0, 50.0), (), EFFORT)
    looks.looked(PRICE)
    assert not looks.anew, "nothing was otherwise between the two"


def test_a_change_of_shape_is_no_change_of_rows() -> None:
    looks = looked_at()
    work = replace(WORK, pairs=1_000_000)
    looks.take_in(work, ROWS, TREE, EFFORT)
    assert not looks.wanted(EFFORT, False), "with the first epoch comes the change itself"
    looks.take_in(replace(WORK, pairs=500), ROWS, TREE, EFFORT)
    looks.take_in(replace(WORK, pairs=500), ROWS, TREE, EFFORT)
    assert not looks.wanted(EFFORT, False)
    looks.take_in(replace(WORK, pairs=11_000), ROWS, TREE, EFFORT)
    assert looks.wanted(EFFORT, False), "now rows look at more pairs in the same shape"


@pytest.mark.parametrize(("effort", "expected"), [(0.0, set()), (1e9, {"q"})])
def test_joins_are_looked_at_by_the_effort_that_is_allowed(
    effort: float, expected: set[str]
) -> None:
    looking = Looking(effort)
    assert looking.wanted(["q"]) == set()
    looking.take_in("q", WORK, ROWS, (), sites=2)
    assert looking.wanted([]) == expected
    if expected:
        looking.looked("q", 3 * FIRST_COST)
        assert looking.anew("q")
