"""Any streaming DataFrame as a stream: Spark reads it, its batches land as Arrow files.

A Structured Streaming query of its own writes each batch into the checkpoint (`landing/<stream>/`), and
the epochs take the landed batches like files. Landing a batch is idempotent by its number, and the
number of the last one consumed is the offset in the manifest; so a batch that Spark replays after a
crash is landed at most once more and consumed exactly once. The numbers are those of one query of Spark,
so its id is part of the offset: a query that begins anew would bring other rows under old numbers.
Landing goes on while an epoch runs, a few batches ahead, with all columns of the DataFrame.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from anabranch.errors import SettingsError, SourceError, StateError
from anabranch.settings import Settings
from anabranch.sources.base import EpochLimits, Offer, ReadContext, StreamSample
from anabranch.sources.pieces import FilePiece
from anabranch.state.checksum import Summing
from anabranch.state.folders import make_file, make_folder, sync
from anabranch.state.place import Place
from anabranch.state.store import read_sealed, write_sealed

INDEX = "index.json"

OFFSET = ("batch", "query")
"""The parts of an offset. Who adds one adds a version of the manifests."""


class DataFrameSource:
    """A streaming DataFrame, to be read by a query of its own in every run."""

    once = True
    """Its rows come to one reader only: there are no replays of it."""

    def __init__(
        self, stream: str, frame: DataFrame, ahead: int, fsync: bool, private: bool = True
    ) -> None:
        if not frame.isStreaming:
            raise SourceError(
                f"Stream '{stream}': the DataFrame is not a streaming one. "
                "Read it with spark.readStream instead of spark.read."
            )
        self.stream = stream
        self.frame = frame
        self.ahead = ahead
        self.fsync = fsync
        zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
        empty = pl.from_arrow(to_arrow_schema(frame.schema, timezone=zone).empty_table())
        assert isinstance(empty, pl.DataFrame)
        self.schema = empty.schema
        self.private = private

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        return None  # a streaming DataFrame gives its rows only to the query that consumes them

    def open(self, context: ReadContext) -> DataFrameReader:
        if context.place.far:
            raise SettingsError(
                f"Stream '{self.stream}' is a streaming DataFrame: its batches land beside the "
                f"checkpoint, which must be a folder then, not {context.place}."
            )
        return DataFrameReader(self, context)

    def describe(self) -> str:
        return "streaming DataFrame"


class DataFrameReader:
    """The Structured Streaming query of one run, and the batches it has landed."""

    def __init__(self, source: DataFrameSource, context: ReadContext) -> None:
        self.stream = source.stream
        self._ahead = source.ahead
        self._fsync = source.fsync
        self._private = source.private
        self._folder = context.place.scratch / "landing" / source.stream
        self._schema = pl.Schema({name: source.schema[name] for name in context.columns})
        self._columns = list(source.schema)
        """All of the frame: a query that is added later may want others than those of now."""
        offset = context.known_offset(source.stream, OFFSET)
        self._consumed = -1 if offset is None else int(offset["batch"])
        self._available_now = context.available_now
        self._room = threading.Condition()
        self._stopped = False
        # Spark makes its files as it likes, so the folder around them is what nobody else can enter
        make_folder(self._folder / "_spark", self._private, self._fsync)
        if context.offset is not None:
            self._require(context.offset["query"])
        self._clear()
        for leftover in self._folder.glob("_landing-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        writer = (
            source.frame.select(*(f"`{name.replace('`', '``')}`" for name in self._columns))
            .writeStream.foreachBatch(self._land)
            .option("checkpointLocation", str(self._folder / "_spark"))
            .queryName(f"anabranch-{self.stream}-{uuid.uuid4().hex[:6]}")
        )
        if context.available_now:
            writer = writer.trigger(availableNow=True)
        self._query = writer.start()

    def _require(self, query: str) -> None:
        """Refuses another query of Spark than the one whose batches were consumed."""
        try:
            known = json.loads((self._folder / "_spark" / "metadata").read_text())["id"]
        except (OSError, ValueError, KeyError):
            known = "gone"
        if known != query:
            raise SourceError(
                f"Stream '{self.stream}': the checkpoint has consumed batches up to {self._consumed} of "
                f"Spark's query {query}, but the one in '{self._folder / '_spark'}' is {known}. It would "
                "bring its rows anew under numbers that were consumed, and they would be lost. Restore that "
                "folder together with the checkpoint, or start with a new checkpoint."
            )

    def _land(self, batch: DataFrame, number: int) -> None:
        """Writes one batch as Arrow files; does nothing if it has already landed."""
        place = self._batch(number)
        if number <= self._consumed or place.exists():
            return
        with self._room:
            self._room.wait_for(lambda: self._stopped or len(self._landed()) < self._ahead)
        if self._stopped:
            raise SourceError(f"Stream '{self.stream}' is stopping.")
        waiting = self._folder / f"_landing-{number:012d}-{uuid.uuid4().hex[:8]}"
        make_folder(waiting, self._private)
        write = _writer(str(waiting), self._fsync, self._private)
        written = batch.mapInArrow(write, "file string, rows long, checksum long").collect()
        files = sorted((row["file"], row["rows"], row["checksum"]) for row in written)
        index = {"batch": number, "columns": self._columns, "files": files}
        write_sealed(Place(waiting, self._private), INDEX, index, self._fsync)
        os.replace(waiting, place)
        if self._fsync:
            # Spark takes the batch for done once this returns, and will not bring it again
            sync(self._folder)

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        self._raise_failure()
        pieces: list[FilePiece] = []
        rows = 0
        last = None
        landed = self._landed()
        if landed and landed[0] != self._consumed + 1:
            raise SourceError(
                f"Stream '{self.stream}': batch {self._consumed + 1} should come next, but batch {landed[0]} "
                f"is the first in '{self._folder}'. Was the folder changed by hand? Restore it together with "
                "the checkpoint, or start with a new checkpoint."
            )
        for number in landed:
            place = self._batch(number)
            index = read_sealed(Place(place), INDEX, "The list of what has landed")
            if index["batch"] != number:
                raise StateError(
                    f"Stream '{self.stream}': '{place}' holds batch {index['batch']}. Was it renamed or "
                    "copied? Restore the folder together with the checkpoint, or start with a new one."
                )
            missing = [name for name in self._schema if name not in index["columns"]]
            if missing:
                raise SourceError(
                    f"Stream '{self.stream}': batch {number} landed when the DataFrame had no column "
                    f"'{missing[0]}', and Spark brings it only once. Start once with the DataFrame and the "
                    "queries that there were then, and trigger='available-now', so that all that has landed "
                    "is taken; then go on with the new ones."
                )
            files = index["files"]
            count = sum(length for _, length, _ in files)
            if last is not None and rows + count > limits.rows:
                break
            pieces += [
                FilePiece(self.stream, str(place / name), "arrow", self._schema,
                          ordinal + len(pieces) + at, max(1, length), checksum=checksum)
                for at, (name, length, checksum) in enumerate(files)
            ]  # fmt: skip
            rows, last = rows + count, number
        if last is None:
            return None
        backlog = sum(number > last for number in landed)
        offset = {"batch": last, "query": str(self._query.id)}
        return Offer(tuple(pieces), offset, ordinal + len(pieces), backlog)

    def finished(self) -> bool:
        over = self._available_now and not self._query.isActive
        if over:
            self._raise_failure()
        return over and not self._landed()

    def committed(self, offset: Any) -> None:
        with self._room:
            self._consumed = int(offset["batch"])
            self._clear()
            self._room.notify_all()

    def stop(self) -> None:
        with self._room:
            self._stopped = True
            self._room.notify_all()
        self._query.stop()

    def _batch(self, number: int) -> Path:
        return self._folder / f"batch-{number:012d}"

    def _landed(self) -> list[int]:
        """The batches that have landed and are not consumed, in order."""
        found = (int(path.name.removeprefix("batch-")) for path in self._folder.glob("batch-*"))
        return sorted(number for number in found if number > self._consumed)

    def _clear(self) -> None:
        """Removes consumed batches."""
        for path in self._folder.glob("batch-*"):
            if int(path.name.removeprefix("batch-")) <= self._consumed:
                shutil.rmtree(path, ignore_errors=True)

    def _raise_failure(self) -> None:
        failure = self._query.exception()
        if failure is not None and not self._stopped:
            first = next((line for line in str(failure).splitlines() if line.strip()), "unknown")
            raise SourceError(f"Stream '{self.stream}': Spark could not read it: {first:.500}")


def _writer(
    folder: str, fsync: bool, private: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for mapInArrow that writes a task's rows to one file and returns its name."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Files are read in the order of their names: rows arrive in the order of Spark's partitions
        task = TaskContext.get()
        name = f"{task.partitionId() if task else 0:06d}-{uuid.uuid4().hex[:12]}.arrow"
        path = Path(folder, name)
        writer = None
        rows = 0
        make_file(path, private)
        with open(path, "wb", buffering=0) as raw:
            sink = Summing(raw)
            for batch in batches:
                if writer is None:
                    writer = pa.ipc.new_file(pa.PythonFile(sink, mode="w"), batch.schema)
                writer.write_batch(batch)
                rows += batch.num_rows
            if writer is not None:
                writer.close()
        if fsync:
            sync(path)
        if rows:
            told = {"file": [name], "rows": [rows], "checksum": [sink.checksum]}
            yield pa.RecordBatch.from_pydict(told)

    return write


def dataframe_source(name: str, frame: Any, spark: bool, settings: Settings) -> DataFrameSource:
    """A streaming DataFrame as the input of a stream, if the session has Spark."""
    if not spark:
        raise SourceError(
            f"Stream '{name}' is a Spark DataFrame, but this session has no Spark: "
            "make it with Session(spark)."
        )
    return DataFrameSource(
        name, frame, settings.landing_ahead, settings.fsync, settings.private_files
    )
