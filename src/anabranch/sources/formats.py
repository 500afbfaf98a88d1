"""Reading one file into the stream's schema: Parquet, Arrow, CSV, JSON lines.

The fast way reads the whole file and fails whole. If that fails and rows are to be salvaged, text
formats are read again line by line: good lines become rows, bad ones are returned with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from anabranch.errors import SourceError, suggest
from anabranch.sources.base import Bad, Reading

FORMATS = ("parquet", "arrow", "csv", "json")
EXTENSIONS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
              ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}  # fmt: skip
MAX_BAD_LINES = 1000
"""Lines of one file kept aside at most; the count goes on."""


def read_file(
    stream: str, path: str, format: str, schema: pl.Schema, columns: Sequence[str],
    row_groups: Sequence[int] | None, salvage: bool,
) -> Reading:  # fmt: skip
    """The file's rows in these columns of the schema, or what is wrong with it."""
    where = f"Stream '{stream}', file '{path}'"
    try:
        table = _READERS[format](path, where, schema, columns, row_groups)
        return Reading(_conform(table, where, schema, columns))
    except SourceError as error:
        fault = str(error)
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError) as error:
        fault = f"{where}: cannot be read as {format}: {' '.join(str(error).split())}"
    if salvage and format in _SALVAGE:
        try:
            return _SALVAGE[format](stream, path, where, schema, columns)
        except (SourceError, pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError):
            pass  # not a matter of single lines: the file goes as a whole
    return Reading(None, [Bad(stream, path, fault)])


def infer_schema(path: str, format: str) -> pl.Schema:
    """The schema of a file, for streams that were registered without one."""
    try:
        match format:
            case "parquet":
                return pl.Schema(_polars_schema(pq.read_schema(path)))
            case "arrow":
                return pl.Schema(_polars_schema(_open_arrow(path).schema))
            case "csv":
                return pl.Schema(_polars_schema(pa.csv.open_csv(path).schema))
        return pl.Schema(_polars_schema(pa.json.read_json(path).schema))
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"The schema of '{path}' cannot be read as {format}: {error}. "
            "Give the stream a schema, or mend the file."
        ) from error


def _polars_schema(schema: pa.Schema) -> dict[str, pl.DataType]:
    frame = pl.from_arrow(schema.empty_table())
    assert isinstance(frame, pl.DataFrame)
    return {
        name: pl.Datetime("us", kind.time_zone)
        if isinstance(kind, pl.Datetime) and kind.time_unit == "ms"
        else kind
        for name, kind in frame.schema.items()
    }


def _read_parquet(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str],
    row_groups: Sequence[int] | None,
) -> pa.Table:  # fmt: skip
    with pq.ParquetFile(path, memory_map=True) as file:
        _require(file.schema_arrow, where, schema)
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        return file.read_row_groups(list(groups), columns=list(columns), use_threads=False)


def _read_arrow(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], _: Sequence[int] | None
) -> pa.Table:
    reader = _open_arrow(path)
    _require(reader.schema, where, schema)
    return reader.read_all().select(list(columns))


def _open_arrow(path: str) -> Any:
    source = pa.memory_map(path)
    magic = source.read(6)
    source.seek(0)
    return pa.ipc.open_file(source) if magic == b"ARROW1" else pa.ipc.open_stream(source)


def _read_csv(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], _: Sequence[int] | None
) -> pa.Table:
    if not _has_content(path):
        return _empty(schema, columns)
    header = _csv_header(path)
    _require_names(header, where, schema)
    types = {name: _arrow_type(kind) for name, kind in schema.items()}
    convert = pa.csv.ConvertOptions(column_types=types, include_columns=list(columns))
    return pa.csv.read_csv(path, convert_options=convert, read_options=_one_thread())


def _read_json(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], _: Sequence[int] | None
) -> pa.Table:
    if not _has_content(path):
        return _empty(schema, columns)
    with open(path, "rb") as file:
        first = json.loads(next(line for line in file if line.strip()))
    if not isinstance(first, dict):
        raise SourceError(f"{where}: expected one JSON object a line, the first is {first!r:.80}.")
    _require_names(list(first), where, schema)
    wanted = pa.schema([(name, _arrow_type(schema[name])) for name in columns])
    options = pa.json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
    reading = pa.json.ReadOptions(use_threads=False, block_size=1 << 24)
    return pa.json.read_json(path, parse_options=options, read_options=reading)


_READERS: dict[str, Callable[..., pa.Table]] = {
    "parquet": _read_parquet, "arrow": _read_arrow, "csv": _read_csv, "json": _read_json,
}  # fmt: skip


def _salvage_csv(
    stream: str, path: str, where: str, schema: pl.Schema, columns: Sequence[str]
) -> Reading:
    header = _csv_header(path)
    _require_names(header, where, schema)
    skipped: list[tuple[str, str]] = []

    def skip(row: Any) -> str:
        skipped.append(
            (f"expected {row.expected_columns} fields, got {row.actual_columns}", row.text)
        )
        return "skip"

    text = pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(invalid_row_handler=skip),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=True,
            quoted_strings_can_be_null=False, null_values=[""],
        ),
        read_options=_one_thread(),
    )  # fmt: skip
    frame = pl.from_arrow(text)
    assert isinstance(frame, pl.DataFrame)
    good, bad_rows, reasons = _cast_text(frame, schema)
    lines = [(f"{reason}", text) for reason, text in skipped]
    lines += list(
        zip(
            reasons,
            [",".join("" if v is None else v for v in row) for row in bad_rows.iter_rows()],
            strict=True,
        )
    )
    return Reading(good.select(columns), [_bad_lines(stream, path, where, lines)] if lines else [])


