"""Messages into rows of a stream's schema, a chunk at a time: the values are joined and parsed as one text.

A chunk is read whole; only if that fails, ever smaller parts of it, until the bad messages are alone.
Joined texts are trusted only where every message is sure to give one row of its own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.errors import SourceError
from anabranch.sources.form import USUAL
from anabranch.sources.formats import conform, polars_schema, present_columns
from anabranch.sources.kafka.avro import read_avro
from anabranch.sources.kafka.protobuf import of_types, read_protobuf
from anabranch.sources.kafka.registry import SchemaRegistry, ask_ahead, framed
from anabranch.sources.salvage import FAULTS, sift
from anabranch.sources.text_files import parse_csv, parse_json

FORMATS = ("json", "csv", "avro", "protobuf", "arrow", "raw")
VALUE = "value"
"""The column that a raw message is."""


@dataclass(frozen=True)
class Form:
    """What the values of a topic are."""

    format: str
    schema: pl.Schema
    """The columns that they give."""
    written: str = ""
    """The schema they were written with, where the format does not say it: that of Avro, or the
    description of Protobuf types."""
    message: str = ""
    """The type of Protobuf messages."""
    registry: SchemaRegistry | None = None
    """Who knows the schema of each message instead."""


@dataclass
class Decoded:
    """The rows of a chunk, of which message each is, and the messages that are none."""

    rows: pl.DataFrame
    origins: np.ndarray
    bad: list[tuple[int, str]]


def decode(form: Form, values: Sequence[bytes], columns: Sequence[str]) -> Decoded:
    """The rows of these messages in these columns."""
    parse = _PARSERS[form.format]
    if form.registry is not None:
        # Before anything is taken for a bad message: a registry that is away is another matter
        ask_ahead(form.registry, values)

    def part(start: int, end: int) -> tuple[pl.DataFrame, np.ndarray]:
        rows, counts = parse(form, values[start:end], columns)
        return rows, np.repeat(np.arange(start, end), counts)

    try:
        rows, origins = part(0, len(values))
        return Decoded(rows, origins, [])
    except FAULTS:
        good, bad = sift(part, len(values))
    empty = pl.DataFrame(schema={name: form.schema[name] for name in columns})
    rows = pl.concat([empty, *(rows for rows, _ in good)])
    return Decoded(rows, np.concatenate([np.arange(0), *(some for _, some in good)]), sorted(bad))


Parser = Callable[[Form, Sequence[bytes], Sequence[str]], tuple[pl.DataFrame, "np.ndarray | int"]]


def _json(form: Form, values: Sequence[bytes], columns: Sequence[str]) -> tuple[pl.DataFrame, int]:
    if form.registry is not None:
        # What the schema allows is the matter of who writes; the columns are the stream's
        parts = framed(form.registry, values, "JSON")
        values = _in_order([(places, bodies) for _, places, bodies in parts])
    texts = pl.Series(values, dtype=pl.Binary)
    # Objects from end to end: none can be completed by the next, and none is nothing
    whole = texts.bin.starts_with(b"{") & texts.bin.ends_with(b"}")
    if not whole.all():
        values = [value.strip() for value in values]
        if not all(value[:1] == b"{" and value[-1:] == b"}" for value in values):
            raise ValueError("expected a JSON object")
    table = parse_json(pa.py_buffer(b"\n".join(values)), form.schema, columns)
    return _one_each(table, form, values, columns, "JSON object"), 1


def _csv(form: Form, values: Sequence[bytes], columns: Sequence[str]) -> tuple[pl.DataFrame, int]:
    texts = pl.Series(values, dtype=pl.Binary).cast(pl.String)
    if (texts.str.count_matches('"', literal=True) % 2 != 0).any():
        raise ValueError("a quote is open where the message ends")
    if len(values) > 1 and texts.str.contains_any(["\n", "\r"]).any():
        raise ValueError("lines within messages: they are read one by one")
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(form.schema)
    joined = b"\n".join((header.getvalue().rstrip("\n").encode(), *values, b""))
    table = parse_csv(pa.py_buffer(joined), form.schema, columns, list(form.schema))
    return _one_each(table, form, values, columns, "CSV line"), 1


def _avro(form: Form, values: Sequence[bytes], columns: Sequence[str]) -> tuple[pl.DataFrame, int]:
    if form.registry is None:
        return _fitted(read_avro(list(values), form.written).to_arrow(), form, columns), 1
    parts = [
        (places, _fitted(read_avro(bodies, written).to_arrow(), form, columns))
        for written, places, bodies in framed(form.registry, values, "AVRO")
    ]
    return _together(parts), 1


def _protobuf(
    form: Form, values: Sequence[bytes], columns: Sequence[str]
) -> tuple[pl.DataFrame, int]:
    if form.registry is None:
        table = read_protobuf(list(values), form.written, form.message)
        return _fitted(table, form, columns), 1
    parts = []
    for written, places, bodies in framed(form.registry, values, "PROTOBUF"):
        for message, within, own in of_types(bodies, written):
            if message != form.message:
                raise ValueError(f"it is of type {message}, not {form.message}")
            table = read_protobuf(own, written, message)
            parts.append((places[within], _fitted(table, form, columns)))
    return _together(parts), 1


def _arrow(
    form: Form, values: Sequence[bytes], columns: Sequence[str]
) -> tuple[pl.DataFrame, np.ndarray]:
    """A message is an Arrow stream with any number of rows."""
    tables = [pa.ipc.open_stream(value).read_all() for value in values]
    rows = [_fitted(table, form, columns) for table in tables]
    return pl.concat(rows), np.array([table.num_rows for table in tables])


def _raw(form: Form, values: Sequence[bytes], columns: Sequence[str]) -> tuple[pl.DataFrame, int]:
    whole = pl.Series(VALUE, values, dtype=pl.Binary).cast(form.schema[VALUE])
    return pl.DataFrame([whole]).select(columns), 1


def _one_each(
    table: pa.Table, form: Form, values: Sequence[bytes], columns: Sequence[str], what: str
) -> pl.DataFrame:
    if table.num_rows != len(values):
        raise ValueError(
            f"expected one {what}, got {table.num_rows if len(values) == 1 else 'others'}"
        )
    return conform(table, form.schema, columns)


def _fitted(table: pa.Table, form: Form, columns: Sequence[str]) -> pl.DataFrame:
    """The columns of a table; what it does not have, as one written with an older schema, is NULL."""
    wanted = [name for name in columns if name in table.column_names]
    present = present_columns(table.schema, "the message", form.schema, wanted, USUAL)
    rows = conform(table.select(wanted), form.schema, wanted)
    missing = [
        pl.lit(None, form.schema[name]).alias(name) for name in columns if name not in present
    ]
    height = pl.Series("__height", np.zeros(table.num_rows, bool))
    return rows.with_columns(height).with_columns(missing).select(columns)


def _together(parts: list[tuple[np.ndarray, pl.DataFrame]]) -> pl.DataFrame:
    """The rows of several schemas, each in its place again; schemas change rarely, so mostly it is one."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    return pl.concat([rows for _, rows in parts])[order]


def _in_order(parts: list[tuple[np.ndarray, list[bytes]]]) -> list[bytes]:
    """The values of several schemas, each in its place again."""
    if len(parts) == 1:
        return parts[0][1]
    order = np.argsort(np.concatenate([places for places, _ in parts]))
    bodies = [body for _, some in parts for body in some]
    return [bodies[place] for place in order.tolist()]


_PARSERS: dict[str, Parser] = {
    "json": _json, "csv": _csv, "avro": _avro, "protobuf": _protobuf, "arrow": _arrow, "raw": _raw,
}  # fmt: skip


def schema_of(what: str, format: str, values: Sequence[bytes]) -> pl.Schema:
    """The columns of messages, told from some of them."""
    try:
        if format == "json":
            found = pa.json.read_json(pa.py_buffer(b"\n".join(values))).schema
        else:
            found = pa.ipc.open_stream(values[0]).schema
        return pl.Schema(
            {
                name: pl.Datetime("us", kind.time_zone) if isinstance(kind, pl.Datetime) else kind
                for name, kind in polars_schema(found).items()
            }
        )
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{what}: the columns cannot be told from the first messages: {' '.join(str(error).split())}. "
            "Give schema= with the types of the columns."
        ) from error
