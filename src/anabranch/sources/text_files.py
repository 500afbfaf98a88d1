"""Parsing CSV and JSON lines into the columns of a schema, whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from anabranch.errors import SourceError, suggest
from anabranch.sources.form import USUAL, FileForm, suggest_delimiter
from anabranch.sources.json_array import in_lines
from anabranch.sources.opening import Text, TextPart, blocks, open_source, open_stream, open_text
from anabranch.sources.quotes import ends_in_quotes
from anabranch.sources.text_values import from_text, inner_kind, type_in_text

BLOCK, LARGEST_BLOCK = 1 << 24, 1 << 30
"""Bytes that are parsed at a time, and where a single row is larger than that."""
OPEN_QUOTE = "a quote is open where the file ends, so it was cut off within a value"


def read_csv(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm = USUAL,
    span: TextPart | None = None,
) -> pa.Table:  # fmt: skip
    text = open_text(path, form, span)
    if not _has_content(text):
        return empty_table(schema, columns)
    header = csv_header(text, form, schema)
    require_names(header, where, {name: schema[name] for name in columns}, form)
    if ends_in_quotes(text, form):
        raise ValueError(OPEN_QUOTE)
    return parse_csv(text, schema, columns, header, form)


def parse_csv(
    text: Text, schema: pl.Schema, columns: Sequence[str], header: Sequence[str],
    form: FileForm = USUAL,
) -> pa.Table:  # fmt: skip
    """The rows of a CSV text whose columns have these names, some of which the schema knows."""
    present = [name for name in columns if name in header]
    types = {
        name: arrow_type(type_in_text(schema[name], "csv", form.time_format))
        for name in schema
        if name in header
    }
    convert = csv_values(form, column_types=types, include_columns=present)
    table = parse_csv_text(text, form, header, convert)
    infinite = _infinite_columns(table)
    if infinite:
        as_texts = csv_values(
            form, column_types=dict.fromkeys(infinite, pa.string()), include_columns=infinite
        )
        _require_infinities(table, parse_csv_text(text, form, header, as_texts), schema)
    kinds = {name: schema[name] for name in present}
    return from_text(table, kinds, "csv", form.time_format)


def parse_csv_text(
    text: Text, form: FileForm, header: Sequence[str], convert: pa.csv.ConvertOptions,
    **options: Any,
) -> pa.Table:  # fmt: skip
    """A CSV text in blocks that lose nothing, on this thread."""
    names = None if form.header else list(header)
    rows = csv_rows(len(header), form, **options)

    def parse(block: int) -> pa.Table:
        with open_source(text) as source:
            size = _harmless_block(source, block)
        with open_source(text) as source:
            reading = pa.csv.ReadOptions(use_threads=False, block_size=size, column_names=names)
            return pa.csv.read_csv(source, reading, rows, convert)

    return _in_blocks(parse)


def csv_values(form: FileForm, **options: Any) -> pa.csv.ConvertOptions:
    """How fields become values. An empty field is NULL, `""` an empty string: as our own CSV sink, DuckDB
    and Polars have it."""
    return pa.csv.ConvertOptions(
        strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=list(form.nulls),
        decimal_point=form.decimal, **options,
    )  # fmt: skip


def _harmless_block(text: pa.NativeFile, block: int) -> int:
    """A size of block, near this one, that cuts no pair of carriage return and line feed in two.

    Arrow drops the line feed of such a pair, also where it is part of a value.
    """
    length = text.size()
    for size in range(block, block - 1000, -1):
        ends = range(size, length, size)
        if not any(text.read_at(2, end - 1) == b"\r\n" for end in ends):
            return size
    raise ValueError(
        "it has so many line breaks of two characters that it cannot be read in blocks; use parquet, "
        f"or files of less than {block >> 20} MiB"
    )


def csv_rows(width: int, form: FileForm = USUAL, **options: Any) -> pa.csv.ParseOptions:
    """How rows are told apart: a line break in quotes ends none, wherever a block ends.

    In files of one column an empty line is a NULL, in others it is nothing.
    """
    return pa.csv.ParseOptions(
        delimiter=form.delimiter, quote_char=form.quote or False, escape_char=form.escape or False,
        newlines_in_values=True, ignore_empty_lines=width > 1, **options,
    )  # fmt: skip


def advise(path: str, format: str, form: FileForm, error: Exception) -> str:
    """What to do about a file whose columns could not be told."""
    if isinstance(error, UnicodeDecodeError):
        return (
            f" It is no text in {error.encoding}: give the stream its encoding, as "
            "encoding='latin-1', or mend the file."
        )
    names: list[str] = []
    if format == "csv":
        with suppress(OSError, ValueError, csv.Error, pa.ArrowException):
            names = csv_header(open_text(path, form), form)
    return suggest_delimiter(names) or " Give the stream a schema, or mend the file."


def csv_header(text: Text, form: FileForm = USUAL, schema: Iterable[str] = ()) -> list[str]:
    """The names of the columns of a CSV text; without a header those of the schema, or numbers."""
    # Not through Arrow, which would parse the first block and stumble over its bad lines
    with (
        open_stream(text) as source,
        io.TextIOWrapper(source, encoding="utf-8-sig", errors="replace", newline="") as lines,  # type: ignore[type-var]
    ):
        rows = csv.reader(
            lines, delimiter=form.delimiter, quotechar=form.quote, escapechar=form.escape,
            quoting=csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE,
        )  # fmt: skip
        first = next((fields for fields in rows if fields), [])
    if form.header:
        return first
    names = list(schema) or [f"column{number}" for number in range(len(first))]
    if len(names) != len(first):
        raise ValueError(
            f"it has {len(first)} columns and no header, but the schema has {len(names)}: name all of them, "
            "in their order"
        )
    return names


def read_json(
    path: str, where: str, schema: pl.Schema, columns: Sequence[str], form: FileForm = USUAL,
    span: TextPart | None = None,
) -> pa.Table:  # fmt: skip
    text = open_text(path, form, span)
    if not _has_content(text):
        return empty_table(schema, columns)
    text = in_lines(text)
    if form.missing == "stop":
        # A part may lack a column that is NULL in all of it, as long as the file has it
        with open_stream(text if span is None else path) as lines:
            wanted = pl.Schema({name: schema[name] for name in columns})
            require_names(json_names(lines, where, wanted), where, wanted, form)
    return parse_json(text, schema, columns, form)


def parse_json(
    text: Text, schema: pl.Schema, columns: Sequence[str], form: FileForm = USUAL
) -> pa.Table:
    """The rows of JSON lines: a file, or what would stand in one."""
    times = form.time_format
    types = [(name, arrow_type(type_in_text(schema[name], "json", times))) for name in columns]
    options = pa.json.ParseOptions(
        explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"
    )

    table = _parse_json_text(text, options)
    if _infinite_columns(table):
        # As doubles: what is infinite only as a shorter float was a number
        wide = [(n, pa.float64() if pa.types.is_floating(kind) else kind) for n, kind in types]
        again = pa.json.ParseOptions(
            explicit_schema=pa.schema(wide), unexpected_field_behavior="ignore"
        )
        _require_infinities(table, _parse_json_text(text, again), schema)
    return from_text(table, {name: schema[name] for name in columns}, "json", times)


def _parse_json_text(text: Text, options: pa.json.ParseOptions) -> pa.Table:
    """JSON lines in blocks, on this thread."""

    def parse(block: int) -> pa.Table:
        with open_source(text) as source:
            reading = pa.json.ReadOptions(use_threads=False, block_size=block)
            return pa.json.read_json(source, reading, options)

    return _in_blocks(parse)


def _infinite_columns(table: pa.Table) -> list[str]:
    floats = (field.name for field in table.schema if pa.types.is_floating(field.type))
    return [name for name in floats if pc.any(pc.is_inf(table[name])).as_py()]


def _require_infinities(table: pa.Table, written: pa.Table, schema: pl.Schema) -> None:
    """Raises ValueError if a column has infinities where the text has a number that is too large for it."""
    for name in _infinite_columns(table):
        texts = pl.Series(written[name].filter(pc.is_inf(table[name]))).cast(pl.String)
        numbers = texts.filter(~texts.str.contains(r"(?i)^\s*[+-]?inf(inity)?\s*$"))
        if len(numbers):
            raise ValueError(f"column '{name}': {numbers[0]} is more than {schema[name]} can hold")


def json_names(
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
        except RecursionError as error:
            if salvage or names:
                continue
            raise SourceError(f"{where}: a line of it is nested too deep to be read.") from error
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


def _in_blocks(parse: Callable[[int], pa.Table]) -> pa.Table:
    """What is parsed in blocks of the usual size; in larger ones if a row does not fit."""
    try:
        return parse(BLOCK)
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error):
            raise
        return parse(LARGEST_BLOCK)


def require_names(
    found: Sequence[str], where: str, schema: Mapping[str, pl.DataType], form: FileForm = USUAL
) -> None:
    """Raises SourceError unless each of these columns is there, once."""
    for name, wanted in schema.items():
        if found.count(name) > 1:
            raise SourceError(
                f"{where}: {found.count(name)} columns are called '{name}', so which is meant cannot be "
                "told. Give them names of their own."
            )
        if name not in found and form.missing == "stop":
            raise SourceError(
                f"{where}: column '{name}' is missing: expected {wanted}.{suggest(name, found)}"
            )


def arrow_type(kind: pl.DataType) -> pa.DataType:
    """The type for Arrow's parsers, which know short lists only."""
    if isinstance(kind, pl.List):
        return pa.list_(arrow_type(inner_kind(kind.inner)))
    if isinstance(kind, pl.Struct):
        fields = kind.fields
        return pa.struct([(one.name, arrow_type(inner_kind(one.dtype))) for one in fields])
    return pl.Series([], dtype=kind).to_arrow(compat_level=pl.CompatLevel.oldest()).type


def empty_table(schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    return pl.DataFrame(schema={name: schema[name] for name in columns}).to_arrow()


def _has_content(text: Text) -> bool:
    return any(block.strip() for block in blocks(text))
