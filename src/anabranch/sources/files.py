"""A folder of files as a stream: each new file is read once, in the order of its arrival.

Files must appear whole (write elsewhere, then rename), as for every file stream. Names that start with
`_` or `.` are ignored. Which files were taken is part of the checkpoint: the newest names stand in the
manifest, older ones in log files beside it, so that an epoch writes only what it added.
"""

from __future__ import annotations

import glob
import itertools
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.errors import SourceError, StateError
from anabranch.sources.base import Limits, Offer, Reading, Sample
from anabranch.sources.formats import EXTENSIONS, FORMATS, infer_schema, read_file
from anabranch.state.checksum import Damaged, check_file
from anabranch.state.place import Place
from anabranch.state.store import read_sealed, write_sealed

MIN_PIECE_ROWS = 65_536
"""Parquet files are cut at row groups, but not into smaller pieces than this."""
MAX_SAMPLED_BYTES = 64 << 20
"""Text files larger than this are not read for a sample: they are read whole or not at all."""
RECENT = 1000
"""Names kept in the manifest before they move to a log file."""


@dataclass(frozen=True)
class FilePiece:
    """A file, or some row groups of a Parquet file."""

    stream: str
    path: str
    format: str
    schema: pl.Schema
    ordinal: int
    size: int
    row_groups: tuple[int, ...] | None = None
    first_row: int = 0
    partial: bool = False
    """Whether there are other pieces of the same file."""
    lane: str | None = None
    checksum: int | None = None
    """Of the file, where it is one of the checkpoint."""

    @property
    def weight(self) -> int:
        return self.size

    @property
    def label(self) -> str:
        return self.path

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        if self.checksum is not None:
            self._check(self.checksum)
        reading = read_file(
            self.stream, self.path, self.format, self.schema, columns, self.row_groups, salvage
        )
        reading.first_row = self.first_row
        if self.partial and self.row_groups:
            part = f"row groups {self.row_groups[0]} to {self.row_groups[-1]}"
            reading.bad = [replace(bad, part=part) for bad in reading.bad]
        return reading

    def _check(self, checksum: int) -> None:
        try:
            check_file(Path(self.path), checksum)
        except (OSError, Damaged) as error:
            raise StateError(
                f"Rows of stream '{self.stream}' that have landed in '{self.path}' cannot be read: "
                f"{error}. Was the checkpoint folder changed by hand? Restore it or start with a new one."
            ) from error


