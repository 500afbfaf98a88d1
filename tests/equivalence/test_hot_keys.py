"""Hot slots on purpose: whatever is condensed before an aggregate or scattered below a join, results stay."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from anabranch.testing.cases import Case, draw_case
from anabranch.testing.chooser import SeededChooser
from anabranch.testing.disturbances import Meddling, condense, spread_out
from anabranch.testing.joins import draw_join_case
from anabranch.testing.trial import Outcome, Scene, Trial, check, draw_trial
from helpers import in_soak


def disturbed(case: Case, trial: Trial, seed: int) -> Counter[str]:
    """Runs a trial in which slots are taken for hot ones in every epoch; what was done to them."""
    draw, outcome = random.Random(seed), Outcome()

    def watch(scene: Scene) -> None:
        if scene.step == "begin":
            for _ in range(3):
                for disturb in (condense, spread_out):
                    disturb(Meddling(scene.run, draw))

    settings = {**trial.settings, "policy": "none", "combine_reduction": 1000.0}
    check(case, replace(trial, settings=settings, watchers=(watch,)), outcome=outcome)
    return Counter(decision["kind"] for decision in outcome.history)


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_aggregates_of_condensed_slots(start: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(start, start + 10):
        chooser = SeededChooser(seed)
        case = draw_case(chooser)
        done += disturbed(case, draw_trial(chooser, case.epochs), seed)
    assert done["condense"] > 5


@pytest.mark.parametrize("start", [0, 20, *in_soak([40, 60])])
def test_inner_joins_of_scattered_slots(start: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(start, start + 20):
        chooser = SeededChooser(seed)
        case = draw_join_case(chooser, ("inner",))
        done += disturbed(case, draw_trial(chooser, case.epochs), seed)
    assert done["scatter"] > 0
