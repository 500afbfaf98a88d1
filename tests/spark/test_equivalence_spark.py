"""Random query sets on real Spark: the same cases as on the twin, few of them.

Maps change with every epoch, and some runs are stopped or crash and go on with other numbers of sites. A
failure names the seed; `draw_case(SeededChooser(seed))` or `draw_join_case` gives the case again.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from anabranch import Session, UserAggregate, approx_quantile, col, count, first, hop, sum_
from anabranch.settings import Settings
from anabranch.testing.aggregates import DOUBLED
from anabranch.testing.cases import (
    NUMBERS,
    Case,
    SeededChooser,
    Shape,
    draw_case,
    make_frames,
    streams,
)
from anabranch.testing.chooser import Chooser
from anabranch.testing.joins import draw_join_case
from anabranch.testing.trial import Leg, Outcome, SessionMaker, Trial, check, draw_trial
from helpers import in_soak

pytestmark = pytest.mark.spark

SEEDS = [*range(7), *in_soak(range(7, 20))]


@pytest.fixture
def on_spark(spark: SparkSession) -> SessionMaker:
    def make(sites: int, settings: Settings) -> Session:
        return Session(spark, sites, settings)

    return make


@pytest.mark.parametrize("seed", SEEDS)
def test_random_query_sets(seed: int, on_spark: SessionMaker) -> None:
    run_seed(draw_case, seed, on_spark)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_joins(seed: int, on_spark: SessionMaker) -> None:
    run_seed(draw_join_case, seed, on_spark)


def run_seed(draw: Callable[[Chooser], Case], seed: int, on_spark: SessionMaker) -> None:
    chooser = SeededChooser(seed)
    case = draw(chooser)
    trial = draw_trial(chooser, case.epochs, sites=(1, 2, 3))
    moving = Trial(trial.legs, trial.settings, moves=seed, close=trial.close)
    print(f"seed {seed}\n{case.describe()}\n{moving}")
    check(case, moving, on_spark)


def test_moves_compaction_and_sub_aggregation_happen(on_spark: SessionMaker) -> None:
    (rows,) = streams(["rows"], NUMBERS)
    frames = make_frames(Shape(900, 6, 0.2, 60, nulls=True, keys=3, begin=0, seed=1), NUMBERS)
    flows = rows.group_by(hop(60, 20), "i", "t").agg(
        count().alias("n"), sum_("v").alias("sum"), first("t").alias("first"),
        approx_quantile("f", 0.5).alias("mid"), DOUBLED("v").alias("twice"),
    )  # fmt: skip
    totals = flows.group_by("window_start").agg(sum_("n").alias("n"))
    case = Case({"rows": frames}, {"rows": 40}, {"flows": flows, "totals": totals})
    values = {"compaction_fan": 2, "compaction_floor_rows": 1, "partitions_per_site": 4,
              "combine_reduction": 0.1}  # fmt: skip
    legs = (Leg(3, "stop", 2), Leg(2))
    outcome: Outcome = check(case, Trial(legs, values, moves=1), on_spark)
    assert max(outcome.tiers()) >= 1
    assert "flows@1" in outcome.combining()
    assert outcome.moved > 10
    assert outcome.manifests[-1].streams["rows"].late > 0


def test_a_user_aggregate_of_lambdas(on_spark: SessionMaker) -> None:
    """Functions that no worker can import travel with the job."""
    import pyarrow as pa
    import pyarrow.compute as pc

    largest = UserAggregate(
        "doubled",  # the name under which the oracle has its SQL
        lambda: 0,
        lambda states, values, groups: pc.add(
            states,
            pa.table({"g": groups, "v": pc.multiply(pc.fill_null(values, 0), 2)})
            .group_by("g", use_threads=False)
            .aggregate([("v", "sum")])["v_sum"]
            .combine_chunks(),
        ),
        lambda states, parts, groups: pc.add(
            states,
            pa.table({"g": groups, "v": parts})
            .group_by("g", use_threads=False)
            .aggregate([("v", "sum")])["v_sum"]
            .combine_chunks(),
        ),
        lambda states: pc.add(states, 1),
        pa.int64(),
        pa.int64(),
    )
    (rows,) = streams(["rows"], NUMBERS)
    frames = make_frames(Shape(60, 2, 1.0, 5, nulls=True, keys=3, begin=0, seed=1), NUMBERS)
    query = rows.group_by((col("time") // 10).alias("tb"), "i").agg(largest("v").alias("twice"))
    check(Case({"rows": frames}, {"rows": 5}, {"made": query}), Trial(), on_spark)


def test_large_orders_are_broadcast(
    on_spark: SessionMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones go along with the tasks; in the end it is the same."""
    monkeypatch.setattr("anabranch.engine.spark.ALONG", 0)
    run_seed(draw_case, 3, on_spark)
    run_seed(draw_join_case, 4, on_spark)
