"""Which shape a join should have: the cost of each, from what a sample counts; and a run that follows it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anabranch import Session
from anabranch.adapt.actions import Replan
from anabranch.adapt.policies.plans import (
    ENOUGH,
    HORIZON,
    KEPT,
    Counted,
    Plans,
    propose_shape,
    splits,
    usual_shape,
    well_counted,
)
from anabranch.control.observed import JoinWork, Observed
from anabranch.engine.run import Run
from anabranch.language.shape import JoinShape, flat_shape, read_shape
from anabranch.testing.join_shapes import draw_join_shape
from anabranch.testing.sources import EpochSource
from helpers import oracle, plain

ALL = ("m-way", "((0,1),2)", "((0,2),1)", "(0,(1,2))")


def counted(inputs: int, seed: int) -> Counted:
    """Anything that a sample may have shown, as long as splits of the same inputs make the same."""
    rng = np.random.default_rng(seed)
    known = splits(inputs)
    wholes = [tuple(sorted(one for part in split for one in part)) for split in known]
    made = {whole: float(rng.integers(0, 10_000)) for whole in wholes}
    each = np.array([made[whole] for whole in wholes])
    looked = each + rng.integers(0, 10_000, len(known))
    return Counted(100.0, rng.integers(0, 1000, inputs).astype(float), looked, each, each * 3)


@pytest.mark.parametrize("inputs", [3, 4])
def test_the_best_shape_is_the_best_of_all(inputs: int) -> None:
    draw = random.Random(5)
    every = {draw_join_shape(draw, inputs) for _ in range(2_000)} | {flat_shape(inputs)}
    assert len(every) == {3: 4, 4: 26}[inputs]
    for seed in range(40):
        plans = Plans(inputs, counted(inputs, seed))
        assert plans.cost(plans.best()) == pytest.approx(min(map(plans.cost, every)))


@pytest.mark.parametrize("inputs", [5, 6])
def test_with_many_inputs_trees_that_add_one_at_a_time_are_looked_at(inputs: int) -> None:
    for seed in range(5):
        plans = Plans(inputs, counted(inputs, seed))
        assert plans.cost(plans.best()) <= plans.cost(read_shape("left-deep", inputs))
        assert plans.cost(plans.best()) <= plans.cost(flat_shape(inputs))


def shown(made: float, looked: float, kept: float = 0.0) -> Counted:
    """Three inputs of which 1 and 2 make so much together, and everything else much more."""
    known = splits(3)
    each = np.full(len(known), 50_000.0)
    each[known.index(((1,), (2,)))] = made
    pairs = np.full(len(known), looked)
    pairs[known.index(((0,), (1, 2)))] = pairs[known.index(((1,), (2,)))] = made
    held = np.full(len(known), kept)
    return Counted(100.0, np.full(3, 1000.0), pairs, each, held)


def test_a_change_must_be_clearly_better_and_soon_paid_for() -> None:
    flat, tree = flat_shape(3), read_shape("(0,(1,2))", 3)
    better = propose_shape(3, shown(100, 200_000), flat)
    assert better is not None
    assert better.shape == tree
    assert 0.2 < better.expected < 0.6
    assert propose_shape(3, shown(100, 200_000), tree) is None
    assert propose_shape(3, shown(100, 20_000), flat) is None, "too little to be sure of"
    gain = 200_000 * HORIZON / KEPT
    assert propose_shape(3, shown(100, 200_000, 0.5 * gain), flat) is not None
    assert propose_shape(3, shown(100, 200_000, 2 * gain), flat) is None, "too much to make again"


def test_of_shapes_about_as_good_it_is_the_usual_one() -> None:
    flat, tree, other = (read_shape(text, 3) for text in ("m-way", "(0,(1,2))", "((0,1),2)"))
    few = shown(100, 200_000)
    usual = usual_shape(3, {0: few, 64: few})
    assert usual == tree
    better = propose_shape(3, few, other, flat)
    assert better is not None
    assert better.shape == tree, "the flat one costs more than 1.3 times as much"
    alike = shown(100, 20_000)
    better = propose_shape(3, alike, other, flat)
    assert better is not None
    assert better.shape == flat
    assert usual_shape(3, {}) is None


def test_partitions_of_which_little_is_known_go_by_all() -> None:
    one, other = counted(3, 1), counted(3, 2)
    few = Counted(ENOUGH - 1, other.fresh, other.looked, other.made, other.kept)
    found = dict(well_counted({0: one, 64: few}))
    assert found[0] is one
    assert found[64].fresh.tolist() == (one.fresh + few.fresh).tolist()


# -- a run ------------------------------------------------------------------------------------------

SQL = (
    "SELECT a.t AS t, a.v AS v, b.v AS w, c.v AS x FROM a "
    "JOIN b ON a.k = b.k AND b.t BETWEEN a.t - 40 AND a.t + 40 "
    "JOIN c ON a.k = c.k AND c.t BETWEEN a.t - 40 AND a.t + 40 AND {}"
)


def stream(seed: int, rows: int, epochs: int) -> list[pl.DataFrame]:
    rng = np.random.default_rng(seed)
    return [
        pl.DataFrame(
            {
                "t": np.sort(rng.integers(20 * epoch, 20 * epoch + 20, rows)),
                "k": rng.integers(0, 30, rows),
                "v": rng.integers(0, 100, rows),
            }
        )
        for epoch in range(epochs)
    ]


def run_it(
    folder: Path, condition: str, settings: dict[str, Any], rows: tuple[int, int] = (400, 150)
) -> tuple[Run, Any]:
    few = {"b": stream(2, rows[1], 12), "c": stream(3, rows[1], 12)}
    inputs = {"a": stream(1, rows[0], 12), **few}
    common = {"fsync": False, "partitions_per_site": 2, "policy": "none", "replan_effort": 1e9}
    session = Session.in_process(2, {**common, **settings})
    for name, epochs in inputs.items():
        session.stream(name, EpochSource(epochs), ordered="t", lateness=0)
    session.query("q", SQL.format(condition))
    run = session.start(sinks={"q": "memory"}, checkpoint=folder, at_end="close")
    assert run.await_termination(120)
    whole = {name: pl.concat(epochs) for name, epochs in inputs.items()}
    return run, oracle(SQL.format(condition), **whole)


@pytest.mark.parametrize("plans", ["partition", "site"])
def test_a_run_comes_to_the_shape_that_suits_what_it_sees(tmp_path: Path, plans: str) -> None:
    """Of b and c few rows suit each other: what they make together is worth keeping."""
    run, expected = run_it(tmp_path, "b.v > c.v + 92", {"plans": plans, "join_shape": "((0,1),2)"})
    assert plain(run.results("q")) == expected
    lines = [line for line in run.history() if line["kind"] == "replan"]
    assert {(line["before"], line["shape"]) for line in lines} == {("((0,1),2)", "(0,(1,2))")}
    assert sum(len(line["partitions"]) for line in lines) == 4
    for line in lines:
        assert line["accepted"]
        assert line["costExpected"] < 0.77
        assert line["costMeasured"] > 0
        assert list(line["steps"]) == [
            "asked", "slots known", "paused", "drained", "handed over", "matched and dropped",
            "made again", "resumed",
        ]  # fmt: skip
        assert line["steps"]["asked"] == line["epoch"] < line["steps"]["resumed"]
    used = run.recent_progress[-2]["customMetrics"]["adaptation"]["shapes"]["q@2"]
    assert used == {"(0,(1,2))": 4}


class Choice:
    """The choice of a run that has ended, given samples by hand: it is in the flat shape."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._run, _ = run_it(folder, "b.v > c.v + 92", {"replan_effort": 0.0, **settings}, (6, 4))
        self.governor = self._run._governor
        (self.name,) = self.governor.holdings.shapes.inputs
        self.exchange = self._run.plan.subqueries[self.name].exchange
        self.map = self.governor.maps[self.exchange]

    def look(self, counted: Counted, starts: Sequence[int]) -> list[Replan]:
        """What is done after a look that has shown the same of these partitions."""
        manifest = self._run._checkpoint.manifest
        seen = Observed(
            manifest.epoch, 2, 1.0, {self.exchange: self.map}, {}, {}, {},
            joins={self.name: JoinWork(1000, 10_000, 1.0)},
            sampled={self.name: dict.fromkeys(starts, counted)},
        )  # fmt: skip
        maps = {**self.governor.maps, self.exchange: self.map}
        lines = self.governor.planning.decide(seen, maps, (), manifest)
        return [line.action for line in lines if isinstance(line.action, Replan)]

    def doubtful(self) -> bool:
        return self.name in self.governor.planning._doubtful


