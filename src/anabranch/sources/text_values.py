"""How values stand in text files, CSV and JSON lines: written by sinks, read back by sources, the same.

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

import datetime as dt
from pathlib import Path

import polars as pl
import pyarrow as pa

FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
"""The years that texts of four digits can tell."""


def write_csv(rows: pl.DataFrame, path: Path) -> None:
    """Rows as CSV; ValueError for what text cannot hold."""
    _as_text(rows).write_csv(path)


def write_json(rows: pl.DataFrame, path: Path) -> None:
    """Rows as JSON lines; ValueError for what text cannot hold."""
    rows = _as_text(rows)
    floats = [name for name, kind in rows.schema.items() if kind.is_float()]
    strange = rows.select(pl.col(floats).is_finite().not_().any()).row(0) if floats else ()
    odd = [name for name, some in zip(floats, strange, strict=True) if some]
    if not odd:
        rows.write_ndjson(path)
        return
    # JSON proper has no word for them, and a NULL in their place would be a lie
    lines = rows.select(pl.concat_str(pl.lit("{"), _members(rows, odd), pl.lit("}")))
    with open(path, "w", encoding="utf-8") as file:
        lines.write_csv(file, include_header=False, quote_style="never")


def _members(rows: pl.DataFrame, odd: list[str]) -> pl.Expr:
    """The members of the object of each row."""
    members = []
    for name in rows.columns:
        # `{"name":value}`, the value in the words of the usual writer
        whole = pl.struct(pl.col(name)).struct.json_encode()
        value = whole.str.strip_prefix("{").str.strip_suffix("}")
        if name in odd:
            key = pl.struct(pl.lit(None).alias(name)).struct.json_encode()
            key = key.str.strip_prefix("{").str.strip_suffix("null}")
            word = (
                pl.when(pl.col(name).is_nan())
                .then(pl.lit("NaN"))
                .when(pl.col(name) > 0)
                .then(pl.lit("Infinity"))
                .otherwise(pl.lit("-Infinity"))
            )
            finite = pl.col(name).is_finite().fill_null(True)
            value = pl.when(finite).then(value).otherwise(pl.concat_str(key, word))
        members.append(value)
    return pl.concat_str(members, separator=",")


def _as_text(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with texts in the place of values that a writer has no, or other, texts for."""
    changed = []
    for name, kind in rows.schema.items():
        column = pl.col(name)
        if isinstance(kind, (pl.Date, pl.Datetime)):
            _require_years(rows[name], name)
        if isinstance(kind, pl.Binary):
            changed.append(column.bin.encode("base64"))
        elif isinstance(kind, pl.Datetime) and kind.time_zone is not None:
            # In UTC: the zones of old times have seconds, which no offset tells
            plain = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            changed.append(plain.dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ"))
        elif isinstance(kind, pl.Time):
            changed.append(column.dt.strftime("%H:%M:%S%.f"))
    return rows.with_columns(changed)


def _require_years(times: pl.Series, name: str) -> None:
    days = times if times.dtype == pl.Date else times.dt.epoch("s") // 86_400
    least, most = days.to_physical().min(), days.to_physical().max()
    epoch = dt.date(1970, 1, 1)
    if least is None or most is None:
        return
    if int(least) < (FIRST - epoch).days or int(most) > (LAST - epoch).days:  # type: ignore[arg-type]
        raise ValueError(
            f"column '{name}' has times outside the years 1 to 9999, which text cannot hold: write "
            "parquet or arrow, or leave them out"
        )


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