@dataclass
class FileSource:
    """New files under a path (a folder, a file or a glob pattern)."""

    stream: str
    path: str
    format: str
    schema: pl.Schema
    place: Place | None = None
    lanes: bool = False
    """Whether the stream comes partitioned: each folder right under the path is a lane of its own."""
    _seen: set[str] = field(default_factory=set)
    _recent: list[str] = field(default_factory=list)
    _logs: list[str] = field(default_factory=list)
    _taking: list[str] = field(default_factory=list)
    _frozen: list[tuple[int, str, int]] | None = None

    def sample(self, rows: int, limits: Limits) -> Sample | None:
        """Rows of the oldest file; of the oldest of each lane, if the stream comes partitioned."""
        files = self._list()
        first: dict[str, tuple[str, int]] = {}
        for _, path, size in files:
            first.setdefault(self.lane_of(path) if self.lanes else "", (path, size))
        taken: list[pl.DataFrame] = []
        lanes: list[str] = []
        read = counted = 0
        for lane, (path, size) in first.items():
            if size > MAX_SAMPLED_BYTES and self.format != "parquet":
                return None
            groups = (0,) if self.format == "parquet" else None
            found = read_file(
                self.stream, path, self.format, self.schema, list(self.schema), groups, False
            ).rows
            if found is None or found.height == 0:
                continue  # what is wrong with it is said when it is read
            read += size if groups is None else min(size, self._size_of(path, found.height))
            taken.append(found.head(max(1, rows // len(first))))
            lanes += [lane] * taken[-1].height
            counted += found.height
        if not taken:
            return None
        waiting = sum(size for _, _, size in files[: limits.files])
        per_epoch = counted * min(waiting, limits.bytes) / max(1, read)
        named = pl.Series(lanes) if self.lanes else None
        return Sample(pl.concat(taken), min(per_epoch, limits.rows), named)

    def _size_of(self, path: str, rows: int) -> int:
        """About how many bytes of a Parquet file hold so many of its rows."""
        total = max(1, int(pq.read_metadata(path).num_rows))
        return max(1, os.path.getsize(path) * rows // total)

    def start(self, offset: Any, available_now: bool) -> None:
        # A session may be started again, also with another checkpoint: nothing is left of before
        self._logs, self._recent, self._seen, self._frozen = [], [], set(), None
        if offset:
            self._logs, self._recent = list(offset["logs"]), list(offset["recent"])
            self._seen = set(self._recent)
            for name in self._logs:
                self._seen |= set(self._read_log(name))
        if available_now:
            self._frozen = self._list()

    def _read_log(self, name: str) -> list[str]:
        assert self.place
        return list(read_sealed(self.place, name, "The list of files already read")["files"])

    def poll(self, limits: Limits, ordinal: int) -> Offer | None:
        waiting = self._frozen if self._frozen is not None else self._list()
        waiting = [entry for entry in waiting if entry[1] not in self._seen]
        pieces: list[FilePiece] = []
        names: list[str] = []
        size = rows = 0
        for _, name, length in waiting[: limits.files]:
            cut, count = self._cut(name, length, ordinal + len(names), limits.pieces)
            if names and (size + length > limits.bytes or rows + count > limits.rows):
                break
            pieces += cut
            names.append(name)
            size, rows = size + length, rows + count
        if not names:
            return None
        return Offer(
            tuple(pieces), self._advance(names, ordinal), ordinal + len(names),
            len(waiting) - len(names),
        )  # fmt: skip

    def finished(self) -> bool:
        return self._frozen is not None and all(entry[1] in self._seen for entry in self._frozen)

    def committed(self, offset: Any) -> None:
        self._logs, self._recent = offset["logs"], offset["recent"]
        self._seen.update(self._taking)

    def stop(self) -> None:
        pass

    def _advance(self, names: list[str], ordinal: int) -> dict[str, list[str]]:
        """The offset once these files are taken; a full list of names moves to a log file."""
        logs, recent = list(self._logs), [*self._recent, *names]
        if len(recent) > RECENT and self.place:
            # Another run that was taken for dead may write one with this ordinal, too
            log = f"sources/{self.stream}-{ordinal:012d}-{uuid.uuid4().hex[:8]}.json"
            write_sealed(self.place, log, {"files": recent}, fsync=True)
            logs.append(log)
            recent = []
        self._taking = names
        return {"logs": logs, "recent": recent}

    def _list(self) -> list[tuple[int, str, int]]:
        """All files, oldest first: (modification time, path, bytes)."""
        found = []
        for path in _expand(self.path):
            try:
                entry = os.stat(path)
            except FileNotFoundError:
                continue
            found.append((entry.st_mtime_ns, path, entry.st_size))
        return sorted(found)

    def lane_of(self, path: str) -> str:
        """The folder right under the stream's path that a file is in."""
        parts = Path(path).relative_to(self.path).parts
        if len(parts) < 2:
            raise SourceError(
                f"Stream '{self.stream}' is said to come partitioned: each part must be a folder of "
                f"its own under '{self.path}', but the file '{path}' is in none."
            )
        return parts[0]

    def _cut(self, path: str, size: int, ordinal: int, pieces: int) -> tuple[list[FilePiece], int]:
        """A file as pieces for several tasks, and its rows as far as they are known."""
        lane = self.lane_of(path) if self.lanes else None
        whole = FilePiece(
            self.stream, path, self.format, self.schema, ordinal, max(size, 1), lane=lane
        )
        if self.format != "parquet":
            return [whole], 0
        try:
            metadata = pq.read_metadata(path)
        except (pa.ArrowException, OSError):
            return [whole], 0  # the task that reads it will say what is wrong
        groups = metadata.num_row_groups
        rows = [metadata.row_group(number).num_rows for number in range(groups)]
        wanted = max(1, min(pieces, groups, sum(rows) // MIN_PIECE_ROWS))
        cuts = [groups * number // wanted for number in range(wanted + 1)]
        return [
            FilePiece(
                self.stream, path, self.format, self.schema, ordinal,
                max(1, size * sum(rows[start:end]) // max(1, sum(rows))),
                tuple(range(start, end)), sum(rows[:start]), wanted > 1, lane,
            )
            for start, end in itertools.pairwise(cuts)
        ], sum(rows)  # fmt: skip


def file_source(stream: str, path: str, format: str | None, schema: pl.Schema | None) -> FileSource:
    """A file stream; format and schema are taken from the first file where not given."""
    if format is not None and format not in FORMATS:
        raise SourceError(
            f"Stream '{stream}': there is no file format '{format}'. Existing: {', '.join(FORMATS)}."
        )
    # The names of files are part of the checkpoint: they must not depend on how the path is written
    path = os.path.abspath(path)
    files = _expand(path)
    if not files and schema is None and not glob.has_magic(path) and not os.path.exists(path):
        raise SourceError(
            f"Stream '{stream}': there is no file or folder '{path}'. Mend the path, or give format= and "
            "schema= to wait for its first file."
        )
    if format is None:
        suffix = Path(files[0] if files else path).suffix
        if suffix not in EXTENSIONS:
            raise SourceError(
                f"Stream '{stream}': the format of '{path}' cannot be told from its name. "
                f"Give format= one of {', '.join(FORMATS)}."
            )
        format = EXTENSIONS[suffix]
    if schema is None:
        if not files:
            raise SourceError(
                f"Stream '{stream}': there is no file under '{path}' to take the schema from. "
                "Give schema=, or put a file there first."
            )
        schema = _schema_of(files, format)
    return FileSource(stream, path, format, schema)


def _schema_of(files: list[str], format: str) -> pl.Schema:
    """The schema of the first file that can be read; what is wrong with others is said when they are."""
    first: SourceError | None = None
    for path in files:
        try:
            return infer_schema(path, format)
        except SourceError as error:
            first = first or error
        except (pl.exceptions.PanicException, ValueError, TypeError, OverflowError) as error:
            # What the readers trust to be whole, such as the names of columns in a footer
            first = first or SourceError(f"'{path}' is not a whole {format} file: {error}.")
    assert first is not None
    raise first


def _expand(path: str) -> list[str]:
    if os.path.isdir(path):
        found = [
            os.path.join(folder, name)
            for folder, folders, names in os.walk(path)
            for name in names
            if not name.startswith(("_", "."))
            and not any(
                part.startswith(("_", ".")) for part in Path(folder).relative_to(path).parts
            )
        ]
        return sorted(found)
    return sorted(glob.glob(path)) if glob.has_magic(path) else [path] * os.path.exists(path)
