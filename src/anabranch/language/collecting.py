"""Aggregates that keep values of their group: lists, texts of them, exact quantiles, the row of an extreme.

Their arguments are structs, so that several values of a row travel together; a row that FILTER leaves out is
NULL as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.aggregate_call import AggregateCall, column_of
from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.kinds import instance_of, orderable, type_words

PAIRED = (
    "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_count",
)  # fmt: skip
"""Aggregates of two numbers of each row."""


def array_agg(
    argument: Expression | str,
    order: Sequence[tuple[Expression, bool]] = (),
    distinct: bool = False,
) -> AggregateCall:
    """All values of the group as a list: by these expressions (True: descending), then by time and arrival.

    With `distinct`, each value once, ascending, without NULL.
    """
    if distinct:
        return AggregateCall("collect_set", (column_of(argument),))
    return AggregateCall("array_agg", (_kept(argument, order),), _directions(order))


def string_agg(
    argument: Expression | str, separator: str = ",", order: Sequence[tuple[Expression, bool]] = ()
) -> AggregateCall:
    """The texts of the group, joined: by these expressions (True: descending), then by time and arrival."""
    return AggregateCall("string_agg", (_kept(argument, order),), _directions(order) + separator)


def max_by(value: Expression | str, by: Expression | str) -> AggregateCall:
    """The value of the row whose `by` is greatest; of several the least value. NULLs are left out."""
    return AggregateCall("max_by", (_pair("by", by, "value", value),))


def min_by(value: Expression | str, by: Expression | str) -> AggregateCall:
    """The value of the row whose `by` is least; of several the least value. NULLs are left out."""
    return AggregateCall("min_by", (_pair("by", by, "value", value),))


def quantile_cont(argument: Expression | str, fraction: float = 0.5) -> AggregateCall:
    """The exact quantile, between two values if need be; all values of a group are kept until it closes."""
    return AggregateCall("quantile_cont", (column_of(argument),), _fraction(fraction))


def quantile_disc(argument: Expression | str, fraction: float = 0.5) -> AggregateCall:
    """The least value that at least this fraction of the values is not above."""
    return AggregateCall("quantile_disc", (column_of(argument),), _fraction(fraction))


def paired(function: str, y: Expression | str, x: Expression | str) -> AggregateCall:
    """One of `PAIRED`, as regr_slope(y, x); rows in which one is NULL are left out."""
    return AggregateCall(function, (_pair("y", y, "x", x),))


def sum_type(argument: pl.DataType) -> pl.DataType:
    """The type of a sum of values of this type."""
    if argument.is_float():
        return pl.Float64()
    if isinstance(argument, pl.Decimal):
        return pl.Decimal(38, argument.scale)
    return pl.Int64()


def _fraction(fraction: float) -> float:
    if not 0.0 <= fraction <= 1.0:
        raise LanguageError(f"A quantile needs a fraction from 0 to 1, not {fraction}.")
    return float(fraction)


def _directions(order: Sequence[tuple[Expression, bool]]) -> str:
    """A letter for each expression, and a bar: a for ascending, d for descending."""
    return "".join("d" if descending else "a" for _, descending in order) + "|"


def _kept(argument: Expression | str, order: Sequence[tuple[Expression, bool]]) -> Call:
    parts: list[Expression] = [Literal("value"), column_of(argument)]
    for number, (expression, _) in enumerate(order):
        parts += [Literal(f"o{number}"), expression]
    return Call("struct", tuple(parts))


def _pair(first: str, one: Expression | str, second: str, other: Expression | str) -> Call:
    return Call("struct", (Literal(first), column_of(one), Literal(second), column_of(other)))


def number_expected(call: AggregateCall, argument: pl.DataType) -> str:
    advice = (
        " CAST it; or, if a file has marks such as NA for what is missing, give its stream nulls='NA'."
        if argument == pl.String
        else ""
    )
    return f"{call} needs a number, but {call.arguments[0]} is {type_words(argument)}.{advice}"


def require_order(call: AggregateCall, kind: pl.DataType) -> None:
    """Refuses an aggregate that compares values of this type, if they have no order."""
    if not orderable(kind):
        raise LanguageError(
            f"{call} compares values of type {type_words(kind)}, which have no order: take a field or an "
            "element of them."
        )


def collected_type(call: AggregateCall, argument: pl.DataType) -> pl.DataType | None:
    """The type of the values of an aggregate of this module; None if it is of another."""
    name = call.function
    fields = (
        {field.name: instance_of(field.dtype) for field in argument.fields}
        if isinstance(argument, pl.Struct)
        else {}
    )
    if name in ("array_agg", "string_agg", "max_by", "min_by"):
        for part, kind in fields.items():
            if part != "value":
                require_order(call, kind)
    if name in PAIRED:
        for one in fields.values():
            if not one.is_numeric() and one != pl.Null:
                raise LanguageError(
                    f"{name.upper()} needs two numbers, but one is {type_words(one)}."
                )
        return pl.Int64() if name == "regr_count" else pl.Float64()
    match name:
        case "array_agg":
            return pl.List(fields["value"])
        case "collect_set":
            return pl.List(argument)
        case "string_agg":
            if fields["value"] not in (pl.String, pl.Null):
                raise LanguageError(
                    f"STRING_AGG needs texts, but this is {type_words(fields['value'])}: CAST it to VARCHAR."
                )
            return pl.String()
        case "max_by" | "min_by":
            return fields["value"]
        case "quantile_cont" | "sum_distinct" | "avg_distinct":
            if not argument.is_numeric() and argument != pl.Null:
                raise LanguageError(number_expected(call, argument))
            if name == "sum_distinct":
                return sum_type(argument)
            return pl.Float64()
        case "quantile_disc":
            require_order(call, argument)
            return argument
    return None
