"""Aggregate functions as they are asked for: `count()`, `sum_("len").alias("bytes")`, user aggregates.

What each keeps per group and how parts are merged is in `operators/functions.py`.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from anabranch.errors import LanguageError
from anabranch.language.aggregate_call import (
    ALIASES,
    FUNCTIONS,
    AggregateCall,
    NamedAggregate,
    UserAggregate,
    column_of,
    known_as,
)
from anabranch.language.checked import checked
from anabranch.language.collecting import (
    collected_type,
    number_expected,
    require_order,
    sum_type,
)
from anabranch.language.expression import Expression
from anabranch.language.kinds import EXPECTED, is_supported


@checked
def count(argument: Expression | str | None = None) -> AggregateCall:
    """COUNT(*), or with an argument the rows where it is not NULL."""
    return AggregateCall("count", () if argument is None else (column_of(argument),))


@checked
def count_distinct(argument: Expression | str) -> AggregateCall:
    """The number of different values that are not NULL, exactly."""
    return AggregateCall("count_distinct", (column_of(argument),))


@checked
def sum_(argument: Expression | str) -> AggregateCall:
    """The sum, NULL where there is no value. An integer sum beyond 64 bits is an error."""
    return AggregateCall("sum", (column_of(argument),))


@checked
def min_(argument: Expression | str) -> AggregateCall:
    """The least value, NULL where there is none."""
    return AggregateCall("min", (column_of(argument),))


@checked
def max_(argument: Expression | str) -> AggregateCall:
    """The greatest value, NULL where there is none."""
    return AggregateCall("max", (column_of(argument),))


@checked
def avg(argument: Expression | str) -> AggregateCall:
    """The mean of the values that are not NULL."""
    return AggregateCall("avg", (column_of(argument),))


@checked
def var(argument: Expression | str) -> AggregateCall:
    """The sample variance, NULL for fewer than two values."""
    return AggregateCall("var", (column_of(argument),))


@checked
def stddev(argument: Expression | str) -> AggregateCall:
    """The sample standard deviation, NULL for fewer than two values."""
    return AggregateCall("stddev", (column_of(argument),))


@checked
def var_pop(argument: Expression | str) -> AggregateCall:
    """The variance of the values as all there are, NULL where there is none."""
    return AggregateCall("var_pop", (column_of(argument),))


@checked
def stddev_pop(argument: Expression | str) -> AggregateCall:
    """The standard deviation of the values as all there are, NULL where there is none."""
    return AggregateCall("stddev_pop", (column_of(argument),))


@checked
def bit_or(argument: Expression | str) -> AggregateCall:
    """All values or-ed together (GSQL's OR_AGGR)."""
    return AggregateCall("bit_or", (column_of(argument),))


@checked
def bit_and(argument: Expression | str) -> AggregateCall:
    """All values and-ed together."""
    return AggregateCall("bit_and", (column_of(argument),))


@checked
def bit_xor(argument: Expression | str) -> AggregateCall:
    """All values xor-ed together."""
    return AggregateCall("bit_xor", (column_of(argument),))


@checked
def first(argument: Expression | str) -> AggregateCall:
    """The value of the group's first row in time order (ties: order of arrival)."""
    return AggregateCall("first", (column_of(argument),))


@checked
def last(argument: Expression | str) -> AggregateCall:
    """The value of the group's last row in time order (ties: order of arrival)."""
    return AggregateCall("last", (column_of(argument),))


@checked
def approx_distinct(argument: Expression | str, size: int = 1024) -> AggregateCall:
    """About how many different values: exact below `size`, then within about 1/sqrt(size)."""
    if size < 16:
        raise LanguageError(f"approx_distinct needs a size of at least 16, not {size}.")
    return AggregateCall("approx_distinct", (column_of(argument),), size)


@checked
def approx_quantile(argument: Expression | str, fraction: float) -> AggregateCall:
    """About the value below which this fraction of the values lies (KLL sketch, rank error 1.3%)."""
    if not 0.0 <= fraction <= 1.0:
        raise LanguageError(f"approx_quantile needs a fraction from 0 to 1, not {fraction}.")
    return AggregateCall("approx_quantile", (column_of(argument),), float(fraction))


_SPREADS = ("var", "stddev", "var_pop", "stddev_pop")


def result_type(call: AggregateCall, argument: pl.DataType | None) -> pl.DataType:
    """The type of an aggregate's values, or a LanguageError if the argument does not fit."""
    if call.user is not None:
        kind = pl.Series(pa.array([], call.user.result_type)).dtype
        if not is_supported(kind):
            raise LanguageError(f"{call} has results of type {kind}; {EXPECTED}.")
        return kind
    name = call.function
    if name in ("count", "count_distinct", "approx_distinct"):
        return pl.Int64()
    assert argument is not None
    collected = collected_type(call, argument)
    if collected is not None:
        return collected
    numeric = argument.is_numeric() or argument == pl.Null
    if name in ("sum", "avg", *_SPREADS, "approx_quantile") and not numeric:
        raise LanguageError(number_expected(call, argument))
    if name.startswith("bit_") and not argument.is_integer():
        raise LanguageError(f"{call} needs an integer, but {call.arguments[0]} is {argument}.")
    if not is_supported(argument) and not isinstance(argument, pl.Duration):
        raise LanguageError(f"{call} cannot be computed, for {call.arguments[0]} is {argument}.")
    if name in ("min", "max"):
        require_order(call, argument)
    if name in ("avg", *_SPREADS, "approx_quantile"):
        return pl.Float64()
    return sum_type(argument) if name == "sum" else argument


__all__ = [
    "ALIASES", "FUNCTIONS", "AggregateCall", "NamedAggregate", "UserAggregate", "approx_distinct",
    "approx_quantile", "avg", "bit_and", "bit_or", "bit_xor", "count", "count_distinct", "first", "known_as",
    "last", "max_", "min_", "result_type", "stddev", "stddev_pop", "sum_", "var", "var_pop",
]  # fmt: skip
