"""What expression trees compute: Polars expressions, types, the columns they read.

A tree is data (`tree.py`, whose names can be had from here too): it can be compared, hashed, traced to its
columns and printed. `to_polars` turns it into the expression that does the work, with the functions of
`functions.py`. Aggregate functions are in `aggregate.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from anabranch.errors import LanguageError, suggest
from anabranch.language.functions import CONSTANTS, FUNCTIONS, misuse
from anabranch.language.shorthand import ALIASES, SHORTHANDS
from anabranch.language.tree import (
    COMPARISONS,
    INFIX,
    TYPES,
    Call,
    Column,
    Expression,
    Literal,
    Named,
    Scalar,
    col,
    lift,
    lit,
    when,
)


def call(function: str, *arguments: Any) -> Expression:
    """A named scalar function, e.g. call("upper", col("name")); `FUNCTIONS` lists them."""
    name = ALIASES.get(function, function)
    if name not in FUNCTIONS and name not in SHORTHANDS:
        known = {*FUNCTIONS, *SHORTHANDS, *ALIASES}
        raise LanguageError(f"There is no function '{function}'.{suggest(function, known)}")
    parts = tuple(lift(argument) for argument in arguments)
    if name in SHORTHANDS:
        least, most = arity(name)
        if not least <= len(parts) <= most:
            raise LanguageError(f"{name.upper()} {takes(name)}, got {len(parts)}.")
        return SHORTHANDS[name](*parts)
    return Call(name, parts)


def arity(function: str) -> tuple[int, float]:
    """The least and the greatest number of arguments."""
    made = SHORTHANDS.get(function) or FUNCTIONS[function]
    wanted = inspect.signature(made).parameters.values()
    if any(part.kind is part.VAR_POSITIONAL for part in wanted):
        return 1, float("inf")
    return sum(part.default is part.empty for part in wanted), len(wanted)


def takes(function: str) -> str:
    """`takes 1 argument`, `takes 1 to 2 arguments`."""
    least, most = arity(function)
    if most == float("inf"):
        return "takes one or more arguments"
    count = str(least) if least == most else f"{least} to {most}"
    return f"takes {count} argument{'' if count == '1' else 's'}"


GROWING = frozenset(("+", "-", "*", "//", "%", "<<", "negate", "abs", "mod", "power"))
"""Functions whose value may need more bits than what they are made of."""
NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)


def to_polars(expression: Expression, schema: Mapping[str, pl.DataType] | None = None) -> pl.Expr:
    """The Polars expression that evaluates this one over a frame with this schema.

    Whole numbers are computed with in 64 bits, however narrow their columns are: Polars alone would let
    them wrap around in silence.
    """
    match expression:
        case Column(name):
            return pl.col(name)
        case Literal(value):
            return pl.lit(value, pl.Int64) if type(value) is int else pl.lit(value)
        case Call("cast", (inner, Literal(type_name))):
            return to_polars(inner, schema).cast(TYPES[str(type_name)])
        case Call("in", (inner, *options)):
            values = [option.value for option in options if isinstance(option, Literal)]
            known = to_polars(inner, schema).is_in([value for value in values if value is not None])
            # SQL: x IN (…, NULL) is NULL, not false, when no other value matches
            return pl.when(known).then(True) if None in values else known
        case Call(function, (first, second)) if function in COMPARISONS and schema:
            return FUNCTIONS[function](*_in_one_zone((first, second), schema))
        case Call(function, arguments):
            return FUNCTIONS[function](*_arguments(function, arguments, schema))
    raise LanguageError(f"'{expression}' cannot be evaluated as a column expression.")


def _arguments(
    function: str, arguments: tuple[Expression, ...], schema: Mapping[str, pl.DataType] | None
) -> Iterator[Any]:
    """The arguments as the function wants them: Polars expressions, some of them plain values."""
    for place, argument in enumerate(arguments):
        if place not in CONSTANTS.get(function, ()):
            computed = to_polars(argument, schema)
            widened = function in GROWING and schema and _is_narrow(argument, schema)
            yield computed.cast(pl.Int64) if widened else computed
            continue
        value = argument.value if isinstance(argument, Literal) else argument
        wanted = misuse(function, place, value)
        if wanted:
            raise LanguageError(
                f"argument {place + 1} of {function.upper()} is {argument}; expected a constant: {wanted}."
            )
        yield value


def _in_one_zone(
    sides: tuple[Expression, Expression], schema: Mapping[str, pl.DataType]
) -> list[pl.Expr]:
    """Both sides of a comparison; a time without a zone is taken to be in that of the other side."""
    computed = [to_polars(side, schema) for side in sides]
    names = [name for side in sides for name in columns_of(side)]
    if not any(isinstance(schema[name], pl.Datetime) for name in names):
        return computed
    empty = pl.DataFrame(schema=dict(schema))
    kinds = [empty.select(value=side).schema["value"] for side in computed]
    zones = [kind.time_zone for kind in kinds if isinstance(kind, pl.Datetime)]
    zone = next((zone for zone in zones if zone), None)
    return [
        side.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
        if zone and isinstance(kind, pl.Datetime) and kind.time_zone is None
        else side
        for side, kind in zip(computed, kinds, strict=True)
    ]


def _is_narrow(expression: Expression, schema: Mapping[str, pl.DataType]) -> bool:
    """Whether it is a whole number of fewer than 64 bits."""
    if isinstance(expression, Column):
        return schema[expression.name] in NARROW
    if isinstance(expression, Literal) or not any(
        schema[name] in NARROW for name in columns_of(expression)
    ):
        return False
    if isinstance(expression, Call) and expression.function in GROWING:
        return False  # made of wide ones
    empty = pl.DataFrame(schema=dict(schema))
    return empty.select(value=to_polars(expression, schema)).schema["value"] in NARROW


def columns_of(expression: Expression) -> Iterator[str]:
    """The names of the columns an expression reads."""
    match expression:
        case Column(name):
            yield name
        case Call(_, arguments):
            for argument in arguments:
                yield from columns_of(argument)


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """The expression with columns replaced, as when a query reads another query's columns."""
    match expression:
        case Column(name):
            return columns.get(name, expression)
        case Call(function, arguments):
            return Call(function, tuple(substitute(part, columns) for part in arguments))
    return expression


