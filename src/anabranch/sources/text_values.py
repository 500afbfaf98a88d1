"""How values stand in text files, CSV and JSON lines: as `sinks/text.py` writes them.

| type | in text |
|---|---|
| date | 2026-03-01 |
| timestamp | 2026-03-01T22:00:00.000009; with a zone in UTC, with Z at its end |
| time | 22:00:00.000009 |
| binary | base64 |
| float | NaN and the infinities by name, in JSON NaN, Infinity and -Infinity without quotes |

In JSON they stand so within lists and structs too; CSV has neither. The rest is as everywhere, unless the
stream's files have another form (`form.py`). What text cannot hold is refused when the run starts, or when it
comes.
"""

from __future__ import annotations

from typing import Any, cast

import polars as pl
import pyarrow as pa

Formats = tuple[str, ...]
"""How times and dates are written, if not by ISO 8601."""


def inner_kind(kind: Any) -> pl.DataType:
    """The type of what a list or struct holds, which Polars may have as a class."""
    return cast(pl.DataType, kind() if isinstance(kind, type) else kind)


def type_in_text(kind: pl.DataType, format: str, times: Formats = ()) -> pl.DataType:
    """The type that a column is parsed as; `from_text` makes it what it is."""
    if isinstance(kind, pl.List):
        return pl.List(type_in_text(inner_kind(kind.inner), format, times))
    if isinstance(kind, pl.Struct):
        fields = ((field.name, inner_kind(field.dtype)) for field in kind.fields)
        return pl.Struct({name: type_in_text(inner, format, times) for name, inner in fields})
    if isinstance(kind, pl.Binary) or (format == "json" and isinstance(kind, (pl.Date, pl.Time))):
        return pl.String()
    return pl.String() if times and isinstance(kind, (pl.Date, pl.Datetime)) else kind


def from_text(
    table: pa.Table, kinds: dict[str, pl.DataType], format: str, times: Formats = ()
) -> pa.Table:
    """The table with the values of columns that were parsed as texts; raises for what is none of theirs."""
    for name, kind in kinds.items():
        if type_in_text(kind, format, times) == kind:
            continue
        column = table[name].combine_chunks()
        values = _values(column, kind, format, times, name)
        table = table.set_column(table.schema.get_field_index(name), name, values)
    return table


def _values(
    column: pa.Array, kind: pl.DataType, format: str, times: Formats, name: str
) -> pa.Array:
    """The values of a column, or of what is in its lists and structs."""
    if type_in_text(kind, format, times) == kind:
        return column
    if isinstance(kind, pl.List):
        inner = _values(column.values, inner_kind(kind.inner), format, times, name)
        return pa.ListArray.from_arrays(column.offsets, inner, mask=column.is_null())
    if isinstance(kind, pl.Struct):
        parts = [
            _values(column.field(at), inner_kind(field.dtype), format, times, name)
            for at, field in enumerate(kind.fields)
        ]
        names = [field.name for field in kind.fields]
        return pa.StructArray.from_arrays(parts, names, mask=column.is_null())
    texts = cast(pl.Series, pl.from_arrow(column)).alias(name)
    if isinstance(kind, pl.Binary):
        values = texts.str.decode("base64", strict=True)
    elif times and isinstance(kind, (pl.Date, pl.Datetime)):
        values = _times(texts, kind, times)
    elif isinstance(kind, pl.Date):
        values = texts.str.to_date("%Y-%m-%d", strict=True)
    else:
        values = texts.str.to_time("%H:%M:%S%.f", strict=True)
    return values.to_arrow()


def _times(texts: pl.Series, kind: pl.DataType, formats: Formats) -> pl.Series:
    """Times by the first of the formats that fits each; raises ValueError for what fits none."""
    column = pl.col(texts.name)
    zone = getattr(kind, "time_zone", None)
    read = [column.str.to_datetime(format, time_unit="us", strict=False) for format in formats]
    if zone is not None:
        # A text with an offset is an instant already; one without is taken for the column's zone
        read = [
            each if "%z" in format else each.dt.replace_time_zone(zone)
            for each, format in zip(read, formats, strict=True)
        ]
    values = pl.DataFrame(texts).select(pl.coalesce(read).cast(kind)).to_series()
    wrong = texts.filter(values.is_null() & texts.is_not_null())
    if len(wrong):
        told = " or ".join(formats)
        raise ValueError(f"column '{texts.name}': '{wrong[0]}' is no time of the form {told}")
    return values
