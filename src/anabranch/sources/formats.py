"""Reading one file into the stream's schema: Parquet, Arrow, CSV, JSON lines.

The fast way reads the whole file and fails whole. If that fails and rows are to be salvaged, text
formats are read again in ever smaller blocks: good lines become rows, bad ones are returned with the
reason.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
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
"""Lines of one file kept aside at most; the count goes on, and the whole file is kept instead."""
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
# An empty field is NULL, `""` an empty string: as our own CSV sink, DuckDB and Polars have it
_CSV_NULLS: dict[str, Any] = {
    "strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""],
}  # fmt: skip
_PLACE = re.compile(r"^In CSV column #\d+: |Row #\d+: | in row \d+$")
"""Where in its block a parser stood: of no use once the row is alone."""


def read_file(
    stream: str, path: str, format: str, schema: pl.Schema, columns: Sequence[str],
    row_groups: Sequence[int] | None, salvage: bool,
) -> Reading:  # fmt: skip
    """The file's rows in these columns of the schema, or what is wrong with it."""
    where = f"Stream '{stream}', file '{path}'"
    try:
        table = _READERS[format](path, where, schema, columns, row_groups)
        return Reading(_conform(table, schema, columns))
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
                return pl.Schema(_in_microseconds(_polars_schema(_open_csv(path).schema)))
        return pl.Schema(_in_microseconds(_polars_schema(pa.json.read_json(path).schema)))
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"The schema of '{path}' cannot be read as {format}: {str(error).rstrip('.')}. "
            "Give the stream a schema, or mend the file."
        ) from error


def _in_microseconds(schema: dict[str, pl.DataType]) -> dict[str, pl.DataType]:
    """Texts have no unit of time of their own; Arrow takes them for nanoseconds if there is a fraction."""
    return {
        name: pl.Datetime("us", kind.time_zone) if isinstance(kind, pl.Datetime) else kind
        for name, kind in schema.items()
    }


def _polars_schema(schema: pa.Schema) -> dict[str, pl.DataType]:
    return {field.name: _polars_type(field) for field in schema}


def _polars_type(field: pa.Field) -> pl.DataType:
    """The type of a column, in which its values are kept: texts however encoded, times in microseconds."""
    try:
        # Not `empty_table`, which imports pandas, as everything does that makes an array of a list: 0.3 s
        kind = pl.Series(pa.chunked_array([], field.type)).dtype
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SourceError(
            f"Column '{field.name}' is of Arrow's type {field.type}, which queries cannot work with. Leave "
            "the column out, with a schema= of the others, or convert it before."
        ) from error
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(kind, pl.Datetime) and kind.time_unit == "ms":
        return pl.Datetime("us", kind.time_zone)
    return kind


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
    if source.read(6) == b"ARROW1":
        return pa.ipc.open_file(source)
    # A stream has no footer: one cut off between two batches reads like a shorter one
    source.seek(max(0, source.size() - len(END_OF_STREAM)))
    if source.read() != END_OF_STREAM:
        raise pa.ArrowInvalid("neither an Arrow file nor an Arrow stream with its end mark")
    source.seek(0)
    return pa.ipc.open_stream(source)


def _read_csv(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], _: Sequence[int] | None
) -> pa.Table:
    if not _has_content(path):
        return _empty(schema, columns)
    _require_names(_csv_header(path), where, schema)
    return _parse_csv(path, schema, columns)


def _parse_csv(source: Any, schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    types = {name: _arrow_type(kind) for name, kind in schema.items()}
    convert = pa.csv.ConvertOptions(column_types=types, include_columns=list(columns), **_CSV_NULLS)
    return pa.csv.read_csv(source, convert_options=convert, read_options=_one_thread())


def _read_json(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], _: Sequence[int] | None
) -> pa.Table:
    if not _has_content(path):
        return _empty(schema, columns)
    with open(path, "rb") as file:
        _require_names(_json_names(file, where, schema), where, schema)
    return _parse_json(path, schema, columns)


def _parse_json(source: Any, schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    wanted = pa.schema([(name, _arrow_type(schema[name])) for name in columns])
    options = pa.json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
    reading = pa.json.ReadOptions(use_threads=False, block_size=1 << 24)
    return pa.json.read_json(source, parse_options=options, read_options=reading)


_READERS: dict[str, Callable[..., pa.Table]] = {
    "parquet": _read_parquet, "arrow": _read_arrow, "csv": _read_csv, "json": _read_json,
}  # fmt: skip


def _salvage_csv(
    stream: str, path: str, where: str, schema: pl.Schema, columns: Sequence[str]
) -> Reading:
    header = _csv_header(path)
    _require_names(header, where, schema)
    bad: dict[int, tuple[str, str]] = {}

    def skip(row: Any) -> str:
        bad[row.number] = (
            f"expected {row.expected_columns} fields, got {row.actual_columns}",
            row.text,
        )
        return "skip"

    # As bytes, so that a row that is not UTF-8 costs that row only
    raw = pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(invalid_row_handler=skip),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(header, pa.binary()), **_CSV_NULLS
        ),
        read_options=_one_thread(),
    )

    def parse(start: int, end: int) -> pa.Table:
        target = pa.BufferOutputStream()
        pa.csv.write_csv(raw.slice(start, end - start), target)
        return _parse_csv(pa.BufferReader(target.getvalue()), schema, columns)

    good, misfits = _sift(parse, raw.num_rows)
    # The header is row 1
    numbers = [n for n in range(2, raw.num_rows + len(bad) + 2) if n not in bad]
    for at, reason in misfits:
        fields = [value for (value,) in raw.slice(at, 1).to_pydict().values()]
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow(
            "" if value is None else value.decode("utf-8", "replace") for value in fields
        )
        bad[numbers[at]] = (reason, text.getvalue())
    return _salvaged(stream, path, where, schema, columns, good, bad)


