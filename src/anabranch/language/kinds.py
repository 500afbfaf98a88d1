"""The types of columns: their names, and which there may be.

Those may be that keys, aggregates, frames, state and sinks all know what to do with.
"""

from __future__ import annotations

import re

import polars as pl

from anabranch.errors import LanguageError, suggest

_PLAIN = frozenset(
    (
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32,
        pl.Float64, pl.String, pl.Binary, pl.Boolean, pl.Date, pl.Time, pl.Datetime, pl.Null,
    )
)  # fmt: skip
EXPECTED = (
    "expected integers of up to 64 bits, floats of 32 or 64, decimals of up to 38 digits, texts, bytes, "
    "truth values, dates, times or timestamps"
)


def is_supported(kind: pl.DataType) -> bool:
    """Whether a column may be of this type.

    >>> is_supported(pl.Int8()), is_supported(pl.List(pl.Int8())), is_supported(pl.Decimal(50, 2))
    (True, False, False)
    """
    if isinstance(kind, pl.Decimal):
        return kind.precision <= 38
    return kind.base_type() in _PLAIN


TYPES: dict[str, pl.DataType] = {
    "int8": pl.Int8(), "int16": pl.Int16(), "int32": pl.Int32(), "int64": pl.Int64(),
    "uint8": pl.UInt8(), "uint16": pl.UInt16(), "uint32": pl.UInt32(), "uint64": pl.UInt64(),
    "float32": pl.Float32(), "float64": pl.Float64(), "string": pl.String(),
    "binary": pl.Binary(), "boolean": pl.Boolean(), "date": pl.Date(),
    "time": pl.Time(), "timestamp": pl.Datetime("us"), "integer": pl.Int32(), "int": pl.Int32(),
    "long": pl.Int64(), "bigint": pl.Int64(), "double": pl.Float64(),
}  # fmt: skip
"""The types of columns by name, but for decimals, which `type_named` knows."""

_DECIMAL = re.compile(r"(?:decimal|numeric)(?:\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\))?")


def type_named(name: str) -> pl.DataType | None:
    """The type of that name; None if there is none. `decimal` alone has 18 digits, 3 after the point.

    >>> type_named("decimal(10, 2)"), type_named("text")
    (Decimal(precision=10, scale=2), None)
    """
    written = _DECIMAL.fullmatch(name)
    if written is None:
        return TYPES.get(name)
    if written[1] is None:
        return pl.Decimal(18, 3)
    precision, scale = int(written[1]), int(written[2] or 0)
    return pl.Decimal(precision, scale) if 1 <= precision <= 38 and scale <= precision else None


def decimal_name(kind: pl.Decimal) -> str:
    """`decimal(10, 2)`."""
    return f"decimal({kind.precision}, {kind.scale})"


def type_words(kind: pl.DataType) -> str:
    """A type as users write it, where it has a name.

    >>> type_words(pl.Int64()), type_words(pl.Decimal(10, 2)), type_words(pl.Datetime("us", "UTC"))
    ('int64', 'decimal(10, 2)', 'timestamp in UTC')
    """
    if isinstance(kind, pl.Decimal):
        return decimal_name(kind)
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        return f"{type_words(pl.Datetime(kind.time_unit))} in {kind.time_zone}"
    return next((name for name, named in TYPES.items() if named == kind), str(kind))


def suggest_type(name: str) -> str:
    """What to say of a type that does not exist."""
    if name.startswith(("decimal", "numeric")):
        return " A decimal has 1 to 38 digits, of which so many follow the point: decimal(10, 2)."
    return suggest(name, [*TYPES, "decimal(10, 2)"])


def castable(name: str) -> str:
    """The name of a type to cast to, as it is kept in expressions."""
    if not isinstance(name, str):
        raise LanguageError(f"A cast takes the name of a type as a text, not {name!r}.")
    kind = type_named(name)
    if kind is None:
        raise LanguageError(f"There is no type '{name}' to cast to.{suggest_type(name)}")
    return decimal_name(kind) if isinstance(kind, pl.Decimal) else name
