"""Sums of floats are the same bits however rows were cut, ordered and merged."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch import Session, avg, sum_
from anabranch.operators.float_sum import ONES, PLACE, added, put_together, taken_apart
from anabranch.testing.sources import EpochSource

FINITE = st.floats(allow_nan=False, allow_infinity=False)
ONE_GROUP = np.array([0])


def whole_value(top: np.ndarray, places: list[np.ndarray], row: int) -> Fraction:
    number = sum(int(place[row]) << (PLACE * (2 - n)) for n, place in enumerate(places))
    return Fraction(number) * Fraction(2) ** ((int(top[row]) - 2 - ONES) * PLACE)


@given(st.lists(FINITE | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_a_number_taken_apart_is_that_number(values: list[float | int]) -> None:
    floats = [value for value in values if isinstance(value, float)]
    integers = [value for value in values if isinstance(value, int)]
    for numbers, kind in ((floats, np.float64), (integers, np.int64)):
        column = np.array(numbers, dtype=kind)
        top, places = taken_apart(column)
        for row, value in enumerate(numbers):
            assert whole_value(top, places, row) == Fraction(value)
        if kind is np.float64:
            assert put_together(top, places).tolist() == numbers


@given(st.lists(FINITE.filter(lambda x: abs(x) < 1e300), min_size=1), st.randoms())
def test_no_order_and_no_cut_changes_a_sum(values: list[float], random: object) -> None:
    sums = set()
    for _ in range(4):
        random.shuffle(values)
        edges = sorted({0, *(random.randrange(len(values)) for _ in range(3))})
        parts = added(*taken_apart(np.array(values)), np.array(edges))
        sums.add(float(put_together(*added(*parts, ONE_GROUP))[0]))
    assert len(sums) == 1
    exact, largest = math.fsum(values), max(map(abs, values))
    assert abs(sums.pop() - exact) <= max(abs(exact) * 2**-52, len(values) * largest * 2**-63)


def test_small_values_are_not_lost_beside_one_that_leaves_again() -> None:
    values = np.array([1e9, 0.1, -1e9, 0.2])
    top, places = added(*taken_apart(values), ONE_GROUP)
    assert put_together(top, places)[0] == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("function", [sum_, avg])
def test_results_have_the_same_bits_at_any_number_of_sites_and_epochs(function) -> None:
    generator = np.random.default_rng(3)
    count = 5_000
    rows = pl.DataFrame({
        "time": np.zeros(count, dtype=np.int64),
        "k": generator.integers(0, 5, count),
        "x": generator.normal(size=count) * 10.0 ** generator.integers(-12, 12, count),
    }).with_columns(pl.when(pl.col("k") == 4).then(None).otherwise(pl.col("x")).alias("x"))  # fmt: skip
    outcomes = []
    for sites, epochs in ((1, 1), (4, 7), (3, 50)):
        cuts = np.array_split(np.arange(count), epochs)
        frames = [rows[cut[0] : cut[-1] + 1] for cut in cuts]
        session = Session.in_process(sites=sites)
        stream = session.stream("r", EpochSource(frames), ordered="time")
        grouped = stream.group_by("time", "k").agg(function("x").alias("s"))
        session.query("q", grouped)
        run = session.start(sinks={"q": "memory"}, at_end="close")
        assert run.await_termination()
        outcomes.append(sorted(run.results("q").select("k", "s").rows()))
    assert outcomes[0] == outcomes[1] == outcomes[2]
    assert outcomes[0][4] == (4, None)


def test_infinity_and_nan_are_what_they_are_in_sql() -> None:
    inf, nan = math.inf, math.nan
    groups = {1: [1.0, inf], 2: [inf, -inf], 3: [nan, 1.0], 4: [-inf, 2.0], 5: [0.0, -0.0]}
    frame = pl.DataFrame(
        {"time": 0, "k": k, "x": x} for k, values in groups.items() for x in values
    )
    session = Session.in_process(sites=2)
    stream = session.stream("r", EpochSource([frame[:5], frame[5:]]), ordered="time")
    session.query("q", stream.group_by("time", "k").agg(sum_("x").alias("s")))
    run = session.start(sinks={"q": "memory"}, at_end="close")
    assert run.await_termination()
    sums = dict(run.results("q").select("k", "s").rows())
    assert (sums[1], sums[4], sums[5]) == (inf, -inf, 0.0)
    assert math.isnan(sums[2])
    assert math.isnan(sums[3])
