"""What expression trees compute: Polars expressions, types, the columns they read.

A tree is data (`tree.py`, whose names can be had from here too): it can be compared, hashed, traced to its
columns and printed. `to_polars` turns it into the expression that does the work, with the functions of
`functions.py`. Aggregate functions are in `aggregate.py`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import polars as pl

from anabranch.errors import LanguageError, suggest
from anabranch.language.functions import FUNCTIONS
from anabranch.language.inference import kind_of
from anabranch.language.kinds import TYPES, instance_of, type_named
from anabranch.language.lowering import columns_of, lower
from anabranch.language.shorthand import ALIASES, SHORTHANDS
from anabranch.language.spelling import COMPARISONS, INFIX, INTERNAL
from anabranch.language.tree import (
    Call,
    Column,
    Expression,
    Literal,
    Named,
    Scalar,
    col,
    lift,
    lit,
    parts_of,
    when,
)


def call(function: str, *arguments: Any) -> Expression:
    """A named scalar function, e.g. call("upper", col("name")); `FUNCTIONS` lists them."""
    if not isinstance(function, str):
        raise LanguageError(f"call() takes the name of a function as a text, not {function!r}.")
    name = ALIASES.get(function, function)
    if name not in FUNCTIONS and name not in SHORTHANDS:
        known = {*FUNCTIONS, *SHORTHANDS, *ALIASES} - INTERNAL
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


def to_polars(expression: Expression, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """The Polars expression that evaluates this one over a frame with this schema."""
    return lower(expression, schema).expr


def substitute(expression: Expression, columns: Mapping[str, Expression]) -> Expression:
    """The expression with columns replaced, as when a query reads another query's columns."""
    changed: dict[int, Expression] = {}
    for part in parts_of(expression):
        new = part
        if isinstance(part, Column):
            new = columns.get(part.name, part)
        elif isinstance(part, Call):
            arguments = tuple(changed[id(inner)] for inner in part.arguments)
            if any(one is not other for one, other in zip(arguments, part.arguments, strict=True)):
                new = Call(part.function, arguments)
        changed[id(part)] = new
    return changed[id(expression)]


def type_of(expression: Expression, schema: Mapping[str, pl.DataType], where: str) -> pl.DataType:
    """The type of an expression over columns of these types, or a LanguageError naming the fault."""
    for name in columns_of(expression):
        if name not in schema:
            raise LanguageError(f"{where}: column '{name}' is not found.{suggest(name, schema)}")
    try:
        kind = kind_of(expression, schema)
    except LanguageError as error:
        raise LanguageError(f"{where}: {error}") from error
    if _too_wide(kind):
        raise LanguageError(
            f"{where}: '{expression}' needs 128 bits, which no column has. Cast its unsigned columns "
            "first: CAST(x AS BIGINT)."
        )
    return kind


def _too_wide(kind: pl.DataType) -> bool:
    """Whether values of this type, or what is in them, are whole numbers that no column can have."""
    if isinstance(kind, pl.List):
        return _too_wide(instance_of(kind.inner))
    if isinstance(kind, pl.Struct):
        return any(_too_wide(instance_of(field.dtype)) for field in kind.fields)
    return kind in (pl.Int128, pl.UInt128)


__all__ = [
    "COMPARISONS", "FUNCTIONS", "INFIX", "TYPES", "Call", "Column", "Expression", "Literal", "Named",
    "Scalar", "arity", "call", "col", "columns_of", "lift", "lit", "parts_of", "substitute", "takes",
    "to_polars", "type_named", "type_of", "when",
]  # fmt: skip
