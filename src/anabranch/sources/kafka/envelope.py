"""What a message has beside its value, as columns: key, headers, timestamp, partition, offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter, methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from anabranch.errors import SourceError, suggest

if TYPE_CHECKING:
    from confluent_kafka import Message

KINDS: dict[str, pl.DataType] = {
    "key": pl.String(), "key_bytes": pl.Binary(), "headers": pl.String(), "timestamp": pl.Datetime("us"),
    "partition": pl.Int32(), "offset": pl.Int64(),
}  # fmt: skip
"""What can be asked for. Headers are JSON, `[{"name":"trace","value":"7"}]`; times are UTC."""


def read_envelope(what: str, wanted: Mapping[str, str] | Sequence[str] | str) -> dict[str, str]:
    """The columns to add: their names with what they are."""
    if isinstance(wanted, str):
        wanted = [one.strip() for one in wanted.split(",") if one.strip()]
    pairs = wanted if isinstance(wanted, Mapping) else {kind: kind for kind in wanted}
    for kind in pairs:
        if kind not in KINDS:
            raise SourceError(f"{what}: a message has no '{kind}'.{suggest(str(kind), KINDS)}")
    named = {str(name): str(kind) for kind, name in pairs.items()}
    if len(named) < len(pairs):
        raise SourceError(f"{what}: message_columns gives two columns the same name.")
    return named


def envelope(messages: Sequence[Message], columns: Mapping[str, str]) -> pl.DataFrame:
    """These columns of messages, a row for each; raises for a key that is no text."""
    return pl.DataFrame({name: _COLUMNS[kind](messages) for name, kind in columns.items()})


def _called(method: str) -> Any:
    return methodcaller(method)


def _key_bytes(messages: Sequence[Message]) -> pl.Series:
    return pl.Series(list(map(_called("key"), messages)), dtype=pl.Binary)


def _timestamp(messages: Sequence[Message]) -> pl.Series:
    stamps = map(itemgetter(1), map(_called("timestamp"), messages))
    return pl.Series(list(stamps), dtype=pl.Int64).cast(pl.Datetime("ms")).cast(pl.Datetime("us"))


def _numbers(method: str, kind: pl.DataType) -> Any:
    return lambda messages: pl.Series(list(map(_called(method), messages)), dtype=kind)


def _headers(messages: Sequence[Message]) -> pl.Series:
    given = [some or [] for some in map(_called("headers"), messages)]
    pairs = list(chain.from_iterable(given))
    if not pairs:
        return pl.Series([None] * len(messages), dtype=pl.String)
    flat = pl.DataFrame(
        {
            "message": np.repeat(np.arange(len(messages)), list(map(len, given))),
            "name": list(map(itemgetter(0), pairs)),
            "value": pl.Series(list(map(itemgetter(1), pairs)), dtype=pl.Binary),
        }
    )
    objects = flat.select(
        "message", text=pl.struct("name", pl.col("value").cast(pl.String)).struct.json_encode()
    )
    listed = objects.group_by("message", maintain_order=True).agg(pl.col("text").str.join(","))
    every = pl.DataFrame({"message": np.arange(len(messages))}).join(
        listed, on="message", how="left", maintain_order="left"
    )
    return every.select(pl.concat_str(pl.lit("["), "text", pl.lit("]"))).to_series()


_COLUMNS: dict[str, Any] = {
    "key": lambda messages: _key_bytes(messages).cast(pl.String),
    "key_bytes": _key_bytes,
    "headers": _headers,
    "timestamp": _timestamp,
    "partition": _numbers("partition", pl.Int32()),
    "offset": _numbers("offset", pl.Int64()),
}
