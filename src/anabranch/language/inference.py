"""The types of expressions, found from the inside out and each once.

A text is checked as it is read: were types found anew from the columns for every operator, a chain of n of
them would take n times n steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import polars as pl

from anabranch.language.lowering import lowered
from anabranch.language.spelling import COMPARISONS
from anabranch.language.tree import Call, Column, Expression
from anabranch.language.typed import Typed

Kinds: TypeAlias = dict[int, tuple[Expression, Typed]]
"""What is known of the values of expressions, by their identity; they are kept so that it stays theirs."""


_last: tuple[Mapping[str, pl.DataType], Kinds] = {}, {}
"""The schema that was last asked about, and what is known over it: texts are read, then made nodes of."""
MOST_KNOWN = 200_000


def _known_over(schema: Mapping[str, pl.DataType]) -> Kinds:
    global _last
    before, kinds = _last
    if (before is not schema and before != schema) or len(kinds) > MOST_KNOWN:
        kinds = {}
        _last = schema, kinds
    return kinds


def kind_of(expression: Expression, schema: Mapping[str, pl.DataType]) -> pl.DataType:
    """The type of an expression over columns of these types."""
    return typed_of(expression, schema).kind


def typed_of(expression: Expression, schema: Mapping[str, pl.DataType]) -> Typed:
    """The type of an expression, and its value if it is a constant."""
    kinds = _known_over(schema)
    waiting = [expression]
    while waiting:
        part = waiting[-1]
        below = part.arguments if isinstance(part, Call) else ()
        missing = [inner for inner in below if id(inner) not in kinds]
        if missing:
            waiting += reversed(missing)
            continue
        waiting.pop()
        if id(part) not in kinds:
            kinds[id(part)] = part, _kinded(part, schema, [kinds[id(inner)][1] for inner in below])
    return kinds[id(expression)][1]


_UNSEEN = pl.col("#")
"""In place of an expression of which only the type matters: those of Polars would grow to any depth."""


def _kinded(
    part: Expression, schema: Mapping[str, pl.DataType], arguments: Sequence[Typed]
) -> Typed:
    """The type of one part after its arguments, and its value if it is a constant."""
    if isinstance(part, Column):
        return Typed(_UNSEEN, schema[part.name])
    shape = _shape(part, arguments)
    if shape in _SEEN:
        return _SEEN[shape]
    below = part.arguments if isinstance(part, Call) else ()
    typed = lowered(part, schema, dict(zip(map(id, below), arguments, strict=True)))
    if not typed.is_constant:
        typed = Typed(_UNSEEN, typed.kind)
    if shape and len(_SEEN) < MOST_SEEN:
        _SEEN[shape] = typed
    return typed


_BY_TYPES = COMPARISONS | {"&", "|", "not", "+", "-", "*"}
"""Functions the type of whose values, and whether they have any, is told by the types of the arguments."""


_SEEN: dict[tuple[Any, ...] | None, Typed] = {}


MOST_SEEN = 4_096


def _shape(part: Expression, arguments: Sequence[Typed]) -> tuple[Any, ...] | None:
    """What the type of a call depends on, if that is not more than the types of its arguments."""
    if not isinstance(part, Call) or part.function not in _BY_TYPES:
        return None
    shape: list[Any] = [part.function]
    varies = False
    for argument in arguments:
        if argument.kind.is_decimal() or argument.is_written:
            return None
        constant = argument.is_constant
        varies = varies or not constant
        shape.append((argument.kind, type(argument.value) if constant else None))
    return tuple(shape) if varies else None
