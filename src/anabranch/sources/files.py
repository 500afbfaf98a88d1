"""A folder of files as a stream: each new file is read once, in the order of time or of names.

Files must appear whole (write elsewhere, then rename), as for every file stream. Which files there are is
in `tree.py` and `listing.py`, which of them were taken in `file_reader.py`.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from anabranch.errors import SourceError, suggest
from anabranch.sources.base import EpochLimits, ReadContext, StreamSample
from anabranch.sources.cleaning import Cleaning
from anabranch.sources.cutting import cut_text
from anabranch.sources.file_reader import FileReader
from anabranch.sources.form import USUAL, FileForm, check_form
from anabranch.sources.formats import EXTENSIONS, FORMATS, infer_schema
from anabranch.sources.growing import FOLLOW, STOP
from anabranch.sources.listing import ListedFile
from anabranch.sources.near import as_file, footer_of
from anabranch.sources.opening import PACKED_ENDINGS
from anabranch.sources.paths import hidden_part, is_pattern, shown
from anabranch.sources.pieces import FilePiece
from anabranch.sources.salvage import FAULTS
from anabranch.sources.watching import list_files
from anabranch.state.uris import is_object, local_path, split_uri

MIN_PIECE_ROWS = 65_536
"""Parquet files are cut at row groups, but not into smaller pieces than this."""
MAX_SAMPLED_BYTES = 64 << 20
"""Text files larger than this are not read for a sample: they are read whole or not at all."""
MAX_LOOKED_AT = 100
"""Files that are looked at for the types of columns without a value in the first ones."""
ORDERS = ("time", "name")


@dataclass(frozen=True)
class FileSource:
    """The files under a path: a folder, a file or a glob pattern."""

    stream: str
    path: str
    format: str
    schema: pl.Schema
    lanes: bool = False
    """Whether each folder right under the path is a lane of its own."""
    order: str = "time"
    """By what files that wait are taken: the time of their last change, or their name."""
    form: FileForm = USUAL
    cleaning: Cleaning | None = None
    """What becomes of files that were read; None: they stay."""
    growing: str = STOP
    """What becomes of files that have changed since they were read."""

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        """Rows of the oldest file; of the oldest of each lane, if the stream comes partitioned."""
        files = sorted(list_files(self.path), key=self.place)
        first: dict[str, ListedFile] = {}
        for file in files:
            if file.regular:
                first.setdefault(self.lane_of(file) if self.lanes else "", file)
        taken: list[pl.DataFrame] = []
        lanes: list[str] = []
        read = counted = 0
        for lane, file in first.items():
            if file.size > MAX_SAMPLED_BYTES and self.format != "parquet":
                return None
            groups = (0,) if self.format == "parquet" else None
            first_rows = replace(self._whole(file, 0), row_groups=groups, version=None, etag=None)
            sampled = first_rows.read(list(self.schema), False).rows
            if sampled is None or sampled.height == 0:
                continue  # what is wrong with it is said when it is read
            read += file.size if groups is None else min(file.size, _size_of(file, sampled.height))
            taken.append(sampled.head(max(1, rows // len(first))))
            lanes += [lane] * taken[-1].height
            counted += sampled.height
        if not taken:
            return None
        waiting = sum(file.size for file in files[: limits.files])
        per_epoch = counted * min(waiting, limits.bytes) / max(1, read)
        named = pl.Series(lanes) if self.lanes else None
        return StreamSample(pl.concat(taken), min(per_epoch, limits.rows), named)

    def open(self, context: ReadContext) -> FileReader:
        return FileReader(self, context)

    def describe(self) -> str:
        return f"{self.format} files of {self.path}{', in lanes' if self.lanes else ''}"

    @property
    def has_folders(self) -> bool:
        """Whether its path can have a folder for each part of the stream."""
        return not is_pattern(self.path) if is_object(self.path) else os.path.isdir(self.path)

    def place(self, file: ListedFile) -> tuple[int, str]:
        """What files that wait are taken by, the least first."""
        return (0 if self.order == "name" else file.modified), file.name

    def lane_of(self, file: ListedFile) -> str:
        """The folder right under the stream's path that a file is in."""
        lane, separator, _ = file.name.partition(os.sep)
        if not separator:
            raise SourceError(
                f"Stream '{self.stream}' is said to come in parts (partitioned_by, lanes): each must be a "
                f"folder of its own under '{self.path}', but the file '{shown(file.path)}' is in none."
            )
        return lane

    def cut(self, file: ListedFile, ordinal: int, pieces: int) -> tuple[list[FilePiece], int]:
        """A file as pieces for several tasks, and its rows as far as they are known."""
        whole = self._whole(file, ordinal)
        if not file.regular or whole.is_small_object:
            return [whole], 0
        try:
            if self.format in ("csv", "json") and not is_object(file.path):
                return self._cut_text(whole, file, pieces), 0
            if self.format != "parquet":
                return [whole], 0
            metadata = footer_of(file)
        except FAULTS:
            return [whole], 0  # the task that reads it will say what is wrong
        groups = metadata.num_row_groups
        rows = [metadata.row_group(number).num_rows for number in range(groups)]
        wanted = max(1, min(pieces, groups, sum(rows) // MIN_PIECE_ROWS))
        cuts = [groups * number // wanted for number in range(wanted + 1)]
        return [
            replace(
                whole,
                size=max(1, file.size * sum(rows[start:end]) // max(1, sum(rows))),
                row_groups=tuple(range(start, end)),
                first_row=sum(rows[:start]),
                partial=wanted > 1,
            )
            for start, end in itertools.pairwise(cuts)
        ], sum(rows)

    def _cut_text(self, whole: FilePiece, file: ListedFile, pieces: int) -> list[FilePiece]:
        parts = cut_text(file.path, self.format, self.form, file.taken, file.size, pieces)
        if len(parts) < 2 and self.growing != FOLLOW:
            return [whole]
        # No line is shorter than a byte, so bytes will do to number them
        return [
            replace(
                whole, span=part, size=part.end - part.begin, first_row=part.begin - file.taken,
                partial=len(parts) > 1, version=whole.version if self.growing != FOLLOW else None,
            )
            for part in parts
        ]  # fmt: skip

    def _whole(self, file: ListedFile, ordinal: int) -> FilePiece:
        """A file as one piece."""
        return FilePiece(
            self.stream, file.path, self.format, self.schema, ordinal, max(file.size, 1),
            lane=self.lane_of(file) if self.lanes else None,
            version=file.version if file.regular else None, form=self.form,
            total=file.size if is_object(file.path) else 0, etag=file.etag,
        )  # fmt: skip


def file_source(
    stream: str, path: str, format: str | None, schema: pl.Schema | None, order: str = "time",
    form: FileForm = USUAL, types: pl.Schema | None = None,
) -> FileSource:  # fmt: skip
    """A file stream; format and schema are taken from the first file where not given.

    `types` are those of some columns, in place of what the files would say.
    """
    if order not in ORDERS:
        raise SourceError(
            f"Stream '{stream}': file_order is {order!r}; expected one of {', '.join(ORDERS)}."
        )
    if format is not None and format not in FORMATS:
        raise SourceError(
            f"Stream '{stream}': there is no file format '{format}'. Existing: {', '.join(FORMATS)}."
        )
    try:
        possible = "\0" not in path and bool(os.fsencode(path))
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise SourceError(
            f"Stream '{stream}': the path is {path!r}; expected a folder, a file or a pattern. Was a "
            "variable not set?"
        )
    path = object_path(stream, path) if is_object(path) else os.path.abspath(local_path(path))
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            f"Stream '{stream}': the path {path!r} is not UTF-8. Give the folder another name, or reach it "
            "through a link."
        ) from error
    hidden = hidden_part(path) if is_pattern(path) else None
    if hidden is not None:
        raise SourceError(
            f"Stream '{stream}': '{hidden}' in '{path}' is about names that begin with '_' or '.', which "
            "are passed over, being those of files that are still written. Give the files other names."
        )
    files = [file.path for file in list_files(path)]
    if not files and schema is None and not is_pattern(path) and not os.path.exists(path):
        raise SourceError(
            f"Stream '{stream}': there is no file or folder '{path}'. Mend the path, or give format= and "
            "schema= to wait for its first file."
        )
    if format is None:
        name = Path(files[0] if files else path)
        suffix = (name.with_suffix("") if name.suffix in PACKED_ENDINGS else name).suffix.lower()
        if suffix not in EXTENSIONS:
            why = (
                f"of '{shown(files[0])}' cannot be told from its name"
                if files
                else f"cannot be told: there is no file in '{path}' yet"
            )
            raise SourceError(
                f"Stream '{stream}': the format {why}. Give format= one of {', '.join(FORMATS)}."
            )
        format = EXTENSIONS[suffix]
        if suffix == ".tsv" and form.delimiter == USUAL.delimiter:
            form = replace(form, delimiter="\t")
    check_form(stream, form, format)
    if schema is None:
        if not files:
            raise SourceError(
                f"Stream '{stream}': there is no file under '{path}' to take the schema from. "
                "Give schema=, or put a file there first."
            )
        schema = _schema_of(files, format, form)
    for column, kind in (types or {}).items():
        if column not in schema:
            raise SourceError(
                f"Stream '{stream}': types= has '{column}', which is not a column."
                f"{suggest(column, schema)}"
            )
        schema[column] = kind
    return FileSource(stream, path, format, schema, order=order, form=form)


def _schema_of(files: list[str], format: str, form: FileForm) -> pl.Schema:
    """The schema of the first file that can be read; what is wrong with others is said when they are.

    A column without a value there, as in a file without rows, has the type that it has in the next ones.
    """
    first: SourceError | None = None
    schema: pl.Schema | None = None
    looked_at = 0
    for path in files:
        try:
            with as_file(path) as readable:
                present = infer_schema(readable, format, form)
        except SourceError as error:
            first = first or error
            continue
        except FAULTS as error:
            # What the readers trust to be whole, such as the names of columns in a footer
            first = first or SourceError(f"'{shown(path)}' is not a whole {format} file: {error}.")
            continue
        looked_at += 1
        schema = present if schema is None else schema
        for name, kind in present.items():
            if schema.get(name) == pl.Null:
                schema[name] = kind
        if pl.Null not in schema.values() or looked_at == MAX_LOOKED_AT:
            break
    if schema is None:
        assert first is not None
        raise first
    return schema


def object_path(stream: str, path: str) -> str:
    """The URI of objects as it is kept; SourceError if it says more than bucket and folder."""
    try:
        scheme, bucket, key = split_uri(path)
    except ValueError as error:
        raise SourceError(f"Stream '{stream}': the path is '{path}'; {error}.") from error
    return f"{scheme}://{bucket}/{key}".rstrip("/")


def _size_of(file: ListedFile, rows: int) -> int:
    """About how many bytes of a Parquet file hold so many of its rows."""
    try:
        total = max(1, int(footer_of(file).num_rows))
    except FAULTS:
        return file.size  # changed since it was read
    return max(1, file.size * rows // total)
