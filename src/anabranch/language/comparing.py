"""Comparisons and IN, exact for the types of their sides.

A whole number is compared with a constant that has a point as it is, decimals as decimals, and a time
without a zone is taken to be in the zone of the other side.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.decimals import WHOLE, fits_decimal
from anabranch.language.functions import FUNCTIONS
from anabranch.language.kinds import type_words
from anabranch.language.tree import Call, Literal
from anabranch.language.typed import Typed, kind_of_constant


def compare(call: Call, sides: Sequence[Typed]) -> Typed | None:
    """The comparison, if it needs care for the types of its sides."""
    function = call.function
    kinds = [side.kind for side in sides]
    for side, other, mirrored in ((sides[0], sides[1], False), (sides[1], sides[0], True)):
        if side.kind.is_integer() and not side.is_constant and fits_decimal(other.value):
            return Typed(_against(function, side.expr, other.value, mirrored), pl.Boolean())
    if any(isinstance(kind, pl.Decimal) for kind in kinds) and all(
        kind.is_numeric() for kind in kinds
    ):
        exact = all(side.decimal is not None for side in sides)
        expressions = [side.as_decimal() if exact else side.as_float() for side in sides]
        return Typed(FUNCTIONS[function](*expressions), pl.Boolean())
    if len({kind.time_zone for kind in kinds if isinstance(kind, pl.Datetime)}) > 1:
        return Typed(FUNCTIONS[function](*_in_one_zone(sides)), pl.Boolean())
    return None


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _against(function: str, value: pl.Expr, bound: decimal.Decimal, mirrored: bool) -> pl.Expr:
    """A whole number compared with a constant that has a point, exactly."""
    sign = _MIRRORED.get(function, function) if mirrored else function
    low, high = math.floor(bound), math.ceil(bound)
    if sign in ("=", "<>", "is_distinct"):
        if low == high and -(2**63) <= low < 2**64:
            return FUNCTIONS[sign](value, _whole(low))
        never = pl.lit(sign != "=")
        return never if sign == "is_distinct" else pl.when(value.is_not_null()).then(never)
    # x > 2.5 is x > 2, x >= 2.5 is x >= 3; beyond all 64 bits it is always or never so
    edge = low if sign in (">", "<=") else high
    if -(2**63) <= edge < 2**64:
        return FUNCTIONS[sign](value, _whole(edge))
    return pl.when(value.is_not_null()).then(pl.lit((edge < 0) == (sign in (">", ">="))))


def _whole(value: int) -> pl.Expr:
    return pl.lit(value, pl.Int64 if value < 2**63 else pl.UInt64)


def _in_one_zone(sides: Sequence[Typed]) -> list[pl.Expr]:
    """Both sides of a comparison: moments in one zone, a time without one taken to be in the other's."""
    zones = [side.kind.time_zone for side in sides if isinstance(side.kind, pl.Datetime)]
    zone = next((zone for zone in zones if zone), None)
    return [_zoned(side, zone) if zone else side.expr for side in sides]


def _zoned(side: Typed, zone: str) -> pl.Expr:
    if not isinstance(side.kind, pl.Datetime) or side.kind.time_zone == zone:
        return side.expr
    if side.kind.time_zone is not None:
        return side.expr.dt.convert_time_zone(zone)
    return side.expr.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")


def is_in(value: Typed, options: Sequence[Any]) -> Typed:
    """SQL: x IN (…, NULL) is NULL, not false, when no other value matches."""
    given = [option for option in options if option is not None]
    if value.kind == pl.Null:
        return Typed(pl.lit(None, pl.Boolean), pl.Boolean())
    kind, expr = value.kind, value.expr
    if kind == pl.Float32 and any(type(option) is float for option in given):
        kind, expr = pl.Float64(), expr.cast(pl.Float64)  # as a comparison with it would be
    found = expr.is_in(_options(kind, given).implode())
    if len(given) < len(options):
        found = pl.when(found).then(True)
    return Typed(found, pl.Boolean())


def _options(kind: pl.DataType, given: Sequence[Any]) -> pl.Series:
    """The constants of IN as values of a type; those that no value of it can equal are left out."""
    numbers = all(isinstance(v, int | float | decimal.Decimal) and v is not True and v is not False
                  for v in given)  # fmt: skip
    times = all(isinstance(v, dt.date) for v in given)
    if kind.is_numeric() and numbers:
        if kind.is_float():
            return pl.Series([float(v) for v in given], dtype=kind)
        exact = [decimal.Decimal(v) for v in given if math.isfinite(v)]
        held = kind if isinstance(kind, pl.Decimal) else WHOLE
        fitting = [v for v in exact if _fits(v, held)]
        return pl.Series(fitting, dtype=held).cast(kind, strict=False).drop_nulls()
    if (kind.is_temporal() and times) or all(kind_of_constant(v) == kind for v in given):
        try:
            return pl.Series(given, dtype=kind)
        except (TypeError, ValueError, pl.exceptions.PolarsError):
            pass  # as a time among dates
    shown = ", ".join(str(Literal(v)) for v in given)
    raise LanguageError(
        f"IN compares {type_words(kind)} with ({shown}); expected constants of that type."
    )


def _fits(value: decimal.Decimal, kind: pl.Decimal) -> bool:
    reduced = value.normalize(decimal.Context(prec=1000))
    digits, exponent = len(reduced.as_tuple().digits), int(reduced.as_tuple().exponent)
    return -exponent <= kind.scale and digits + exponent <= kind.precision - kind.scale
