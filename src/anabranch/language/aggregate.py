"""Aggregate functions as they are asked for: `count()`, `sum_("len").alias("bytes")`, user aggregates.

What each keeps per group and how parts are merged is in `operators/functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import polars as pl
import pyarrow as pa

from anabranch.errors import LanguageError, suggest
from anabranch.language.checked import checked
from anabranch.language.expression import Column, Expression, Literal, Scalar, lift, when
from anabranch.language.kinds import EXPECTED, is_supported

FUNCTIONS = (
    "count", "count_distinct", "sum", "min", "max", "avg", "var", "stddev", "bit_or", "bit_and",
    "bit_xor", "first", "last", "approx_distinct", "approx_quantile",
)  # fmt: skip

ALIASES = {
    "or_aggr": "bit_or", "and_aggr": "bit_and", "xor_aggr": "bit_xor", "mean": "avg",
    "variance": "var", "var_samp": "var", "stddev_samp": "stddev",
    "approx_count_distinct": "approx_distinct",
}  # fmt: skip
"""Other names in texts: those of GSQL, and those of other engines for the very same."""


def known_as(name: str) -> str | None:
    """The aggregate that a text calls by this name, in any case; None if there is none."""
    name = name.lower()
    name = ALIASES.get(name, name)
    return name if name in FUNCTIONS else None


@dataclass(frozen=True, eq=False)
class UserAggregate:
    """An aggregate given by four functions over Arrow columns, vectorised over all groups.

    `init()` is the state of an empty group, a Python value of `state_type`;
    `update(states, values, groups)` returns the states after the rows: `values[i]` belongs to group
    `groups[i]`, groups ascend from 0, and `states` holds `init()` for each of them;
    `merge(states, parts, groups)` does the same with states in place of rows;
    `finish(states)` turns states into results of `result_type`. NULLs reach `update` as they are.

    >>> import pyarrow.compute as pc
    >>> def add(states, values, groups):
    ...     table = pa.table({"g": groups, "v": values}).group_by("g", use_threads=False)
    ...     return pc.add(states, table.aggregate([("v", "sum")])["v_sum"].combine_chunks())
    >>> doubled = UserAggregate("doubled", lambda: 0, add, add,
    ...                         lambda states: pc.multiply(states, 2), pa.int64(), pa.int64())
    >>> print(doubled("len"))
    DOUBLED(len) -> int64 -> int64
    """

    name: str
    init: Callable[[], Any]
    update: Callable[[pa.Array, pa.Array, pa.Array], pa.Array]
    merge: Callable[[pa.Array, pa.Array, pa.Array], pa.Array]
    finish: Callable[[pa.Array], pa.Array]
    state_type: pa.DataType
    result_type: pa.DataType

    def __post_init__(self) -> None:
        if self.name in FUNCTIONS:
            raise LanguageError(f"'{self.name}' is a built-in aggregate: give yours another name.")

    def __call__(self, argument: Expression | str) -> AggregateCall:
        return AggregateCall(self.name, (_column(argument),), user=self)


@dataclass(frozen=True, eq=False)
class AggregateCall:
    """One aggregate function applied to expressions; name its value with `alias`."""

    function: str
    arguments: tuple[Expression, ...]
    parameter: Scalar = None
    user: UserAggregate | None = None

    def __post_init__(self) -> None:
        if self.user is None and self.function not in FUNCTIONS:
            raise LanguageError(
                f"There is no aggregate '{self.function}'.{suggest(self.function, FUNCTIONS)}"
            )

    def alias(self, name: str) -> NamedAggregate:
        return NamedAggregate(name, self)

    def filter(self, condition: Expression) -> AggregateCall:
        """The same over the rows for which a condition is true, as SQL's FILTER (WHERE …).

        >>> print(count().filter(Column("len") > 1000))
        COUNT(CASE WHEN len > 1000 THEN 1 ELSE NULL END)
        """
        if self.function in ("first", "last") or self.user is not None:
            raise LanguageError(
                f"FILTER is not available for {self.function.upper()}, which counts NULL as a value: "
                "use WHERE."
            )
        value = self.arguments[0] if self.arguments else Literal(1)
        return replace(self, arguments=(when((condition, value)),))

    def __str__(self) -> str:
        inner = ", ".join(str(argument) for argument in self.arguments) or "*"
        extra = "" if self.parameter is None else f", {self.parameter!s}"
        kind = f" -> {self.user.state_type} -> {self.user.result_type}" if self.user else ""
        return f"{self.function.upper()}({inner}{extra}){kind}"


@dataclass(frozen=True)
class NamedAggregate:
    """An aggregate with the name its values get."""

    name: str
    call: AggregateCall

    def __str__(self) -> str:
        return f"{self.call} AS {self.name}"


@checked
def count(argument: Expression | str | None = None) -> AggregateCall:
    """COUNT(*), or with an argument the rows where it is not NULL."""
    return AggregateCall("count", () if argument is None else (_column(argument),))


@checked
def count_distinct(argument: Expression | str) -> AggregateCall:
    """The number of different values that are not NULL, exactly."""
    return AggregateCall("count_distinct", (_column(argument),))


@checked
def sum_(argument: Expression | str) -> AggregateCall:
    """The sum, NULL where there is no value. An integer sum beyond 64 bits is an error."""
    return AggregateCall("sum", (_column(argument),))


@checked
def min_(argument: Expression | str) -> AggregateCall:
    """The least value, NULL where there is none."""
    return AggregateCall("min", (_column(argument),))


@checked
def max_(argument: Expression | str) -> AggregateCall:
    """The greatest value, NULL where there is none."""
    return AggregateCall("max", (_column(argument),))


@checked
def avg(argument: Expression | str) -> AggregateCall:
    """The mean of the values that are not NULL."""
    return AggregateCall("avg", (_column(argument),))


@checked
def var(argument: Expression | str) -> AggregateCall:
    """The sample variance, NULL for fewer than two values."""
    return AggregateCall("var", (_column(argument),))


@checked
def stddev(argument: Expression | str) -> AggregateCall:
    """The sample standard deviation, NULL for fewer than two values."""
    return AggregateCall("stddev", (_column(argument),))


@checked
def bit_or(argument: Expression | str) -> AggregateCall:
    """All values or-ed together (GSQL's OR_AGGR)."""
    return AggregateCall("bit_or", (_column(argument),))


@checked
def bit_and(argument: Expression | str) -> AggregateCall:
    """All values and-ed together."""
    return AggregateCall("bit_and", (_column(argument),))


@checked
def bit_xor(argument: Expression | str) -> AggregateCall:
    """All values xor-ed together."""
    return AggregateCall("bit_xor", (_column(argument),))


@checked
def first(argument: Expression | str) -> AggregateCall:
    """The value of the group's first row in time order (ties: order of arrival)."""
    return AggregateCall("first", (_column(argument),))


@checked
def last(argument: Expression | str) -> AggregateCall:
    """The value of the group's last row in time order (ties: order of arrival)."""
    return AggregateCall("last", (_column(argument),))


@checked
def approx_distinct(argument: Expression | str, size: int = 1024) -> AggregateCall:
    """About how many different values: exact below `size`, then within about 1/sqrt(size)."""
    if size < 16:
        raise LanguageError(f"approx_distinct needs a size of at least 16, not {size}.")
    return AggregateCall("approx_distinct", (_column(argument),), size)


@checked
def approx_quantile(argument: Expression | str, fraction: float) -> AggregateCall:
    """About the value below which this fraction of the values lies (KLL sketch, rank error 1.3%)."""
    if not 0.0 <= fraction <= 1.0:
        raise LanguageError(f"approx_quantile needs a fraction from 0 to 1, not {fraction}.")
    return AggregateCall("approx_quantile", (_column(argument),), float(fraction))


def _column(argument: Expression | str) -> Expression:
    return Column(argument) if isinstance(argument, str) else lift(argument)


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
    numeric = argument.is_numeric() or argument == pl.Null
    if name in ("sum", "avg", "var", "stddev", "approx_quantile") and not numeric:
        raise LanguageError(f"{call} needs a number, but {call.arguments[0]} is {argument}.")
    if name.startswith("bit_") and not argument.is_integer():
        raise LanguageError(f"{call} needs an integer, but {call.arguments[0]} is {argument}.")
    if not is_supported(argument) and not isinstance(argument, pl.Duration):
        raise LanguageError(f"{call} cannot be computed, for {call.arguments[0]} is {argument}.")
    if name in ("avg", "var", "stddev", "approx_quantile"):
        return pl.Float64()
    if name == "sum":
        if argument.is_float():
            return pl.Float64()
        if isinstance(argument, pl.Decimal):
            return pl.Decimal(38, argument.scale)
        return pl.Int64()
    return argument