NO_MATTER = Counted(100.0, np.full(3, 10.0), *(np.zeros(len(splits(3))) for _ in range(3)))
"""What costs about the same in every shape."""
FLAT, TO_JOIN = "(0,1,2)", "(0,(1,2))"


@pytest.mark.parametrize("first", [True, False], ids=["the first", "the last"])
def test_a_site_has_one_shape_though_others_were_brought(tmp_path: Path, first: bool) -> None:
    """A partition that was moved, or asked for by hand, comes to the shape of its site."""
    choice = Choice(tmp_path, {"plans": "site", "partitions_per_site": 3})
    mine = choice.map.partitions_of(0).tolist()
    odd = choice.map.starts[mine[0 if first else -1]]
    shapes = choice.governor.holdings.shapes
    shapes.replan(choice.name, [choice.map.range_at(odd)], TO_JOIN, "moving state")
    starts = choice.map.starts
    assert not choice.look(NO_MATTER, starts)
    assert choice.doubtful()
    (done,) = choice.look(NO_MATTER, [s for s in starts if s != odd])
    assert (done.partitions, done.before, done.shape) == ((odd,), TO_JOIN, FLAT)
    assert done.cause == "its site has this shape: it should cost 1.00 times as much"


def test_a_partition_that_was_merged_has_one_shape(tmp_path: Path) -> None:
    choice = Choice(tmp_path, {"plans": "partition"})
    begin, end = choice.map.range_at(choice.map.starts[0])
    shapes, middle = choice.governor.holdings.shapes, (begin + end) // 2
    shapes.replan(choice.name, [(middle, end - 1)], TO_JOIN, "moving state")
    assert not choice.look(NO_MATTER, [begin])
    (done,) = choice.look(NO_MATTER, [begin])
    assert done.partitions == (begin,)
    assert {done.before, done.shape} == {FLAT, TO_JOIN}


