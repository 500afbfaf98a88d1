"""Parsing CSV and JSON lines into the columns of a schema, whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json

from anabranch.errors import SourceError, suggest
from anabranch.sources.quotes import ends_in_quotes
from anabranch.sources.text_values import from_text, type_in_text

BLOCK, LARGEST_BLOCK = 1 << 24, 1 << 30
"""Bytes that are parsed at a time, and where a single row is larger than that."""
OPEN_QUOTE = "a quote is open where the file ends, so it was cut off within a value"
# An empty field is NULL, `""` an empty string: as our own CSV sink, DuckDB and Polars have it
CSV_NULLS: dict[str, Any] = {
    "strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""],
}  # fmt: skip


def read_csv(path: str, where: str, schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    if not _has_content(path):
        return empty_table(schema, columns)
    header = csv_header(path)
    require_names(header, where, schema)
    if ends_in_quotes(path):
        raise ValueError(OPEN_QUOTE)
    return parse_csv(path, schema, columns, len(header))


def parse_csv(
    source: str | pa.Buffer, schema: pl.Schema, columns: Sequence[str], width: int
) -> pa.Table:
    """The rows of a CSV text with a header of so many names: a file, or what would stand in one."""
    types = {name: arrow_type(type_in_text(kind, "csv")) for name, kind in schema.items()}
    convert = pa.csv.ConvertOptions(column_types=types, include_columns=list(columns), **CSV_NULLS)
    table = parse_csv_text(source, csv_rows(width), convert)
    infinite = _infinite_columns(table)
    if infinite:
        as_texts = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(infinite, pa.string()), include_columns=infinite, **CSV_NULLS
        )
        texts = parse_csv_text(source, csv_rows(width), as_texts)
        _require_infinities(table, texts, schema)
    return from_text(table, {name: schema[name] for name in columns}, "csv")


def parse_csv_text(
    source: str | pa.Buffer, rows: pa.csv.ParseOptions, convert: pa.csv.ConvertOptions
) -> pa.Table:
    """A CSV text in blocks that lose nothing, on this thread."""

    def parse(block: int) -> pa.Table:
        with _opened(source) as text:
            size = _harmless_block(text, block)
        with _opened(source) as text:
            options = pa.csv.ReadOptions(use_threads=False, block_size=size)
            return pa.csv.read_csv(text, options, rows, convert)

    return _in_blocks(parse)


def _opened(source: str | pa.Buffer) -> pa.NativeFile:
    return open_bytes(source) if isinstance(source, str) else pa.BufferReader(source)


def open_bytes(path: str) -> pa.OSFile:
    """A file to read for Arrow, which takes names that are no UTF-8 as bytes only."""
    return pa.OSFile(os.fsencode(path))


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


def csv_rows(width: int, **options: Any) -> pa.csv.ParseOptions:
    """How rows are told apart: a line break in quotes ends none, wherever a block ends.

    In files of one column an empty line is a NULL, in others it is nothing.
    """
    return pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=width > 1, **options)


def csv_header(path: str) -> list[str]:
    # Not through Arrow, which would parse the first block and stumble over its bad lines
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        return next((fields for fields in csv.reader(file) if fields), [])


def read_json(path: str, where: str, schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    if not _has_content(path):
        return empty_table(schema, columns)
    with open(path, "rb") as file:
        require_names(json_names(file, where, schema), where, schema)
    return parse_json(path, schema, columns)


def parse_json(source: str | pa.Buffer, schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    """The rows of JSON lines: a file, or what would stand in one."""
    types = [(name, arrow_type(type_in_text(schema[name], "json"))) for name in columns]
    options = pa.json.ParseOptions(
        explicit_schema=pa.schema(types), unexpected_field_behavior="ignore"
    )

    table = _parse_json_text(source, options)
    if _infinite_columns(table):
        # As doubles: what is infinite only as a shorter float was a number
        wide = [(n, pa.float64() if pa.types.is_floating(kind) else kind) for n, kind in types]
        again = pa.json.ParseOptions(
            explicit_schema=pa.schema(wide), unexpected_field_behavior="ignore"
        )
        _require_infinities(table, _parse_json_text(source, again), schema)
    return from_text(table, {name: schema[name] for name in columns}, "json")


def _parse_json_text(source: str | pa.Buffer, options: pa.json.ParseOptions) -> pa.Table:
    """JSON lines in blocks, on this thread."""

    def parse(block: int) -> pa.Table:
        with _opened(source) as text:
            reading = pa.json.ReadOptions(use_threads=False, block_size=block)
            return pa.json.read_json(text, reading, options)

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


def require_names(found: Sequence[str], where: str, schema: pl.Schema) -> None:
    for name, wanted in schema.items():
        if found.count(name) > 1:
            raise SourceError(
                f"{where}: {found.count(name)} columns are called '{name}', so which is meant cannot be "
                "told. Give them names of their own."
            )
        if name not in found:
            raise SourceError(
                f"{where}: column '{name}' is missing: expected {wanted}.{suggest(name, found)}"
            )


def arrow_type(kind: pl.DataType) -> pa.DataType:
    return pl.Series([], dtype=kind).to_arrow(compat_level=pl.CompatLevel.oldest()).type


def empty_table(schema: pl.Schema, columns: Sequence[str]) -> pa.Table:
    return pl.DataFrame(schema={name: schema[name] for name in columns}).to_arrow()


def _has_content(path: str) -> bool:
    with open(path, "rb") as file:
        return any(line.strip() for line in file)
