"""Avro messages as columns: those of a chunk become one block of an Avro file, which Polars reads.

Messages have no marks between them in such a block: one that is cut short would be completed with the
beginning of the next. So a number drawn for each chunk stands behind every message, as a further column:
where it is not found again, the chunk is read message by message.
"""

from __future__ import annotations

import functools
import io
import json
import secrets
from typing import Any

import polars as pl

from anabranch.errors import SourceError

GUARD = "__guard"
_SYNC = b"anabranch-of-one"


def read_avro(values: list[bytes], schema: str) -> pl.DataFrame:
    """One row for each message, written with this schema; raises if one of them was not."""
    guard = secrets.randbits(60)
    mark = _long(guard)
    body = mark.join(values) + mark
    block = b"".join((_header(schema), _long(len(values)), _long(len(body)), body, _SYNC))
    rows = pl.read_avro(io.BytesIO(block))
    if rows.height != len(values) or not (rows[GUARD] == guard).all():
        raise ValueError("it does not end where its Avro schema says that it should")
    return rows.drop(GUARD)


def avro_schema(what: str, text: str) -> pl.Schema:
    """The columns of messages of this schema; raises SourceError for what is none."""
    try:
        rows = pl.read_avro(io.BytesIO(_header(text)))
    except (ValueError, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise SourceError(
            f"{what}: this is not an Avro schema that can be read: {error}."
        ) from error
    return pl.Schema({name: _kept_as(kind) for name, kind in rows.schema.items() if name != GUARD})


def _kept_as(kind: pl.DataType) -> pl.DataType:
    if isinstance(kind, (pl.Categorical, pl.Enum)):
        return pl.String()
    if isinstance(kind, pl.Datetime):
        return pl.Datetime("us", kind.time_zone)
    return kind


@functools.lru_cache(maxsize=64)
def _header(schema: str) -> bytes:
    """The beginning of an Avro file whose records have the guard as their last column."""
    told: Any = json.loads(schema)
    if not isinstance(told, dict) or told.get("type") != "record":
        raise ValueError("expected a record")
    told = {**told, "fields": [*told["fields"], {"name": GUARD, "type": "long"}]}
    entries = {"avro.schema": json.dumps(told), "avro.codec": "null"}
    packed = b"".join(_bytes(key.encode()) + _bytes(text.encode()) for key, text in entries.items())
    return b"Obj\x01" + _long(len(entries)) + packed + _long(0) + _SYNC


def _bytes(value: bytes) -> bytes:
    return _long(len(value)) + value


def _long(number: int) -> bytes:
    """A number of Avro: seven bits a byte, the lowest first, zigzag."""
    rest, packed = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        packed.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*packed, rest])
