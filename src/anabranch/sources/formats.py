"""Reading one file into the stream's schema: Parquet, Arrow, ORC, Avro, CSV, JSON lines.

The fast way reads the whole file and fails whole. If that fails and rows are to be salvaged, text
formats are read again line by line (`salvage.py`). Files belong to the user, who may cut them short at
any time: they are read, never mapped, for a mapped page that is gone kills the process.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence

import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet as pq

from anabranch.errors import SourceError
from anabranch.language.kinds import map_advice
from anabranch.sources.base import Bad, Reading
from anabranch.sources.form import USUAL, FileForm
from anabranch.sources.json_array import in_lines
from anabranch.sources.listing import Version, regular_version
from anabranch.sources.opening import Text, TextPart, open_bytes, open_source, open_text
from anabranch.sources.paths import shown
from anabranch.sources.salvage import FAULTS, Lines, bad_lines, salvage_csv, salvage_json
from anabranch.sources.text_files import (
    advise,
    csv_header,
    csv_rows,
    csv_values,
    read_csv,
    read_json,
    require_names,
)

FORMATS = ("parquet", "arrow", "csv", "json", "orc", "avro")
EXTENSIONS = {".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
              ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json",
              ".orc": "orc", ".avro": "avro"}  # fmt: skip
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
_SALVAGE: dict[str, Callable[..., tuple[pa.Table, Lines]]] = {
    "csv": salvage_csv, "json": salvage_json,
}  # fmt: skip


def read_file(
    stream: str, path: str, format: str, schema: pl.Schema, columns: Sequence[str],
    row_groups: Sequence[int] | None, salvage: bool, version: Version | None = None,
    form: FileForm = USUAL, span: TextPart | None = None,
) -> Reading:  # fmt: skip
    """The file's rows in these columns of the schema, or what is wrong with it.

    With a version, only if the file is still what it was then.
    """
    where = f"Stream '{stream}', file '{shown(path)}'"
    try:
        before = regular_version(path, where)
        if version in (None, before):
            # From here on columns are called as the file calls them
            there = pl.Schema({form.in_files(name): kind for name, kind in schema.items()})
            wanted = [form.in_files(name) for name in columns]
            what = stream, path, where, format, there, wanted
            reading = _read(*what, row_groups, salvage, form, span)
            if reading.rows is not None and form.rename:
                reading.rows = reading.rows.rename(dict(zip(wanted, columns, strict=True)))
            followed = span is not None and version is None
            if followed or not os.path.exists(path) or regular_version(path, where) == before:
                return reading
        fault = (
            f"{where}: was changed while it was read. Files must be complete when they appear: write "
            "them under a name that begins with '_' and rename them"
        )
    except SourceError as error:
        fault = str(error)
    except FAULTS as error:
        fault = f"{where}: cannot be read: {getattr(error, 'strerror', None) or _words(error)}"
    return Reading(None, [Bad(stream, path, fault)])


def _read(
    stream: str, path: str, where: str, format: str, schema: pl.Schema, columns: Sequence[str],
    row_groups: Sequence[int] | None, salvage: bool, form: FileForm, span: TextPart | None,
) -> Reading:  # fmt: skip
    try:
        if format == "parquet":
            table = _read_parquet(path, where, schema, columns, row_groups, form)
        else:
            # Only of texts are there parts
            part = () if span is None else (span,)
            table = _READERS[format](path, where, schema, columns, form, *part)
        return Reading(conform(table, schema, columns))
    except SourceError as error:
        fault = str(error)
    except FAULTS as error:
        fault = f"{where}: cannot be read as {format}: {_words(error)}"
    if salvage and format in _SALVAGE:
        try:
            table, lines = _SALVAGE[format](path, where, schema, columns, form, span)
            return Reading(conform(table, schema, columns), bad_lines(stream, path, where, lines))
        except FAULTS:
            pass  # not a matter of single lines: the file goes as a whole
    return Reading(None, [Bad(stream, path, fault)])


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def infer_schema(path: str, format: str, form: FileForm = USUAL) -> pl.Schema:
    """The schema of a file, for streams that were registered without one."""
    try:
        regular_version(path, f"The schema of '{shown(path)}' cannot be read")
        types = polars_schema(_arrow_schema(path, format, form))
        return pl.Schema({form.here(name): kind for name, kind in types.items()})
    except (pa.ArrowException, OSError, ValueError) as error:
        raise SourceError(
            f"The schema of '{shown(path)}' cannot be read as {format}: {str(error).rstrip('.')}."
            f"{advise(path, format, form, error)}"
        ) from error


def _arrow_schema(path: str, format: str, form: FileForm) -> pa.Schema:
    if format in ("csv", "json"):
        text = open_text(path, form)
        with open_source(text if format == "csv" else in_lines(text)) as source:
            return (
                _open_csv(text, source, form) if format == "csv" else pa.json.read_json(source)
            ).schema
    with open_bytes(path) as source:
        match format:
            case "parquet":
                return pq.read_schema(source)
            case "orc":
                return pa.orc.ORCFile(source).schema
            case "avro":
                return pl.read_avro(io.BytesIO(source.read()), n_rows=0).to_arrow().schema
        return _open_arrow(source).schema


def polars_schema(schema: pa.Schema) -> dict[str, pl.DataType]:
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
    if isinstance(kind, pl.Datetime):
        # Nanoseconds are narrowed when they are read, if they are whole microseconds
        return pl.Datetime("us", kind.time_zone)
    return kind


def _read_parquet(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str],
    row_groups: Sequence[int] | None, form: FileForm,
) -> pa.Table:  # fmt: skip
    with open_bytes(path) as source, pq.ParquetFile(source) as file:
        present = present_columns(file.schema_arrow, where, schema, columns, form)
        groups = range(file.num_row_groups) if row_groups is None else row_groups
        return file.read_row_groups(list(groups), columns=present, use_threads=False)


def _read_arrow(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm
) -> pa.Table:
    with open_bytes(path) as source:
        found = _open_arrow(source).schema
        present = present_columns(found, where, schema, columns, form)
        wanted = sorted(found.get_field_index(name) for name in present)
        reader = _open_arrow(source, pa.ipc.IpcReadOptions(included_fields=wanted))
        return reader.read_all().select(present)


def _read_orc(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm
) -> pa.Table:
    with open_bytes(path) as source:
        file = pa.orc.ORCFile(source)
        return file.read(present_columns(file.schema, where, schema, columns, form))


def _read_avro(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm
) -> pa.Table:
    with open_bytes(path) as source:
        rows = pl.read_avro(io.BytesIO(source.read())).to_arrow()
    return rows.select(present_columns(rows.schema, where, schema, columns, form))


_READERS: dict[str, Callable[..., pa.Table]] = {
    "arrow": _read_arrow, "orc": _read_orc, "avro": _read_avro, "csv": read_csv, "json": read_json,
}  # fmt: skip


def _open_arrow(
    source: pa.NativeFile, options: pa.ipc.IpcReadOptions | None = None
) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    source.seek(0)
    if source.read(6) == b"ARROW1":
        return pa.ipc.open_file(source, options=options)
    # A stream has no footer: one cut off between two batches reads like a shorter one
    source.seek(max(0, source.size() - len(END_OF_STREAM)))
    if source.read() != END_OF_STREAM:
        raise pa.ArrowInvalid("neither an Arrow file nor an Arrow stream with its end mark")
    source.seek(0)
    return pa.ipc.open_stream(source, options=options)


def _open_csv(text: Text, source: pa.NativeFile, form: FileForm) -> pa.csv.CSVStreamingReader:
    header = csv_header(text, form)
    names = pa.csv.ReadOptions(column_names=None if form.header else header)
    return pa.csv.open_csv(source, names, csv_rows(len(header), form), csv_values(form))


def present_columns(
    found: pa.Schema, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm
) -> list[str]:
    """Those of the columns that the file has, in a type that fits without loss."""
    require_names(found.names, where, {name: schema[name] for name in columns}, form)
    present = [name for name in columns if name in found.names]
    types = polars_schema(pa.schema([found.field(name) for name in present]))
    for name in present:
        wanted = schema[name]
        if not _fits_into(types[name], wanted):
            raise SourceError(
                f"{where}: column '{name}' has the wrong type: expected {wanted}, the file has "
                f"{types[name]}. "
                f"{map_advice(types[name]) or 'Convert the file, or register the stream with that type.'}"
            )
    return present


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
        return zoned[0] == zoned[1]
    return False


def _bits(kind: pl.DataType) -> int:
    return int("".join(part for part in str(kind) if part.isdigit()))


def conform(table: pa.Table, schema: pl.Schema, columns: Sequence[str]) -> pl.DataFrame:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    for column in frame:
        _require_whole(column, schema[column.name])
    # By column and not by expression: a file may call one of its columns `*`
    return pl.DataFrame(
        [
            frame[name].cast(schema[name])
            if name in frame.columns
            else pl.repeat(None, frame.height, dtype=schema[name], eager=True).alias(name)
            for name in columns
        ]
    )


def _require_whole(times: pl.Series, wanted: pl.DataType) -> None:
    """Raises ValueError for nanoseconds that a column of microseconds cannot keep."""
    kind = times.dtype
    if not (isinstance(kind, pl.Datetime) and isinstance(wanted, pl.Datetime)):
        return
    if kind.time_unit == "ns" and wanted.time_unit != "ns":
        broken = times.filter(times.to_physical() % 1000 != 0)
        if len(broken):
            raise ValueError(
                f"column '{times.name}' has {len(broken)} times that are no whole microseconds, as "
                f"{broken.dt.to_string('iso')[0]}, but its type is {wanted}; round them before"
            )
