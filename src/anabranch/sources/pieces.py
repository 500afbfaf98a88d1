"""A piece of a file: what a split task is told to read of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from anabranch.errors import StateError
from anabranch.sources.base import Reading
from anabranch.sources.form import USUAL, FileForm
from anabranch.sources.formats import read_file
from anabranch.sources.listing import Version
from anabranch.sources.opening import TextPart
from anabranch.sources.paths import shown
from anabranch.state.checksum import Damaged, check_file
from anabranch.state.uris import is_object

WHOLE = 4 << 20
"""Objects up to this many bytes are fetched whole: a second request takes longer than they do."""


@dataclass(frozen=True)
class FilePiece:
    """A file, some row groups of a Parquet file, or some lines of a text file."""

    stream: str
    path: str
    format: str
    schema: pl.Schema
    ordinal: int
    size: int
    row_groups: tuple[int, ...] | None = None
    span: TextPart | None = None
    first_row: int = 0
    """A number below those of all its rows and above those of the pieces before it."""
    partial: bool = False
    """Whether there are other pieces of the same file."""
    lane: str | None = None
    checksum: int | None = None
    """Of the file, where it is one of the checkpoint."""
    version: Version | None = None
    """What the file was when it was cut into pieces; another one in its place has other row groups."""
    form: FileForm = USUAL
    total: int = 0
    """Of an object in a bucket, its bytes."""
    etag: str | None = None
    """Of an object, what tells it from another one of its name."""

    @property
    def is_small_object(self) -> bool:
        return is_object(self.path) and self.total <= WHOLE

    @property
    def weight(self) -> int:
        return self.size

    @property
    def label(self) -> str:
        return f"{'object' if is_object(self.path) else 'file'} '{shown(self.path)}'"

    @property
    def remedy(self) -> str:
        what = "object" if is_object(self.path) else "file"
        return f"Mend or remove the {what} and start again"

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        if self.checksum is not None:
            self._check(self.checksum)
        if is_object(self.path):
            # The library is an extra, which files of this machine do without
            from anabranch.sources.objects.fetching import read_object

            reading = read_object(self, columns, salvage)
        else:
            reading = read_file(
                self.stream, self.path, self.format, self.schema, columns, self.row_groups, salvage,
                self.version, self.form, self.span,
            )  # fmt: skip
        reading.first_row = self.first_row
        if self.partial:
            groups = self.row_groups or (0,)
            part = str(self.span) if self.span else f"row groups {groups[0]} to {groups[-1]}"
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
