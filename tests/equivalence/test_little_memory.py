"""Random queries on sites with so little memory that state is put aside again and again: DuckDB's results.

As in `test_aggregates.py` and `test_joins.py`, with moves, stops, crashes and other numbers of sites. Results
may come later than with memory for all of it, so they are compared together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_aggregates import Drawn

from anabranch.language.join import JOINS
from anabranch.operators import owed
from anabranch.state import group
from anabranch.testing.cases import Case, draw_case
from anabranch.testing.chaos import gives_updates
from anabranch.testing.joins import SHAPES, draw_join_case
from anabranch.testing.trial import Leg, Trial, check, draw_trial
from helpers import examples

BUDGETS = (1, 1, 300, 1_000, 4_000)
"""Bytes that a site may keep."""
SITES = (1, 2, 3)


@st.composite
def cases(draw: Any, joins: bool, kinds: Sequence[str] = JOINS) -> tuple[Case, Trial]:
    chooser = Drawn(draw)
    case = draw_join_case(chooser, kinds, SHAPES) if joins else draw_case(chooser)
    trial = draw_trial(chooser, case.epochs, SITES)
    settings = {
        **trial.settings,
        "site_memory_bytes": chooser.choice(BUDGETS),
        "spill_share": chooser.choice([0.3, 0.0, 1.0]),
        "spill_first": chooser.choice(["poor", "rich", "any"]),
        "policy": chooser.choice(["none", "hybrid", "lazy-disk", "active-disk"]),
    }
    return case, replace(trial, settings=settings, close=True, by_epoch=False)


@pytest.mark.parametrize("joins", [True, False], ids=["joins", "aggregates"])
def test_results_are_those_of_the_oracle(joins: bool) -> None:
    spilled = 0

    @given(cases(joins))
    @examples(280, part=7)
    def examine(drawn: tuple[Case, Trial]) -> None:
        nonlocal spilled
        case, trial = drawn
        if any(gives_updates(query.node) for query in case.queries.values()):
            # What an epoch has changed is told in that epoch: such rows cannot come later
            trial = replace(trial, settings={**trial.settings, "site_memory_bytes": None})
        outcome = check(case, trial)
        spilled += any(manifest.spilled for manifest in outcome.manifests)

    examine()
    assert spilled > 5, "hardly anything was put aside"


def test_slots_that_are_too_large_to_be_looked_at_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces of a few rows, most slots are looked at block by block."""
    choices = 0
    as_it_is = owed._choices

    def counted(*given: Any) -> Iterator[list[pl.DataFrame]]:
        nonlocal choices
        for rows in as_it_is(*given):
            choices += 1
            yield rows

    @given(cases(joins=True, kinds=("inner",)))
    @examples(60)
    def examine(drawn: tuple[Case, Trial]) -> None:
        case, trial = drawn
        if not any(gives_updates(query.node) for query in case.queries.values()):
            check(case, trial)

    monkeypatch.setattr(owed, "_choices", counted)
    monkeypatch.setattr(group, "LEAST_PIECE", 200)
    examine()
    assert choices > 100, "hardly any slot was too large"


def test_other_numbers_of_sites_while_state_is_put_aside() -> None:
    @given(st.data())
    @examples(40)
    def examine(data: st.DataObject) -> None:
        chooser = Drawn(data.draw)
        case = draw_join_case(chooser, ("inner",), SHAPES)
        legs = tuple(
            Leg(sites, step, at) for sites, step, at in ((2, "stop", 1), (5, "before-commit", 2))
        )
        settings = {"site_memory_bytes": 1, "partitions_per_site": 3}
        check(case, Trial((*legs, Leg(1)), settings, by_epoch=False))

    examine()
