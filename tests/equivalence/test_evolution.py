"""Query sets that change while they run: what is kept and what is new must be what DuckDB gives.

Every example is a case whose run is stopped, given other queries (added, dropped, renamed, with other
conditions, with and without backfill), crashed at some step of the first epoch, and gone on with.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, note
from hypothesis import strategies as st
from test_aggregates import Drawn

from anabranch.testing.evolution import Evolving, draw_evolution, run_evolution
from helpers import examples


@st.composite
def evolving(draw: Any) -> Evolving:
    return draw_evolution(Drawn(draw))


@given(evolving())
@examples(150)
def test_random_changes_of_random_query_sets(drawn: Evolving) -> None:
    note(drawn.case.describe())
    for phase in drawn.phases:
        note(str(phase))
    run_evolution(drawn)
