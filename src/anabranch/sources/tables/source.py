"""A table as a stream: the rows it has, then those of every version that adds some.

The offset is the version and how many of its files are read, so a large version is taken in several epochs.
The files of a version are always taken in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from anabranch.errors import SourceError, StateError
from anabranch.sources.base import Bad, EpochLimits, Offer, ReadContext, Reading, StreamSample
from anabranch.sources.formats import read_file
from anabranch.sources.salvage import FAULTS
from anabranch.sources.tables.log import DataFile, TableChange, TableLog

CHOICES = ("stop", "skip")


@dataclass(frozen=True)
class TablePiece:
    """A file of a table."""

    stream: str
    file: DataFile
    schema: pl.Schema
    ordinal: int
    lane: str | None = None

    @property
    def weight(self) -> int:
        return self.file.size

    @property
    def label(self) -> str:
        return self.file.path

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        path, values = self.file.path, self.file.values
        try:
            footer = pq.read_metadata(path)
            there = set(footer.schema.to_arrow_schema().names)
        except FAULTS as error:
            reason = (
                f"Stream '{self.stream}', file '{path}': cannot be read: {error}. Was it deleted by a "
                "vacuum before the stream came to it? Let the table keep files longer"
            )
            return Reading(None, [Bad(self.stream, path, reason)])
        given = frozenset() if self.file.own_first else values.keys()
        stored = [name for name in columns if name in there and name not in given]
        for name in columns:
            if name in self.file.untold and name not in there:
                reason = (
                    f"Stream '{self.stream}', file '{path}': lacks column '{name}', by which the table is "
                    "partitioned, and its value cannot be told exactly here. Leave such a table to Spark"
                )
                return Reading(None, [Bad(self.stream, path, reason)])
        if stored:
            types = pl.Schema({name: self.schema[name] for name in stored})
            reading = read_file(self.stream, path, "parquet", types, stored, None, salvage)
        else:
            reading = Reading(pl.DataFrame(height=footer.num_rows))
        if reading.rows is not None:
            # What the table has got since is NULL in older files
            added = [_constant(values.get(name), name, self.schema[name])
                     for name in columns if name not in stored]  # fmt: skip
            reading.rows = reading.rows.with_columns(added).select(columns)
        return reading


def _constant(value: str | None, name: str, kind: pl.DataType) -> pl.Expr:
    """A value that all rows of a file have, written as text."""
    if kind == pl.Boolean:
        return pl.lit(None if value is None else value == "true", pl.Boolean).alias(name)
    text = pl.lit(value, pl.String)
    if kind == pl.Date:
        return text.str.to_date().alias(name)
    if isinstance(kind, pl.Datetime):
        return text.str.to_datetime(time_unit="us", time_zone=kind.time_zone).alias(name)
    return text.cast(kind).alias(name)


@dataclass(frozen=True)
class TableSource:
    """The versions of a table, from the rows it has when the stream begins."""

    stream: str
    text: str
    """What it is, for people."""
    schema: pl.Schema
    connect: Callable[[], TableLog] = field(compare=False)
    on_change: str = "stop"
    """What to do at a version that does more than add rows: stop there, or pass over it."""

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        log = self.connect()
        version = log.latest()
        files = [] if version is None else log.whole(version)
        for file in files[:1]:
            read = TablePiece(self.stream, file, self.schema, 0).read(list(self.schema), False).rows
            if read is not None and read.height:
                share = min(1.0, limits.bytes / max(1, sum(one.size for one in files)))
                per_epoch = sum(one.rows for one in files[: limits.files]) * share
                return StreamSample(read.head(rows), min(per_epoch, limits.rows))
        return None

    def open(self, context: ReadContext) -> TableReader:
        return TableReader(self, self.connect(), context)

    def describe(self) -> str:
        return self.text


OFFSET = ("table", "version", "files", "of", "whole")
"""The parts of an offset. Who adds one adds a version of the manifests."""


class TableReader:
    """How far one run has come in a table."""

    def __init__(self, source: TableSource, log: TableLog, context: ReadContext) -> None:
        self._source, self._log = source, log
        self._offset: dict[str, Any] | None = context.known_offset(source.stream, OFFSET)
        self._last = log.latest() if context.available_now else None
        self._frozen = context.available_now
        self._begun: tuple[int, list[DataFile]] | None = None
        """The version that the stream begins with and its files, once they were asked for. A table without
        rows is no beginning yet: then it is the next one."""
        if self._offset is not None and self._offset["table"] != log.identity:
            raise StateError(
                f"Stream '{source.stream}' was read from another table than {source.text} is now: it was "
                "made anew, so rows that were read cannot be told from new ones. Give the table that it "
                "had, or use a new checkpoint folder."
            )

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        last = self._last if self._frozen else self._log.latest()
        if last is None:
            return None
        pieces: list[TablePiece] = []
        offset: dict[str, Any] = {}
        size = rows = 0
        for reached, file in self._following(self._offset or self._beginning(last), last):
            full = size + file.size > limits.bytes or rows + file.rows > limits.rows
            if pieces and (full or len(pieces) == limits.files):
                break
            number = ordinal + len(pieces)
            pieces.append(TablePiece(self._source.stream, file, self._source.schema, number))
            size, rows, offset = size + file.size, rows + file.rows, reached
        else:
            # Those without rows, which nobody has to keep for us then, are left behind
            passed = {"version": last, "files": 0, "of": 0, "whole": False}
            if pieces:
                offset = {**offset, **passed}
            elif self._offset is not None:
                self._offset = {**self._offset, **passed}
        return Offer(tuple(pieces), offset, ordinal + len(pieces)) if pieces else None

    def _beginning(self, version: int) -> dict[str, Any]:
        """The offset before all files of a version; `of` is how many it has, once that is known."""
        table = self._log.identity
        return {"table": table, "version": version, "files": 0, "of": None, "whole": True}

    def _following(
        self, at: dict[str, Any], last: int
    ) -> Iterator[tuple[dict[str, Any], DataFile]]:
        """The next files, each with the offset once it is read."""
        if at["whole"] and at["files"] != at["of"]:
            if self._begun is None or self._begun[0] != at["version"]:
                self._begun = at["version"], self._log.whole(at["version"])
            yield from _rest(self._begun[1], at["files"], at)
        partly = not at["whole"] and at["files"] != at["of"]
        for change in self._log.after(at["version"], last, inclusive=partly):
            if change.refused:
                self._refuse(change)
                continue
            begin = at["files"] if partly and change.version == at["version"] else 0
            yield from _rest(change.files, begin, {**at, "version": change.version, "whole": False})

    def _refuse(self, change: TableChange) -> None:
        if self._source.on_change == "stop":
            raise SourceError(
                f"Stream '{self._source.stream}': version {change.version} of {self._source.text} "
                f"{change.refused}. A stream can only take in rows that are added. To pass over such "
                "versions, what they add too, give on_change='skip'; to begin anew, use a new "
                "checkpoint folder."
            )

    def finished(self) -> bool:
        return self._frozen and self.poll(EpochLimits(1, 1, 1, 1), 0) is None

    def committed(self, offset: Any) -> None:
        self._offset = offset

    def stop(self) -> None:
        pass


def _rest(
    files: Sequence[DataFile], begin: int, at: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], DataFile]]:
    for number in range(begin, len(files)):
        yield {**at, "files": number + 1, "of": len(files)}, files[number]
