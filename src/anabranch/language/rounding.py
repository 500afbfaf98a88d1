"""ROUND and BROUND of numbers of every type, to digits after the point or, below zero, before it."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.decimals import constant, rounded, unscaled
from anabranch.language.functions import misuse
from anabranch.language.typed import Typed

ROUNDING = frozenset(("round", "round_away", "round_digits", "bround"))
"""To even for floats; away from zero; away from zero in the digits that a float is written with, as the
libraries of Java do; to even in those digits."""
_MOST_WRITTEN = 1e16
"""Above it every float is whole; below, 22 digits after the point fit beside those before it."""
_WRITTEN = pl.Decimal(38, 22)


def round_off(function: str, value: Typed, given: Sequence[Typed]) -> Typed:
    """A number with so many digits after its point."""
    digits = given[0].value if given else 0
    problem = misuse("round", 1, digits)
    if problem:
        raise LanguageError(f"argument 2 of ROUND is {digits}; expected a constant: {problem}.")
    if value.is_written and value.decimal:
        # 1.005 has the digits that are written: as a float it would be less
        value = Typed(constant(value.value, value.decimal), value.decimal)
    to_even = function == "bround"
    if isinstance(value.kind, pl.Decimal):
        return _of_decimal(value, value.kind, digits, to_even)
    if value.kind.is_integer():
        return _of_whole(value, digits, to_even)
    if function in ("round_digits", "bround"):
        return Typed(_of_digits(value, digits, to_even), value.kind)
    return Typed(_of_float(value.expr, digits, away=function == "round_away"), value.kind)


def _of_float(value: pl.Expr, digits: int, away: bool) -> pl.Expr:
    mode = "half_away_from_zero" if away else "half_to_even"
    if digits >= 0:
        return value.round(digits, mode=mode)  # type: ignore[arg-type]
    unit = 10.0**-digits
    return (value / unit).round(0, mode=mode) * unit  # type: ignore[arg-type]


def _of_digits(value: Typed, digits: int, to_even: bool) -> pl.Expr:
    near = value.expr.abs() < _MOST_WRITTEN
    text = pl.when(near).then(value.expr).cast(pl.String)
    exact = Typed(text.cast(_WRITTEN, strict=False), _WRITTEN)
    found = _of_decimal(exact, _WRITTEN, digits, to_even).expr.cast(pl.String).cast(value.kind)
    return pl.when(near).then(found).otherwise(_of_float(value.expr, digits, away=not to_even))


def _of_whole(value: Typed, digits: int, to_even: bool) -> Typed:
    if digits >= 0:
        return value
    kind = value.kind if value.kind == pl.UInt64 else pl.Int64()
    # A number that leaves 64 bits ends the run, as in DuckDB
    return Typed(_in_units(value.expr.cast(pl.Int128), 10**-digits, to_even).cast(kind), kind)


def _of_decimal(value: Typed, kind: pl.Decimal, digits: int, to_even: bool) -> Typed:
    if digits >= kind.scale:
        return value
    if digits >= 0 and not to_even:
        wanted = pl.Decimal(kind.precision, digits)
        return Typed(rounded(value.expr, kind.scale, digits).cast(wanted), wanted)
    wanted = pl.Decimal(min(38, kind.precision + (kind.scale == 0)), max(0, digits))
    whole = value.expr.to_physical()
    if kind.scale - digits > kind.precision:
        return Typed(unscaled(whole * pl.lit(0, pl.Int128), wanted.scale).cast(wanted), wanted)
    # In units of the last digit that stays, and then in those of the new scale
    kept = _in_units(whole, 10 ** (kind.scale - digits), to_even)
    kept = kept // pl.lit(10 ** (kind.scale - wanted.scale), pl.Int128)
    return Typed(unscaled(kept, wanted.scale).cast(wanted), wanted)


def _in_units(whole: pl.Expr, unit: int, to_even: bool) -> pl.Expr:
    """Whole numbers of 128 bits as the nearest multiple of a unit; a half away from zero, or to even."""
    one, half = pl.lit(unit, pl.Int128), pl.lit(unit // 2, pl.Int128)
    count, rest = whole.abs() // one, whole.abs() % one
    up = rest >= half
    if to_even:
        up = (rest > half) | ((rest == half) & (count % pl.lit(2, pl.Int128) == 1))
    size = (count + up.cast(pl.Int128)) * one
    return pl.when(whole < 0).then(pl.lit(0, pl.Int128) - size).otherwise(size)
