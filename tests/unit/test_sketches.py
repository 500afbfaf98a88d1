"""Approximate aggregates: exact while they are small, within their bounds when they are large."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from anabranch import approx_distinct, approx_quantile
from anabranch.language.aggregate import AggregateCall
from anabranch.operators.functions import finish, partials_for
from anabranch.operators.grouping import Groups, reduce
from anabranch.state.segment import LOCATOR


def value_of(call: AggregateCall, *parts: pl.Series) -> float | int | None:
    """The aggregate over one group whose rows come in parts, each part reduced by itself first."""
    (partial,) = partials = partials_for([call.alias("value")], pl.Schema())
    assert partial.argument
    reduced = []
    for part in parts:
        rows = pl.DataFrame({LOCATOR: pl.zeros(len(part), pl.UInt64, eager=True)})
        rows = rows.with_columns(partial.prepare(part).alias(partial.argument))
        reduced.append(reduce(Groups(rows, np.array([0])), [], partials, merge=False))
    merged = reduce(Groups(pl.concat(reduced), np.array([0])), [], partials, merge=True)
    value: float | int | None = finish(merged, partials, ["value"])["value"][0]
    return value


def cut(values: pl.Series, parts: int) -> list[pl.Series]:
    size = -(-len(values) // parts)
    return [values[start : start + size] for start in range(0, len(values), size)]


@pytest.mark.parametrize("size", [16, 64, 1024])
def test_distinct_values_below_the_size_are_counted_exactly(size: int) -> None:
    for number in (1, size // 2, size - 1):
        values = pl.Series([n % number for n in range(3 * size)] + [None])
        assert value_of(approx_distinct("x", size), *cut(values, 5)) == number


def test_no_value_at_all() -> None:
    nothing = pl.Series([None, None], dtype=pl.Int64)
    assert value_of(approx_distinct("x"), nothing, nothing) == 0
    assert value_of(approx_quantile("x", 0.5), nothing, nothing) is None


@pytest.mark.parametrize("size", [64, 1024])
@pytest.mark.parametrize("number", [2_000, 100_000])
def test_many_distinct_values_within_the_bound(size: int, number: int) -> None:
    """The standard error is 1/sqrt(size): on average within it, and never beyond four times it."""
    errors = []
    for trial in range(20):
        values = pl.Series(range(trial * number, (trial + 1) * number))
        found = value_of(approx_distinct("x", size), *cut(values, 4))
        assert found is not None
        errors.append(abs(found - number) / number * size**0.5)
    assert max(errors) < 4, errors
    assert np.mean(np.square(errors)) ** 0.5 < 1.5, errors


def test_a_merged_sketch_is_that_of_all_values() -> None:
    values = pl.Series([f"value {n % 5000}" for n in range(20_000)])
    whole = value_of(approx_distinct("x", 256), values)
    for parts in (2, 7, 50):
        assert value_of(approx_distinct("x", 256), *cut(values, parts)) == whole


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_quantiles_of_few_values_are_exact(fraction: float) -> None:
    values = pl.Series(np.random.default_rng(1).permutation(101).astype(float))
    found = value_of(approx_quantile("x", fraction), *cut(values, 3))
    assert found is not None
    assert abs(found - fraction * 100) <= 1


@pytest.mark.parametrize("shape", ["even", "skewed", "sorted", "repeated"])
def test_the_rank_error_of_quantiles(shape: str) -> None:
    """KLL with k=200 promises 1.3% with 99% confidence; three times that is out of reach."""
    rng = np.random.default_rng(5)
    values = {
        "even": rng.random(50_000), "skewed": rng.exponential(1.0, 50_000) ** 4,
        "sorted": np.arange(50_000.0), "repeated": rng.integers(0, 10, 50_000).astype(float),
    }[shape]  # fmt: skip
    ordered = np.sort(values)
    for fraction in (0.01, 0.1, 0.5, 0.9, 0.99):
        found = value_of(approx_quantile("x", fraction), *cut(pl.Series(values), 25))
        low = np.searchsorted(ordered, found, "left") / len(values)
        high = np.searchsorted(ordered, found, "right") / len(values)
        assert low - 0.04 <= fraction <= high + 0.04, (shape, fraction, found)


def test_quantiles_skip_null_and_nan() -> None:
    values = pl.Series([None, float("nan"), 1.0, 2.0, 3.0, None])
    assert value_of(approx_quantile("x", 0.5), values, values) == 2.0
