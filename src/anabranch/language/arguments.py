"""What arguments become before a function gets them, by what the function makes of them.

NULL is a truth value where a condition is meant, narrow numbers are as wide as what they meet and as what is
made of them, and what texts are made of is a text.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.language.casts import cast
from anabranch.language.spelling import COMPARISONS
from anabranch.language.typed import Typed

_GROWING = frozenset(("+", "-", "*", "//", "%", "<<", ">>", "negate", "abs", "power"))
"""Functions whose value may need more bits than what they are made of."""
_NARROW = (pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32)
_MEETING = COMPARISONS | frozenset(
    ("+", "-", "*", "/", "//", "%", "power", "is_distinct", "case", "coalesce", "greatest", "least")
)
"""Functions whose arguments meet in one type."""


def as_meant(function: str, arguments: Sequence[Typed]) -> Sequence[Typed]:
    """The arguments, before it is seen what types meet."""
    return _as_wide(function, _truths(function, arguments))


def as_results_are(function: str, arguments: Sequence[Typed]) -> Sequence[Typed]:
    """The arguments with the room, or in the form, that the value needs which is made of them."""
    if function in _GROWING:
        return [
            Typed(part.expr.cast(pl.Int64), pl.Int64()) if part.kind in _NARROW else part
            for part in arguments
        ]
    if function == "list_sum":
        kind, wide = arguments[0].kind, pl.List(pl.Int64())
        if isinstance(kind, pl.List) and kind.inner in _NARROW:
            return [Typed(arguments[0].expr.cast(wide), wide)]
    if function in ("concat", "concat_ws"):
        # What is no text is written as CAST writes it
        return [
            part
            if part.kind == pl.String
            else Typed(cast(part.expr, part.kind, pl.String(), strict=True), pl.String())
            for part in arguments
        ]
    return arguments


def _as_wide(function: str, arguments: Sequence[Typed]) -> Sequence[Typed]:
    """Narrow floats as wide as a constant that is a float: `1.5e0` is a double, as in DuckDB."""
    wide = any(part.kind == pl.Float64 and type(part.value) is float for part in arguments)
    if not wide or function not in _MEETING:
        return arguments
    return [
        Typed(part.expr.cast(pl.Float64), pl.Float64()) if part.kind == pl.Float32 else part
        for part in arguments
    ]


def _truths(function: str, arguments: Sequence[Typed]) -> Sequence[Typed]:
    """NULL as a truth value where a condition is meant."""
    if function == "case":
        places = set(range(0, len(arguments) - 1, 2))
    elif function == "not" or (
        function in ("&", "|") and all(part.kind in (pl.Boolean, pl.Null) for part in arguments)
    ):
        places = set(range(len(arguments)))
    else:
        return arguments
    return [
        Typed(pl.lit(None, pl.Boolean), pl.Boolean(), None)
        if place in places and part.kind == pl.Null
        else part
        for place, part in enumerate(arguments)
    ]
