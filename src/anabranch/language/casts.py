"""Casts from any type to any other, as DuckDB has them but for what the guide names."""

from __future__ import annotations

import polars as pl

from anabranch.language.decimals import WHOLE, rescaled, rounded, unscaled
from anabranch.language.kinds import type_words

TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
"""What a text may say for a truth value, in any case."""
_CLOCK = ("%H:%M:%S%.f", "%H:%M")
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
    if wanted == pl.String:
        return _text(value, kind, strict)
    narrowed = value.cast(wanted, strict=strict)
    if kind == pl.Float64 and wanted == pl.Float32:
        # Polars makes infinity of what is too large
        return _unless(
            value.is_finite() & narrowed.is_infinite(), narrowed, value, "float32", strict
        )
    return narrowed


def _unless(unfit: pl.Expr, read: pl.Expr, value: pl.Expr, wanted: str, strict: bool) -> pl.Expr:
    """What was read, but for unfit values: NULL, or if strict the end of the run."""
    if not strict:
        return pl.when(unfit.not_()).then(read)
    # No number begins like this, and the message has the value
    fault = pl.when(unfit).then(pl.concat_str(pl.lit(f"{wanted} "), value.cast(pl.String)))
    return pl.when(fault.cast(pl.Int64).is_null()).then(read)


def _text(value: pl.Expr, kind: pl.DataType, strict: bool) -> pl.Expr:
    """Values as SQL writes them; reading the text gives the value back."""
    if isinstance(kind, pl.Datetime):
        return _time_text(value, kind)
    if kind == pl.Time:
        return value.dt.to_string("%H:%M:%S%.9f").str.replace(r"\.?0*$", "", literal=False)
    if kind.is_float():
        return pl.when(value.is_nan()).then(pl.lit("nan")).otherwise(value.cast(pl.String))
    if kind == pl.Binary:
        pairs = value.bin.encode("hex").str.extract_all("..")
        return pairs.list.eval(pl.element().replace_strict(_BYTE_TEXTS)).list.join("")
    return value.cast(pl.String, strict=strict)


_BYTE_TEXTS = {
    f"{byte:02x}": chr(byte) if 32 <= byte < 127 and chr(byte) not in "\\'\"" else f"\\x{byte:02X}"
    for byte in range(256)
}
"""Each byte as DuckDB writes it: letters as they are, others as \\x00."""


def _read_bytes(text: pl.Expr, strict: bool) -> pl.Expr:
    """Bytes as texts write them: letters, and \\x00 for any byte."""
    signs = text.str.extract_all(r"\\x[0-9A-Fa-f]{2}|[^\\]")
    sign = pl.element()
    escaped = sign.str.starts_with("\\x") & (sign.str.len_bytes() == 4)
    digits = (
        pl.when(escaped).then(sign.str.slice(2)).otherwise(sign.cast(pl.Binary).bin.encode("hex"))
    )
    read = signs.list.eval(digits).list.join("").str.decode("hex", strict=False)
    unfit = text.str.contains(r"^(?:\\x[0-9A-Fa-f]{2}|[^\\])*$").not_()
    return _unless(unfit, read, text, "binary", strict)


def _time_text(value: pl.Expr, kind: pl.Datetime) -> pl.Expr:
    """A time as SQL writes it: as many digits of the second as there are, then the zone's offset."""
    digits = value.dt.to_string("%Y-%m-%d %H:%M:%S%.6f")
    text = digits.str.replace(r"\.?0*$", "")
    # Without a fraction the zeros of whole seconds must stay
    whole = value.dt.to_string("%Y-%m-%d %H:%M:%S")
    text = pl.when(value.dt.microsecond() == 0).then(whole).otherwise(text)
    if kind.time_zone is None:
        return text
    return pl.concat_str(text, value.dt.to_string("%:z").str.replace(r":00$", ""))


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
        number = plain.cast(parts, strict=False)
        # Only what is no whole number, lest texts are read that are none at all
        number = _unless(number.is_null() & direct.is_null() & text.is_not_null(), number, text,
                         type_words(wanted), strict)  # fmt: skip
        fraction = _from_decimal(number, parts, wanted, strict)
        return pl.when(direct.is_null() & text.is_not_null()).then(fraction).otherwise(direct)
    if wanted.is_float():
        return plain.cast(wanted, strict=strict)
    if wanted == pl.Boolean:
        return _read_truth(plain, strict)
    if wanted == pl.Date:
        return _read_time(plain, strict).cast(pl.Date)
    if isinstance(wanted, pl.Datetime):
        return _read_time(plain, strict).cast(wanted)
    if wanted == pl.Time:
        read = pl.coalesce(*(plain.str.to_time(form, strict=False) for form in _CLOCK))
        read = pl.coalesce(read, _read_time(plain, strict=False).dt.time())
        return _unless(read.is_null() & text.is_not_null(), read, text, "time", strict)
    if wanted == pl.Binary:
        return _read_bytes(text, strict)
    return text.cast(wanted, strict=strict)


def _read_truth(text: pl.Expr, strict: bool) -> pl.Expr:
    small = text.str.to_lowercase()
    read = pl.when(small.is_in(TRUE)).then(True).when(small.is_in(FALSE)).then(False)
    return _unless(read.is_null() & text.is_not_null(), read, text, "boolean", strict)


def _read_time(text: pl.Expr, strict: bool) -> pl.Expr:
    # Z is the zone of times that have none
    spaced = text.str.replace("T", " ", literal=True).str.replace(r"(:\d\d(?:\.\d+)?)Z$", "${1}")
    forms = [spaced.str.to_datetime(form, time_unit="us", strict=False) for form in _TIMES]
    read = pl.coalesce(*forms)
    if not strict:
        return read
    unread = pl.when(read.is_null()).then(spaced)
    return pl.coalesce(read, unread.str.to_datetime(_TIMES[0], time_unit="us"))
