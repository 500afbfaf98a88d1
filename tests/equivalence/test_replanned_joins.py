"""Joins of three to five inputs in every shape, changed again and again, must give what DuckDB gives.

Random shapes for random partitions before every epoch, mixed with other partition maps, stops, crashes and
restarts on other numbers of sites; in one of the tests also with state that is put aside and comes back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_aggregates import Drawn

from anabranch.settings import PLANS, TRANSITIONS
from anabranch.testing.cases import Case
from anabranch.testing.disturbances import Meddler
from anabranch.testing.invariants import check_invariants
from anabranch.testing.join_shapes import REPLANNING, draw_several_case
from anabranch.testing.spilling import SPILLING
from anabranch.testing.trial import Trial, check, draw_trial
from helpers import examples

SITES = (1, 2, 4)


@st.composite
def replanned(draw: Any, aside: bool = False) -> tuple[Case, Trial]:
    """A join and how it is run, with shapes that change."""
    chooser = Drawn(draw)
    case = draw_several_case(chooser)
    trial = draw_trial(chooser, case.epochs, SITES)
    settings = {
        **trial.settings,
        "plans": chooser.choice(PLANS),
        "replan_effort": chooser.choice([0.0, 1e9]),
        "transition": chooser.choice(TRANSITIONS),
        "join_shape": chooser.choice(["m-way", "left-deep"]),
    }
    kinds = REPLANNING
    if aside:
        kinds += SPILLING
        settings["site_memory_bytes"] = chooser.choice([1 << 40, 3_000, 600])
        trial = replace(trial, by_epoch=False, close=True)
    watchers = (check_invariants, Meddler(chooser.integer(0, 2**31), kinds))
    return case, replace(trial, settings=settings, watchers=watchers)


@given(replanned())
@examples(250, part=25)
def test_joins_that_change_their_shape(drawn: tuple[Case, Trial]) -> None:
    check(*drawn)


@given(replanned(aside=True))
@examples(250, part=25)
def test_joins_that_change_their_shape_while_state_is_put_aside(drawn: tuple[Case, Trial]) -> None:
    check(*drawn)
