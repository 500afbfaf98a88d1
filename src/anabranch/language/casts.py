"""Casts from any type to any other, as DuckDB has them but for what the guide names."""

from __future__ import annotations

import polars as pl

from anabranch.language.decimals import WHOLE, rescaled, rounded, unscaled

TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
"""What a text may say for a truth value, in any case."""
_TIMES = ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M", "%Y-%m-%d")


def cast(value: pl.Expr, kind: pl.DataType, wanted: pl.DataType, strict: bool) -> pl.Expr:
    """The values as another type; what does not fit is an error, or NULL if not strict."""
    if kind == wanted:
        return value
    if kind == pl.String:
        return _read(value, wanted, strict)
    if isinstance(kind, pl.Decimal):
        return _from_decimal(value, kind, wanted, strict)
    if isinstance(wanted, pl.Decimal):
        return _to_decimal(value, kind, wanted, strict)
    return value.cast(wanted, strict=strict)


def _from_decimal(value: pl.Expr, kind: pl.Decimal, wanted: pl.DataType, strict: bool) -> pl.Expr:
    if isinstance(wanted, pl.Decimal):
        return rescaled(value, kind, wanted, strict)
    if wanted.is_integer():
        whole = rounded(value, kind.scale, 0) if kind.scale else value
        return whole.to_physical().cast(wanted, strict=strict)
    if wanted == pl.Boolean:
        return value != 0
    return value.cast(wanted, strict=strict)


def _to_decimal(value: pl.Expr, kind: pl.DataType, wanted: pl.Decimal, strict: bool) -> pl.Expr:
    if kind.is_float():
        scaled = value.cast(pl.Float64) * 10.0**wanted.scale
        whole = scaled.round(0, mode="half_away_from_zero").cast(WHOLE, strict=strict)
        return unscaled(whole.to_physical(), wanted.scale).cast(wanted, strict=strict)
    if kind == pl.Boolean:
        value = value.cast(pl.Int64)
    return value.cast(wanted, strict=strict)


def _read(text: pl.Expr, wanted: pl.DataType, strict: bool) -> pl.Expr:
    """What texts say, in the notation that SQL has for values of a type."""
    plain = text.str.strip_chars()
    if isinstance(wanted, pl.Decimal):
        # With more digits than are kept, to round halves as elsewhere
        finer = pl.Decimal(38, min(38, wanted.scale + 38 - wanted.precision))
        return rescaled(plain.cast(finer, strict=strict), finer, wanted, strict)
    if wanted.is_integer():
        direct = plain.cast(wanted, strict=False)
        parts = pl.Decimal(38, 18)
        fraction = _from_decimal(plain.cast(parts, strict=strict), parts, wanted, strict)
        return pl.when(direct.is_null() & text.is_not_null()).then(fraction).otherwise(direct)
    if wanted.is_float():
        return plain.cast(wanted, strict=strict)
    if wanted == pl.Boolean:
        return _read_truth(plain, strict)
    if wanted == pl.Date:
        return _read_time(plain, strict).cast(pl.Date)
    if isinstance(wanted, pl.Datetime):
        return _read_time(plain, strict).cast(wanted)
    return text.cast(wanted, strict=strict)


def _read_truth(text: pl.Expr, strict: bool) -> pl.Expr:
    small = text.str.to_lowercase()
    read = pl.when(small.is_in(TRUE)).then(True).when(small.is_in(FALSE)).then(False)
    if not strict:
        return read
    # What is neither ends the run: no number begins like this, and the message has the text
    neither = pl.when(read.is_null()).then(pl.concat_str(pl.lit("boolean "), text))
    return pl.when(neither.cast(pl.Int64).is_null()).then(read)


def _read_time(text: pl.Expr, strict: bool) -> pl.Expr:
    spaced = text.str.replace("T", " ", literal=True)
    forms = [spaced.str.to_datetime(form, time_unit="us", strict=False) for form in _TIMES]
    read = pl.coalesce(*forms)
    if not strict:
        return read
    unread = pl.when(read.is_null()).then(spaced)
    return pl.coalesce(read, unread.str.to_datetime(_TIMES[0], time_unit="us"))
