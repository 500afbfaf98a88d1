"""Query sets change while partitions are moved and paused by hand, and runs stop or crash in the middle.

Results must be DuckDB's, for what is kept and for what is new.
"""

from __future__ import annotations

import pytest

from anabranch.testing.cases import SeededChooser
from anabranch.testing.evolution import draw_evolution, run_evolution
from helpers import in_soak

pytestmark = pytest.mark.chaos

GROUPS = [
    range(10),
    *in_soak([range(10, 20), range(20, 70), range(70, 120)]),
]


@pytest.mark.parametrize("seeds", GROUPS, ids=lambda seeds: f"{seeds.start}..{seeds.stop - 1}")
def test_changes_in_the_middle_of_moves(seeds: range) -> None:
    for seed in seeds:
        try:
            run_evolution(draw_evolution(SeededChooser(seed), meddling=True))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