def _salvage_json(
    stream: str, path: str, where: str, schema: pl.Schema, columns: Sequence[str]
) -> Reading:
    with open(path, "rb") as file:
        lines = {number: line for number, line in enumerate(file, start=1) if line.strip()}
    numbers, texts = list(lines), list(lines.values())
    _require_names(_json_names(texts, where, schema, salvage=True), where, schema)

    def parse(start: int, end: int) -> pa.Table:
        return _parse_json(pa.BufferReader(b"".join(texts[start:end])), schema, columns)

    good, misfits = _sift(parse, len(texts))
    bad = {
        numbers[at]: (reason, texts[at].decode("utf-8", "replace").rstrip("\r\n"))
        for at, reason in misfits
    }
    return _salvaged(stream, path, where, schema, columns, good, bad)


def _json_names(
    lines: Iterable[bytes], where: str, schema: pl.Schema, salvage: bool = False
) -> list[str]:
    """The keys of the objects, as many of them as it takes to have met all columns.

    Many writers leave out what is NULL, so the first object need not have all.
    """
    names: dict[str, None] = {}
    for line in lines:
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError:
            if salvage or names:
                continue
            raise
        if isinstance(value, dict):
            names.update(dict.fromkeys(value))
        elif not salvage and not names:
            raise SourceError(
                f"{where}: expected one JSON object a line, the first is {value!r:.80}."
            )
        if names.keys() >= schema.keys():
            break
    if not names:
        raise SourceError(f"{where}: no line of it is a JSON object.")
    return list(names)


_SALVAGE: dict[str, Callable[..., Reading]] = {"csv": _salvage_csv, "json": _salvage_json}


def _sift(
    parse: Callable[[int, int], pa.Table], count: int
) -> tuple[list[pa.Table], list[tuple[int, str]]]:
    """What `parse(start, end)` makes of rows 0 … count, and the rows it refuses, with the reason.

    Halves whatever is refused. The parser is the one whole files are read with, so a good row means
    the same whatever stands beside it.
    """
    good: list[pa.Table] = []
    bad: list[tuple[int, str]] = []
    waiting = [(0, count)] if count else []
    while waiting:
        start, end = waiting.pop()
        try:
            good.append(parse(start, end))
        except (pa.ArrowException, ValueError) as error:
            if end - start == 1:
                bad.append((start, _PLACE.sub("", " ".join(str(error).split()))))
            else:
                middle = (start + end) // 2
                waiting += [(middle, end), (start, middle)]
    return good, bad


def _salvaged(
    stream: str, path: str, where: str, schema: pl.Schema, columns: Sequence[str],
    good: list[pa.Table], bad: dict[int, tuple[str, str]],
) -> Reading:  # fmt: skip
    rows = _conform(pa.concat_tables([_empty(schema, columns), *good]), schema, columns)
    if not bad:
        return Reading(rows)
    kept = sorted(bad.items())[:MAX_BAD_LINES]
    lines = tuple(json.dumps({"row": n, "reason": why, "line": text}) for n, (why, text) in kept)
    first, (why, _) = kept[0]
    reason = f"{where}: {len(bad)} bad line(s), the first is row {first}: {why}"
    return Reading(rows, [Bad(stream, path, reason, lines, len(bad))])


def _require(found: pa.Schema, where: str, schema: pl.Schema) -> None:
    """The file must have every declared column, in a type that fits without loss."""
    _require_names(found.names, where, schema)
    types = _polars_schema(pa.schema([found.field(name) for name in schema]))
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
        # Instants are stored alike in every zone; with and without a zone are different things
        zoned = found.time_zone is None, wanted.time_zone is None
        return zoned[0] == zoned[1] and found.time_unit != "ns"
    return False


def _bits(kind: pl.DataType) -> int:
    return int("".join(part for part in str(kind) if part.isdigit()))


def _conform(table: pa.Table, schema: pl.Schema, columns: Sequence[str]) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame.select(pl.col(name).cast(schema[name]) for name in columns)


def _arrow_type(kind: pl.DataType) -> pa.DataType:
    return pl.Series([], dtype=kind).to_arrow(compat_level=pl.CompatLevel.oldest()).type


def _csv_header(path: str) -> list[str]:
    # Not through Arrow, which would parse the first block and stumble over its bad lines
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        return next((fields for fields in csv.reader(file) if fields), [])


def _open_csv(path: str) -> Any:
    return pa.csv.open_csv(path, convert_options=pa.csv.ConvertOptions(**_CSV_NULLS))


def _one_thread() -> pa.csv.ReadOptions:
    return pa.csv.ReadOptions(use_threads=False, block_size=1 << 24)


def _has_content(path: str) -> bool:
    with open(path, "rb") as file:
        return any(line.strip() for line in file)


def _empty(schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    return pl.DataFrame(schema={name: schema[name] for name in columns}).to_arrow()