def _cast_text(
    frame: pl.DataFrame, schema: pl.Schema
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Text columns as the schema's types; rows that do not fit apart, with the reason."""
    casts = {
        name: pl.Series(name, frame[name]).str.to_datetime(strict=False, time_unit="us")
        if isinstance(kind, pl.Datetime)
        else frame[name].str.to_lowercase().replace_strict(
            {"true": True, "false": False, "1": True, "0": False}, default=None,
            return_dtype=pl.Boolean)
        if kind == pl.Boolean
        else frame[name].str.strip_chars().cast(kind, strict=False)
        if not kind.is_(pl.String)
        else frame[name]
        for name, kind in schema.items()
    }  # fmt: skip
    failed = {name: casts[name].is_null() & frame[name].is_not_null() for name in schema}
    any_failed = pl.DataFrame(failed).select(pl.any_horizontal(pl.all())).to_series()
    good = pl.DataFrame(casts).filter(~any_failed)
    bad = frame.filter(any_failed)
    reasons = []
    for at in any_failed.arg_true().to_list():
        name = next(name for name in schema if failed[name][at])
        reasons.append(f"column '{name}': expected {schema[name]}, got '{frame[name][at]}'")
    return good, bad, reasons


def _salvage_json(
    stream: str, path: str, where: str, schema: pl.Schema, columns: Sequence[str]
) -> Reading:
    # Only a file already known to be broken is read this way, so a loop over its lines is fair.
    rows: list[dict[str, Any]] = []
    bad: list[tuple[str, str]] = []
    with open(path, "rb") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise ValueError("not an object")
                missing = [name for name in schema if name not in value]
                if missing:
                    raise ValueError(f"column '{missing[0]}' is missing")
                kept = {name: value[name] for name in columns}
                _fits(kept, schema)
                rows.append(kept)
            except (ValueError, UnicodeDecodeError) as error:
                bad.append((str(error), line.decode("utf-8", "replace").rstrip("\n")))
    wanted = {name: schema[name] for name in columns}
    frame = pl.DataFrame(rows, schema=wanted, orient="row")
    return Reading(frame, [_bad_lines(stream, path, where, bad)] if bad else [])


def _fits(row: dict[str, Any], schema: pl.Schema) -> None:
    for name, value in row.items():
        try:
            pl.Series([value], dtype=schema[name], strict=True)
        except (TypeError, pl.exceptions.PolarsError, OverflowError) as error:
            raise ValueError(f"column '{name}': expected {schema[name]}, got {value!r}") from error


_SALVAGE: dict[str, Callable[..., Reading]] = {"csv": _salvage_csv, "json": _salvage_json}


def _bad_lines(stream: str, path: str, where: str, lines: list[tuple[str, str]]) -> Bad:
    reason = f"{where}: {len(lines)} bad line(s), first: {lines[0][0]}"
    kept = tuple(json.dumps({"reason": why, "line": text}) for why, text in lines[:MAX_BAD_LINES])
    return Bad(stream, path, reason, kept)


def _require(found: pa.Schema, where: str, schema: pl.Schema) -> None:
    """The file must have every declared column, in a type that fits without loss."""
    _require_names(found.names, where, schema)
    types = _polars_schema(found)
    for name, wanted in schema.items():
        if not _fits_into(types[name], wanted):
            raise SourceError(
                f"{where}: column '{name}' has the wrong type: expected {wanted}, the file has "
                f"{types[name]}. Convert the file, or register the stream with that type."
            )


def _require_names(found: Sequence[str], where: str, schema: pl.Schema) -> None:
    for name, wanted in schema.items():
        if name not in found:
            raise SourceError(
                f"{where}: column '{name}' is missing: expected {wanted}.{suggest(name, found)}"
            )


def _fits_into(found: pl.DataType, wanted: pl.DataType) -> bool:
    if found == wanted or found == pl.Null:
        return True
    if found.is_integer() and wanted.is_integer():
        return _bits(found) + (found.is_unsigned_integer() and wanted.is_signed_integer()) <= _bits(
            wanted
        ) and (wanted.is_signed_integer() or found.is_unsigned_integer())
    if wanted == pl.Float64:
        return found == pl.Float32 or (found.is_integer() and _bits(found) <= 32)
    if isinstance(found, pl.Datetime) and isinstance(wanted, pl.Datetime):
        return found.time_zone == wanted.time_zone and found.time_unit != "ns"
    return isinstance(found, (pl.Categorical, pl.Enum)) and wanted == pl.String


def _bits(kind: pl.DataType) -> int:
    return int("".join(part for part in str(kind) if part.isdigit()))


def _conform(
    table: pa.Table, where: str, schema: pl.Schema, columns: Sequence[str]
) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.select(pl.col(name).cast(schema[name]) for name in columns)


def _arrow_type(kind: pl.DataType) -> pa.DataType:
    return pl.Series([], dtype=kind).to_arrow(compat_level=pl.CompatLevel.oldest()).type


def _csv_header(path: str) -> list[str]:
    return list(pa.csv.open_csv(path).schema.names)


def _one_thread() -> pa.csv.ReadOptions:
    return pa.csv.ReadOptions(use_threads=False, block_size=1 << 24)


def _has_content(path: str) -> bool:
    with open(path, "rb") as file:
        return bool(file.read(4096).strip())


def _empty(schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    return pl.DataFrame(schema={name: schema[name] for name in columns}).to_arrow()
