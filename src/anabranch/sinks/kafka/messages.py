"""Results as messages: what the value and the key of each row are."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import polars as pl

from anabranch.language.updates import GONE
from anabranch.sinks.text import as_text, json_lines

Message = dict[str, bytes | None]
"""A message as the client takes it: its value, and its key if it has one."""
NO_VALUE = b"\xff"
"""The key of NULL where a single column is the key: no text has these bytes, and no key at all could neither
be compacted nor be taken back."""
BATCH = 10_000
"""Rows of an Arrow message, at most."""
ARROW_BYTES = 500_000
"""Bytes of one that has several rows: clients and brokers take about a megabyte unless told otherwise."""


def to_messages(rows: pl.DataFrame, format: str, key: Sequence[str], marked: bool) -> list[Message]:
    """The messages of an epoch, in the order of its rows.

    Of update results a row replaces the one with its key; of a group that has left, only the key is sent:
    to those who keep the newest message of each key, that is the end of it.
    """
    if format == "arrow":
        cut = (rows[at : at + BATCH] for at in range(0, rows.height, BATCH))
        return [{"value": value} for some in cut for value in _streams(some)]
    values: list[bytes | None] = list(json_lines(rows.drop(GONE) if marked else rows))
    if marked:
        gone = rows[GONE].arg_true().to_list()
        for place in gone:
            values[place] = None
    if not key:
        return [{"value": value} for value in values]
    keys = _keys(rows.select(key))
    return [{"value": value, "key": name} for value, name in zip(values, keys, strict=True)]


def _keys(rows: pl.DataFrame) -> list[bytes | None]:
    """The text of a single column, or the key of NULL; of several, or of lists, a JSON object."""
    if rows.width > 1 or rows.dtypes[0].is_nested():
        return list(json_lines(rows))
    texts = as_text(rows).to_series()
    if texts.dtype == pl.Boolean:
        word = pl.when(texts).then(pl.lit("true")).when(~texts).then(pl.lit("false"))
        texts = pl.select(word).to_series()
    return texts.cast(pl.String).cast(pl.Binary).fill_null(NO_VALUE).to_list()


def _streams(rows: pl.DataFrame) -> Iterator[bytes]:
    """The rows as Arrow streams, halved until they are small enough."""
    target = io.BytesIO()
    rows.write_ipc_stream(target)
    if target.tell() <= ARROW_BYTES or rows.height == 1:
        yield target.getvalue()
        return
    middle = rows.height // 2
    yield from _streams(rows[:middle])
    yield from _streams(rows[middle:])
