"""The types of columns: their names, and which there may be.

Those may be that keys, aggregates, frames, state and sinks all know what to do with.
"""

from __future__ import annotations

import re

import polars as pl
from polars.datatypes import DataTypeClass

from anabranch.errors import LanguageError, suggest

_PLAIN = frozenset(
    (
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32,
        pl.Float64, pl.String, pl.Binary, pl.Boolean, pl.Date, pl.Time, pl.Datetime, pl.Null,
    )
)  # fmt: skip
EXPECTED = (
    "expected integers of up to 64 bits, floats of 32 or 64, decimals of up to 38 digits, texts, bytes, "
    "truth values, dates, times or timestamps, and lists and structs of them"
)


def is_supported(kind: pl.DataType) -> bool:
    """Whether a column may be of this type.

    >>> is_supported(pl.Int8()), is_supported(pl.List(pl.Int8())), is_supported(pl.Duration())
    (True, True, False)
    """
    if isinstance(kind, pl.Decimal):
        return kind.precision <= 38
    if isinstance(kind, pl.List):
        return is_supported(instance_of(kind.inner))
    if isinstance(kind, pl.Struct):
        return all(is_supported(instance_of(field.dtype)) for field in kind.fields)
    return kind.base_type() in _PLAIN


def orderable(kind: pl.DataType) -> bool:
    """Whether values of this type have an order."""
    return not (kind.is_nested() or kind == pl.Object())


def instance_of(kind: DataTypeClass | pl.DataType) -> pl.DataType:
    """A type as an object of its class: Polars has types within types either way."""
    return kind if isinstance(kind, pl.DataType) else kind()


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
    """The type of that name, in any case; None if there is none. `decimal` alone is `decimal(18, 3)`.

    >>> type_named("decimal(10, 2)"), type_named("text"), type_named("list(int64)")
    (Decimal(precision=10, scale=2), None, List(Int64))
    """
    written = _DECIMAL.fullmatch(name.lower())
    if written is None:
        return TYPES.get(name.lower()) or _nested_type(name)
    if written[1] is None:
        return pl.Decimal(18, 3)
    precision, scale = int(written[1]), int(written[2] or 0)
    return pl.Decimal(precision, scale) if 1 <= precision <= 38 and scale <= precision else None


def _nested_type(name: str) -> pl.DataType | None:
    """`list(int64)`, `int64[]`, `struct(a int64, b string)`, `map(string, int64)`; None for all else."""
    if name.endswith("[]"):
        inner = type_named(name[:-2].strip())
        return None if inner is None else pl.List(inner)
    found = re.fullmatch(r"(list|array|struct|map)\s*[(<](.*)[)>]", name.strip(), re.DOTALL | re.I)
    if found is None:
        return None
    word, parts = found[1].lower(), _listed(found[2])
    if word == "struct":
        pairs = [re.split(r"[\s:]+", part.strip(), maxsplit=1) for part in parts]
        kinds = [type_named(pair[1].strip()) if len(pair) == 2 else None for pair in pairs]
        fields = {
            pair[0]: kind for pair, kind in zip(pairs, kinds, strict=True) if kind is not None
        }
        return pl.Struct(fields) if len(fields) == len(parts) else None
    kinds = [type_named(part.strip()) for part in parts]
    if word == "map" and len(kinds) == 2 and kinds[0] is not None and kinds[1] is not None:
        return pl.List(pl.Struct({"key": kinds[0], "value": kinds[1]}))
    if word != "map" and len(kinds) == 1 and kinds[0] is not None:
        return pl.List(kinds[0])
    return None


def _listed(text: str) -> list[str]:
    """The parts between the commas that are within no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "(<") - (letter in ")>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


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
    if isinstance(kind, pl.List):
        return f"list({type_words(instance_of(kind.inner))})"
    if isinstance(kind, pl.Struct):
        fields = (f"{one.name} {type_words(instance_of(one.dtype))}" for one in kind.fields)
        return f"struct({', '.join(fields)})"
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        return f"{type_words(pl.Datetime(kind.time_unit))} in {kind.time_zone}"
    if kind == pl.Duration:
        return "length of time"
    if kind == pl.Null:
        return "NULL"
    return next((name for name, named in TYPES.items() if named == kind), str(kind).lower())


def map_advice(kind: pl.DataType) -> str:
    """What to do with a column that is a map, as Parquet and Arrow have them; empty for all else."""
    if type(kind).__name__ != "Map":  # not every Polars has the class
        return ""
    return (
        "A map is kept as a list of its entries: write map_entries(column) where the files are made, in "
        "Spark or DuckDB, and the column is MAP<key, value> here."
    )


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
