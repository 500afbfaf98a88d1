"""How values stand in text files, CSV and JSON lines: as `sinks/text.py` writes them.

| type | in text |
|---|---|
| date | 2026-03-01 |
| timestamp | 2026-03-01T22:00:00.000009; with a zone in UTC, with Z at its end |
| time | 22:00:00.000009 |
| binary | base64 |
| float | NaN and the infinities by name, in JSON NaN, Infinity and -Infinity without quotes |

The rest is as everywhere. What text cannot hold is refused when the run starts, or when it comes.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa


def type_in_text(kind: pl.DataType, format: str) -> pl.DataType:
    """The type that a column is parsed as; `from_text` makes it what it is."""
    if isinstance(kind, pl.Binary) or (format == "json" and isinstance(kind, (pl.Date, pl.Time))):
        return pl.String()
    return kind


def from_text(table: pa.Table, kinds: dict[str, pl.DataType], format: str) -> pa.Table:
    """The table with the values of columns that were parsed as texts; raises for what is none of theirs."""
    for name, kind in kinds.items():
        if type_in_text(kind, format) == kind:
            continue
        texts = pl.from_arrow(table[name])
        assert isinstance(texts, pl.Series)
        if isinstance(kind, pl.Binary):
            values = texts.str.decode("base64", strict=True)
        elif isinstance(kind, pl.Date):
            values = texts.str.to_date("%Y-%m-%d", strict=True)
        else:
            values = texts.str.to_time("%H:%M:%S%.f", strict=True)
        table = table.set_column(table.schema.get_field_index(name), name, values.to_arrow())
    return table