@pytest.mark.parametrize("plans", ["partition", "site"])
def test_what_is_not_there_any_more_is_not_in_doubt(tmp_path: Path, plans: str) -> None:
    choice = Choice(tmp_path, {"plans": plans})
    first = choice.map.starts[0]
    good = splits(3).index(((1,), (2,)))
    better = replace(NO_MATTER, looked=np.where(np.arange(len(splits(3))) == good, 0.0, 1e6))
    shapes = choice.governor.holdings.shapes
    shapes.replan(choice.name, [choice.map.range_at(first)], "((0,1),2)", "moving state")
    assert not choice.look(better, [first])
    assert choice.doubtful()
    shapes.replan(choice.name, [choice.map.range_at(first)], FLAT, "moving state")
    if plans == "site":
        choice.map = choice.map.moved(dict.fromkeys(choice.map.starts, 1))
    # Nothing is counted of it any more: it says nothing, and is no reason to look again
    choice.look(NO_MATTER, choice.map.starts[2:])
    assert not choice.doubtful()


def test_a_run_stays_flat_where_nothing_is_worth_keeping(tmp_path: Path) -> None:
    run, expected = run_it(tmp_path, "b.v < 101", {}, rows=(60, 40))
    assert plain(run.results("q")) == expected
    assert not [line for line in run.history() if line["kind"] == "replan"]


def test_fixed_plans_are_not_even_looked_at(tmp_path: Path) -> None:
    run, expected = run_it(tmp_path, "b.v > c.v + 92", {"plans": "fixed"})
    assert plain(run.results("q")) == expected
    assert not [line for line in run.history() if line["kind"] == "replan"]


def test_a_split_of_a_shape_is_one_of_those_that_are_counted() -> None:
    for text in ALL:
        shape = read_shape(text, 3)
        assert isinstance(shape, JoinShape)
        assert Plans(3, counted(3, 0)).cost(shape) < float("inf")