def type_of(expression: Expression, schema: Mapping[str, pl.DataType], where: str) -> pl.DataType:
    """The type of an expression over columns of these types, or a LanguageError naming the fault."""
    for name in columns_of(expression):
        if name not in schema:
            raise LanguageError(f"{where}: column '{name}' is not found.{suggest(name, schema)}")
    # Of a wide schema, as above joins, only what is read: making empty columns takes time
    schema = {name: schema[name] for name in columns_of(expression)}
    try:
        frame = pl.DataFrame(schema=schema).select(value=to_polars(expression, schema))
    except pl.exceptions.PolarsError as error:
        kinds = ", ".join(
            f"{name} {schema[name]}" for name in dict.fromkeys(columns_of(expression))
        )
        # The lines after the first are about Polars' own expressions
        reason = (str(error).splitlines() or [""])[0]
        raise LanguageError(
            f"{where}: '{expression}' cannot be computed from {kinds or 'constants'}: {reason}"
        ) from error
    _check_comparisons(expression, schema, where)
    kind = frame.schema["value"]
    if kind in (pl.Int128, pl.UInt128):
        raise LanguageError(
            f"{where}: '{expression}' needs 128 bits, which no column has. Cast its unsigned columns "
            "first: CAST(x AS BIGINT)."
        )
    return kind


def _check_comparisons(
    expression: Expression, schema: Mapping[str, pl.DataType], where: str
) -> None:
    """Refuses to compare a time with a number, which Polars would do by its own count of time."""
    if not isinstance(expression, Call):
        return
    for part in expression.arguments:
        _check_comparisons(part, schema, where)
    if expression.function in COMPARISONS:
        empty = pl.DataFrame(schema=dict(schema))
        kinds = [
            empty.select(value=to_polars(p, schema)).schema["value"] for p in expression.arguments
        ]
        if any(kind.is_temporal() for kind in kinds) and any(kind.is_numeric() for kind in kinds):
            raise LanguageError(
                f"{where}: '{expression}' compares {' with '.join(map(str, kinds))}. Compare with a "
                "time: a datetime in Python, TIMESTAMP '2026-01-31 12:00:00' in SQL."
            )


__all__ = [
    "COMPARISONS", "FUNCTIONS", "INFIX", "TYPES", "Call", "Column", "Expression", "Literal", "Named",
    "Scalar", "arity", "call", "col", "columns_of", "lift", "lit", "substitute", "takes", "to_polars",
    "type_of", "when",
]  # fmt: skip
