"""`simulate plans`: the model of the join, and what policies and protocol make of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from anabranch.adapt.policies.plans import Plans
from anabranch.language.shape import read_shape
from anabranch.simulate.plan_model import PlanModel, PlanScenario
from anabranch.simulate.plans import WAYS, PlanSimulation

SCENE = replace(PlanScenario(), seconds=60.0)


def test_what_a_tree_makes_is_what_its_streams_have() -> None:
    model = PlanModel(SCENE)
    model.take_in(2.0)
    model.take_in(4.0)
    both = model.kept + model.fresh
    whole = np.prod(both, axis=0) / model.keys**2
    assert model.held((0, 1, 2)) + model.made((0, 1, 2)) == pytest.approx(whole)
    pairs = both[0] * both[1] / model.keys
    assert model.held((0, 1)) + model.made((0, 1)) == pytest.approx(pairs)
    assert model.results == pytest.approx(float(whole.sum()))


def test_rows_leave_the_window() -> None:
    model = PlanModel(replace(SCENE, window=4.0))
    for epoch in range(1, 10):
        model.take_in(2.0 * epoch)
    assert model.kept.sum() == pytest.approx(1200, rel=0.15)


def test_what_samples_show_is_what_the_model_does() -> None:
    model = PlanModel(SCENE)
    for epoch in range(1, 25):
        model.take_in(2.0 * epoch)
    counted = model.counted()
    assert {*counted} == set(range(7))
    made = sum(float(one.made[-1]) for one in counted.values())
    assert made == pytest.approx(float(model.made((0, 1, 2)).sum()))
    tree, flat = read_shape("((0,1),2)", 3), read_shape("m-way", 3)
    plans = Plans(3, counted[0])
    # After the rates have fallen both say that the first plan is the dear one
    assert plans.cost(tree) > plans.cost(flat)
    assert model.work(tree).sum() > model.work(flat).sum()


def test_both_together_give_most_and_keep_least() -> None:
    runs = {name: PlanSimulation(SCENE, *way).run() for name, way in WAYS.items()}
    results = {name: run["results"] for name, run in runs.items()}
    assert results["both"] == max(results.values()) > 2 * results["none"]
    assert runs["none"]["moves"] == runs["none"]["partitions_changed"] == 0
    assert runs["balancing"]["moves"] > 0 == runs["balancing"]["partitions_changed"]
    assert runs["reoptimising"]["partitions_changed"] >= 105
    assert runs["both"]["most_in_system"] < runs["balancing"]["most_in_system"]
