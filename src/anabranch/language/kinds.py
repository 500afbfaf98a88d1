"""The types of expressions, each found once from those of its arguments.

A text is checked from the inside out, and every operator asks for the types of its sides: were they
found anew from the columns each time, a chain of n operators would take n times n steps.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TypeAlias

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Call, Column, Expression, Literal, type_of

Kinds: TypeAlias = dict[int, tuple[Expression, pl.DataType]]
"""By the identity of an expression, which is kept with its type so that it stays what it is."""
_Part: TypeAlias = tuple[pl.DataType | type, object]

_PLAIN = (bool, int, float)
"""Constants whose type does not depend on their value."""
_BY_VALUE = ("cast", "try_cast", "round", "date_trunc", "split_part", "right", "in")
"""Functions of which the value of a constant says what they yield, or whether they can."""


def kind_of(
    expression: Expression, schema: Mapping[str, pl.DataType], kinds: Kinds, where: str
) -> pl.DataType:
    """The type of an expression; `kinds` has those of others over the same schema, and gets its own."""
    waiting = [expression]
    while waiting:
        part = waiting[-1]
        if id(part) in kinds:
            waiting.pop()
            continue
        below = part.arguments if isinstance(part, Call) else ()
        missing = [inner for inner in below if isinstance(inner, Call) and id(inner) not in kinds]
        if missing:
            waiting += missing
            continue
        kinds[id(part)] = part, _kind(part, schema, kinds, where)
        waiting.pop()
    return kinds[id(expression)][1]


def _kind(
    expression: Expression, schema: Mapping[str, pl.DataType], kinds: Kinds, where: str
) -> pl.DataType:
    if not isinstance(expression, Call):
        return type_of(expression, schema, where)
    parts: list[_Part] = []
    for argument in expression.arguments:
        if isinstance(argument, Call):
            parts.append((kinds[id(argument)][1], None))
        elif isinstance(argument, Literal):
            fixed = type(argument.value) in _PLAIN and expression.function not in _BY_VALUE
            parts.append((type(argument.value), 1 if fixed else argument.value))
        elif isinstance(argument, Column) and argument.name in schema:
            parts.append((schema[argument.name], None))
    try:
        if len(parts) == len(expression.arguments):
            return _call_kind(expression.function, tuple(parts))
    except (LanguageError, TypeError):
        pass  # with the names of columns, it can be said what is wrong
    return type_of(expression, schema, where)


@functools.lru_cache(maxsize=4096)
def _call_kind(function: str, parts: tuple[_Part, ...]) -> pl.DataType:
    columns: dict[str, pl.DataType] = {}
    arguments: list[Expression] = []
    for place, (kind, value) in enumerate(parts):
        if isinstance(kind, type) and not issubclass(kind, pl.DataType):
            arguments.append(Literal(kind(value) if kind in _PLAIN else value))  # type: ignore[arg-type]
        else:
            columns[f"#{place}"] = kind  # type: ignore[assignment]
            arguments.append(Column(f"#{place}"))
    return type_of(Call(function, tuple(arguments)), columns, "")
