"""Hot slots on purpose: whatever is condensed before an aggregate or scattered below a join, results stay."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from anabranch.language.expression import call, col
from anabranch.testing.cases import NUMBERS, Case, Shape, draw_case, make_frames, streams
from anabranch.testing.chaos import recut
from anabranch.testing.chooser import SeededChooser
from anabranch.testing.disturbances import (
    Meddling,
    bring_back,
    condense,
    lay_anew,
    resize,
    spread_out,
)
from anabranch.testing.joins import draw_join_case
from anabranch.testing.trial import Leg, Outcome, Scene, Trial, check, draw_trial
from helpers import in_soak


def disturbed(case: Case, trial: Trial, seed: int) -> Counter[str]:
    """Runs a trial in which slots are taken for hot ones in every epoch; what was done to them."""
    draw = random.Random(seed)

    def watch(scene: Scene) -> None:
        if scene.step == "begin":
            for _ in range(3):
                for disturb in (condense, spread_out):
                    disturb(Meddling(scene.run, draw))
            if draw.random() < 0.5:
                bring_back(Meddling(scene.run, draw))

    return watched(case, trial, watch)


def watched(case: Case, trial: Trial, watch: Callable[[Scene], None]) -> Counter[str]:
    """Runs a trial in which nothing is decided but what the watcher asks for; what that was."""
    outcome = Outcome()
    settings = {**trial.settings, "policy": "none", "combine_reduction": 1000.0}
    check(case, replace(trial, settings=settings, watchers=(watch,)), outcome=outcome)
    return Counter(decision["kind"] for decision in outcome.history)


@pytest.mark.parametrize("start", [0, *in_soak([8, 16, 24, 32])])
def test_aggregates_of_condensed_slots(start: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(start, start + 8):
        chooser = SeededChooser(seed)
        case = draw_case(chooser)
        done += disturbed(case, draw_trial(chooser, case.epochs), seed)
    assert done["condense"] > 5


@pytest.mark.parametrize("start", [0, *in_soak(range(8, 80, 8))])
def test_inner_joins_of_scattered_slots(start: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(start, start + 8):
        chooser = SeededChooser(seed)
        case = draw_join_case(chooser, ("inner",))
        done += disturbed(case, draw_trial(chooser, case.epochs), seed)
    assert done["scatter"] > 0


@pytest.mark.parametrize("start", [100, *in_soak(range(104, 160, 4))])
@pytest.mark.parametrize("kind", ["three", "left", "right", "full", "semi", "anti"])
def test_other_joins_of_scattered_slots(kind: str, start: int) -> None:
    """Rows that meet nothing are told once, wherever what they could have met is; and back again."""
    done: Counter[str] = Counter()
    for seed in range(start, start + 4):
        chooser = SeededChooser(seed)
        kinds, shapes = (("inner",), ("three",)) if kind == "three" else ((kind,), ("rows",))
        case = recut(chooser, draw_join_case(chooser, kinds, shapes), 8)
        done += disturbed(case, draw_trial(chooser, case.epochs), seed)
    assert done["scatter"] > 6
    assert done["unscatter"] > 2


@pytest.mark.parametrize("start", [200, *in_soak(range(204, 240, 4))])
def test_joins_with_intermediates_of_scattered_slots(start: int) -> None:
    """Scattered slots keep nothing between inputs and results, and do so again when they are gathered."""
    done: Counter[str] = Counter()
    for seed in range(start, start + 4):
        chooser = SeededChooser(seed)
        case = recut(chooser, draw_join_case(chooser, ("inner",), ("three",)), 8)
        trial = draw_trial(chooser, case.epochs)
        shape = {"plans": "fixed", "join_shape": "left-deep"}
        done += disturbed(case, replace(trial, settings={**trial.settings, **shape}), seed)
    assert done["scatter"] > 6
    assert done["unscatter"] > 2


@pytest.mark.parametrize("seed", [1, *in_soak(range(2, 12))])
@pytest.mark.parametrize("kind", ["inner", "left", "right", "full", "semi", "anti"])
def test_what_rows_have_met_goes_with_them(kind: str, seed: int) -> None:
    """Marks of rows that met something before go to the cells, and those made there come back."""
    shape = Shape(40, 10, 1.0, 3, False, 3, 0, seed)
    frames = {
        name: make_frames(replace(shape, seed=2 * seed + number), NUMBERS)
        for number, name in enumerate(("one", "two"))
    }
    one, two = (query.select("time", "i", "v") for query in streams(list(frames), NUMBERS))
    # For long, but few of them: most rows that meet anything do so in a later epoch, or in none
    near = call("abs", col("time") - col("time_right")) <= 25
    condition = near & (col("v") % 7 == col("v_right") % 7)
    case = Case(
        frames, dict.fromkeys(frames, 5), {"met": one.join(two, on="i", how=kind, where=condition)},
        NUMBERS,
    )  # fmt: skip
    draw = random.Random(seed)

    def watch(scene: Scene) -> None:
        it = Meddling(scene.run, draw)
        if scene.step == "begin" and scene.epoch in (4, 8):
            for _ in range(9):
                spread_out(it)
        elif scene.step == "begin" and scene.epoch == 6:
            for _ in range(9):
                bring_back(it)

    trial = draw_trial(SeededChooser(seed), case.epochs, (4,))
    done = watched(case, replace(trial, legs=(Leg(4),), moves=None), watch)
    assert done["scatter"] > 2
    assert done["unscatter"] > 1


@pytest.mark.parametrize("start", [0, *in_soak(range(4, 60, 4))])
@pytest.mark.parametrize("shape", ["theta", "last rows"])
def test_grids_that_are_laid_anew(shape: str, start: int) -> None:
    done: Counter[str] = Counter()
    for seed in range(start, start + 4):
        chooser, draw = SeededChooser(seed), random.Random(seed)
        case = recut(chooser, draw_join_case(chooser, ("inner",), (shape,)), 8)

        def watch(scene: Scene, draw: random.Random = draw) -> None:
            if scene.step == "begin" and draw.random() < 0.6:
                lay_anew(Meddling(scene.run, draw))
            if scene.step == "begin" and draw.random() < 0.2:
                resize(Meddling(scene.run, draw))

        done += watched(case, replace(draw_trial(chooser, case.epochs), moves=None), watch)
    assert done["regrid"] > 2
