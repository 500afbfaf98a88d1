"""Functions of decimals: which type their values have, and how they are computed."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.language.decimals import (
    WHOLE,
    common,
    decimal_of,
    divide_down,
    multiply,
    product_type,
    rounded_down,
    sum_type,
)
from anabranch.language.functions import FUNCTIONS
from anabranch.language.kinds import instance_of
from anabranch.language.typed import Typed

_ALIKE = frozenset(("coalesce", "greatest", "least", "case", "list"))
"""Functions whose values are brought to one type."""
_OF_LISTS = frozenset(("list_concat", "list_contains"))
"""Functions of lists whose elements are brought to one type, with a value beside them."""
_AS_THEY_ARE = frozenset(("concat", "concat_ws", "is_null", "is_not_null", "struct"))
"""Functions that take values of any type, each as it is."""


def has_decimals(kind: pl.DataType) -> bool:
    """Whether values of this type are decimals or lists of them."""
    return isinstance(element_of(kind), pl.Decimal)


def elements_differ(function: str, arguments: Sequence[Typed]) -> bool:
    """Whether lists and what is sought in them are numbers of different types."""
    kinds = {element_of(part.kind) for part in arguments if part.kind != pl.Null}
    return function in _OF_LISTS and len(kinds) > 1 and all(kind.is_numeric() for kind in kinds)


def element_of(kind: pl.DataType) -> pl.DataType:
    return instance_of(kind.inner) if isinstance(kind, pl.List) else kind


def with_decimals(
    function: str, arguments: Sequence[Typed]
) -> tuple[Sequence[Typed], Typed | None]:
    """A function of decimals: computed, or its arguments as floats where it is one of floats."""
    if function in _ALIKE:
        return _brought_together(function, arguments), None
    if function in _OF_LISTS:
        return _elements_together(arguments), None
    if function in ("+", "-", "*", "%", "//") and all(part.decimal for part in arguments):
        return arguments, _arithmetic(function, arguments[0], arguments[1])
    first = arguments[0]
    if isinstance(first.kind, pl.Decimal):
        whole = pl.Decimal(first.kind.precision, 0)
        match function:
            case "negate" | "abs":
                return arguments, Typed(FUNCTIONS[function](first.expr), first.kind)
            case "sign":
                return arguments, Typed(first.expr.to_physical().sign().cast(pl.Int64), pl.Int64())
            case "floor" | "ceil":
                value = rounded_down(first.expr, first.kind.scale, up=function == "ceil")
                return arguments, Typed(value.cast(whole), whole)
            case "trunc":
                down, up = (rounded_down(first.expr, first.kind.scale, up) for up in (False, True))
                value = pl.when(first.expr < 0).then(up).otherwise(down)
                return arguments, Typed(value.cast(whole), whole)
    if function in _AS_THEY_ARE:
        return arguments, None
    return [
        Typed(part.as_float(), pl.Float64()) if isinstance(part.kind, pl.Decimal) else part
        for part in arguments
    ], None


def _arithmetic(function: str, left: Typed, right: Typed) -> Typed:
    kinds = left.decimal, right.decimal
    assert kinds[0] is not None
    assert kinds[1] is not None
    if function == "*":
        kind = product_type(kinds[0], kinds[1])
        return Typed(multiply(left.as_decimal(), right.as_decimal(), kind), kind)
    if function in ("%", "//"):
        shared = common([kinds[0], kinds[1]])
        sides = left.as_decimal(shared), right.as_decimal(shared)
        kind = shared if function == "%" else WHOLE
        return Typed(divide_down(*sides, remainder=function == "%").cast(kind), kind)
    kind = sum_type(kinds[0], kinds[1])
    return Typed(FUNCTIONS[function](left.as_decimal(), right.as_decimal()).cast(kind), kind)


def _brought_together(function: str, arguments: Sequence[Typed]) -> list[Typed]:
    """The values of a function in one type: decimals, or floats if one of them is a float."""
    values = set(range(1, len(arguments) - 1, 2)) | {len(arguments) - 1}
    places = values if function == "case" else set(range(len(arguments)))
    numbers = [arguments[place] for place in places if arguments[place].kind != pl.Null]
    if not all(part.kind.is_numeric() for part in numbers):
        return list(arguments)
    own = [part.decimal for part in numbers]
    kinds = [kind for kind in own if kind is not None]
    shared = common(kinds) if len(kinds) == len(own) else None

    def brought(part: Typed) -> Typed:
        if part.kind == pl.Null:
            return part
        if shared is None:
            return Typed(part.as_float(), pl.Float64())
        return Typed(part.as_decimal(shared), shared)

    return [brought(part) if place in places else part for place, part in enumerate(arguments)]


def _elements_together(arguments: Sequence[Typed]) -> Sequence[Typed]:
    """Lists, and values beside them, with elements of one type: Polars makes NULL of what does not fit."""
    known = [part for part in arguments if part.kind != pl.Null]
    elements = [element_of(part.kind) for part in known]
    if not all(kind.is_numeric() for kind in elements):
        return arguments
    kinds = [
        decimal_of(kind) if isinstance(part.kind, pl.List) else part.decimal
        for part, kind in zip(known, elements, strict=True)
    ]
    exact = [kind for kind in kinds if kind is not None]
    shared = common(exact) if len(exact) == len(kinds) else pl.Float64()

    def brought(part: Typed) -> Typed:
        if isinstance(part.kind, pl.List):
            return Typed(part.expr.cast(pl.List(shared)), pl.List(shared))
        if part.kind == pl.Null:
            return part
        value = (
            part.as_decimal(shared) if isinstance(shared, pl.Decimal) else part.expr.cast(shared)
        )
        return Typed(value, shared)

    return [brought(part) for part in arguments]
