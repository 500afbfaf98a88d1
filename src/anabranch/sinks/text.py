"""Writing CSV and JSON lines, which sources read back the same: `sources/text_values.py` has the table."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path

import polars as pl

FIRST, LAST = dt.date(1, 1, 1), dt.date(9999, 12, 31)
"""The years that texts of four digits can tell."""


def write_csv(rows: pl.DataFrame, path: Path) -> None:
    """Rows as CSV; ValueError for what text cannot hold."""
    as_text(rows).write_csv(path)


def json_lines(rows: pl.DataFrame) -> list[bytes]:
    """Rows as JSON objects, each by itself; ValueError for what text cannot hold."""
    text = io.BytesIO()
    write_json(rows, text)
    # Line breaks within values are escaped in JSON
    return text.getvalue().split(b"\n")[:-1]


def write_json(rows: pl.DataFrame, target: Path | io.BytesIO) -> None:
    """Rows as JSON lines; ValueError for what text cannot hold."""
    rows = as_text(rows)
    floats = [name for name, kind in rows.schema.items() if kind.is_float()]
    strange = rows.select(pl.col(floats).is_finite().not_().any()).row(0) if floats else ()
    odd = [name for name, some in zip(floats, strange, strict=True) if some]
    if not odd:
        rows.write_ndjson(target)
        return
    # JSON proper has no word for them, and a NULL in their place would be a lie
    lines = rows.select(pl.concat_str(pl.lit("{"), _members(rows, odd), pl.lit("}")))
    lines.write_csv(target, include_header=False, quote_style="never")


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


def as_text(rows: pl.DataFrame) -> pl.DataFrame:
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
        elif isinstance(kind, pl.Datetime):
            changed.append(column.dt.strftime("%Y-%m-%dT%H:%M:%S%.f"))
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
