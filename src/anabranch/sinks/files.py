"""Result folders: Parquet, Arrow, CSV or JSON lines, one sub-folder per epoch, whole or not at all.

    out/flows/_run=…
    out/flows/epoch=000000000012/part-site-0001-flows@1-0.parquet

The sub-folder is renamed into place at once, so a reader sees whole epochs only; tools that know
Hive-style partitions show the epoch as a column. Epochs without results leave no folder. A folder belongs
to one run (`claim.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl

from anabranch.errors import SettingsError, shorten
from anabranch.language.window import duration
from anabranch.sinks.base import WriteContext, Writer
from anabranch.sinks.claim import claim
from anabranch.sinks.file_writer import FileWriter
from anabranch.sinks.gathering import OF_A_SPAN, GatheringWriter
from anabranch.sinks.spans import WAITING, Spans, require_exchange
from anabranch.sinks.staging import SUFFIX
from anabranch.sources.text_values import inner_kind

TARGET_BYTES = 64 << 20
FOLDER_OPTIONS = ("format", "retain", "gather", "target_bytes")
GATHERED = ("parquet", "arrow")
"""Formats whose files can be merged."""


@dataclass(frozen=True)
class FileSink:
    """A folder of result files."""

    folder: Path
    format: str = "parquet"
    retain: str | None = None
    """A length of time: epochs that have been visible for longer are taken away, but for the newest."""
    gather: str | None = None
    """A length of time for which results wait at most, so that small epochs become one file (`spans.py`)."""
    target_bytes: int = TARGET_BYTES
    """With `gather`: as much of results waits at most, and makes one span."""

    def __post_init__(self) -> None:
        # Whatever a user may give
        folder, format = cast(Any, self.folder), cast(Any, self.format)
        require_folder("The folder of a sink", folder)
        object.__setattr__(self, "folder", Path(folder))
        refuse_format(format)
        if self.retain is not None:
            duration(self.retain, True, "retain")
        if self.gather is not None:
            duration(self.gather, True, "gather")
            if format not in GATHERED:
                raise SettingsError(
                    f"Results as {format} cannot be gathered: use {' or '.join(GATHERED)}, or do without."
                )
        size = cast(Any, self.target_bytes)
        if type(size) is not int or size < 1:
            raise SettingsError(
                f"target_bytes is {size!r:.100}; expected a number of bytes, at least 1."
            )

    def open(self, context: WriteContext) -> Writer:
        what = f"The sink of '{context.query}'"
        refuse_types(what, self.format, context.schema)
        # The real folder, so that what waits in it is found again however the folder is spelt
        real = Path(os.path.realpath(self.folder))
        held = claim(
            real,
            what,
            context.run,
            context.checkpoint,
            ("epoch=*", f"{WAITING}*"),
            context.private,
            context.temporary,
        )
        kept = None if self.retain is None else duration(self.retain, True, "retain") / 1e6
        writer = FileWriter(held, context.query, self.format, context.fsync, context.private, kept)
        limit = None if kept is None else kept * OF_A_SPAN
        spans = Spans(real, self.format, context.fsync, context.private, self.target_bytes, limit)
        try:
            if self.gather is None:
                spans.reveal()
                return writer
            require_exchange(real)
        except BaseException:
            held.close()
            raise
        return GatheringWriter(writer, duration(self.gather, True, "gather") / 1e6, spans)

    def describe(self) -> str:
        return f"{self.folder} ({self.format})"


def refuse_format(format: Any) -> None:
    """Refuses what is no format of results."""
    if not isinstance(format, str) or format not in SUFFIX:
        raise SettingsError(
            f"There is no result format {format!r:.100}. Existing: {', '.join(SUFFIX)}."
        )


def refuse_types(
    what: str, format: str, schema: pl.Schema, instead: str = "parquet or arrow"
) -> None:
    """Refuses columns that a format has no values for."""
    if format not in ("csv", "json"):
        return
    for name, kind in schema.items():
        told = f"{what} cannot be written as {format}: column '{name}' is {kind}"
        if format == "csv" and kind.is_nested():
            raise SettingsError(
                f"{told}, and CSV has no lists and structs. Use {instead} or json, or give each part a "
                "column."
            )
        if any(isinstance(part, pl.Duration) for part in parts_of(kind)):
            raise SettingsError(
                f"{told}, which has no text of its own. Use {instead}, or take its EPOCH."
            )


def parts_of(kind: pl.DataType) -> Iterator[pl.DataType]:
    """A type; of lists and structs, the types within."""
    if isinstance(kind, pl.List):
        yield from parts_of(inner_kind(kind.inner))
    elif isinstance(kind, pl.Struct):
        for field in kind.fields:
            yield from parts_of(inner_kind(field.dtype))
    else:
        yield kind


def require_folder(what: str, path: Any) -> None:
    """Refuses anything where a folder of this machine is wanted that is the name of none."""
    if not isinstance(path, (str, Path)):
        raise SettingsError(f"{what} is {shorten(repr(path), 100)}; expected a folder.")
    if "://" in str(path):
        raise SettingsError(
            f"{what} is '{path}'; expected a local folder, or for results one of s3://, gs:// "
            "or abfs://. For other places write with Spark: anabranch.sinks.spark.SparkSink."
        )
    try:
        possible = str(path) != "" and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise SettingsError(
            f"{what} is {str(path)!r}; expected the name of a folder. Was a variable not set?"
        )
