"""Writing CSV and JSON lines, which sources read back the same: `sources/text_values.py` has the table."""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from anabranch.sources.text_values import inner_kind

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
    odd = [column.name for column in rows if _is_odd(column)]
    if not odd:
        rows.write_ndjson(target)
        return
    # JSON proper has no word for them, and a NULL in their place would be a lie
    members = {
        name: _json(pl.col(name), kind if name in odd else pl.Null())
        for name, kind in rows.schema.items()
    }
    lines = rows.select(_object(members))
    lines.write_csv(target, include_header=False, quote_style="never")


def _is_odd(column: pl.Series) -> bool:
    """Whether there is a float in it that the usual writer has no word for."""
    parts = (part for part in _leaves(column) if part.dtype.is_float())
    return any(part.is_finite().not_().any() for part in parts)


def _leaves(column: pl.Series) -> Iterator[pl.Series]:
    """The values of a column; of lists and structs, those within them."""
    if isinstance(column.dtype, pl.List):
        yield from _leaves(column.explode())
    elif isinstance(column.dtype, pl.Struct):
        for part in column.struct.unnest():
            yield from _leaves(part)
    else:
        yield column


def _json(value: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """Values in JSON, with words for all floats."""
    if isinstance(kind, pl.List):
        inner = value.list.eval(_json(pl.element(), inner_kind(kind.inner))).list.join(",")
        return pl.concat_str(pl.lit("["), inner, pl.lit("]")).fill_null("null")
    if isinstance(kind, pl.Struct):
        parts = {
            field.name: _json(value.struct.field(field.name), inner_kind(field.dtype))
            for field in kind.fields
        }
        return pl.when(value.is_null()).then(pl.lit("null")).otherwise(_object(parts))
    # `{"x":value}`, the value in the words of the usual writer
    whole = pl.struct(value.alias("x")).struct.json_encode()
    usual = whole.str.strip_prefix('{"x":').str.strip_suffix("}")
    if not kind.is_float():
        return usual
    word = (
        pl.when(value.is_nan())
        .then(pl.lit("NaN"))
        .when(value > 0)
        .then(pl.lit("Infinity"))
        .otherwise(pl.lit("-Infinity"))
    )
    return pl.when(value.is_finite().fill_null(True)).then(usual).otherwise(word)


def _object(members: dict[str, pl.Expr]) -> pl.Expr:
    """A JSON object of these values."""
    pairs = [
        pl.concat_str(pl.lit(f"{json.dumps(name, ensure_ascii=False)}:"), value)
        for name, value in members.items()
    ]
    return pl.concat_str(pl.lit("{"), pl.concat_str(pairs, separator=","), pl.lit("}"))


def as_text(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with texts in the place of values that a writer has no, or other, texts for."""
    for column in rows:
        for part in _leaves(column):
            if isinstance(part.dtype, (pl.Date, pl.Datetime)):
                _require_years(part, column.name)
    changed = {name: _text(pl.col(name), kind) for name, kind in rows.schema.items()}
    return rows.with_columns(text.alias(name) for name, text in changed.items() if text is not None)


def _text(value: pl.Expr, kind: pl.DataType) -> pl.Expr | None:
    """What stands in a file for values of a type; None for the values themselves."""
    match kind:
        case pl.Binary():
            return value.bin.encode("base64")
        case pl.Datetime() if kind.time_zone is not None:
            # In UTC: the zones of old times have seconds, which no offset tells
            plain = value.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            return plain.dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ")
        case pl.Datetime():
            return value.dt.strftime("%Y-%m-%dT%H:%M:%S%.f")
        case pl.Time():
            return value.dt.strftime("%H:%M:%S%.f")
        case pl.List():
            inner = _text(pl.element(), inner_kind(kind.inner))
            return None if inner is None else value.list.eval(inner)
        case pl.Struct():
            parts = {}
            for field in kind.fields:
                parts[field.name] = _text(value.struct.field(field.name), inner_kind(field.dtype))
            if all(part is None for part in parts.values()):
                return None
            whole = pl.struct(
                (value.struct.field(name) if part is None else part).alias(name)
                for name, part in parts.items()
            )
            return pl.when(value.is_null()).then(None).otherwise(whole)
    return None


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
