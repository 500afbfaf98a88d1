"""What a source is to the engine: the driver polls for pieces, a split task reads them.

A piece is a small picklable description (a file and its row groups, a range of a generator). Reading
gives rows in the stream's schema, and whatever could not be read, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import polars as pl


@dataclass(frozen=True)
class Bad:
    """Input that does not fit: a whole file, or lines of one."""

    stream: str
    file: str
    reason: str
    lines: tuple[str, ...] = ()
    """The bad lines with their reasons, as JSON; not more than a file may keep."""
    rows: int = 0
    """How many lines are bad; none if it is the whole file."""
    part: str = ""
    """Which part of the file, if the others were read by themselves."""


@dataclass
class Reading:
    """What came of reading a piece."""

    rows: pl.DataFrame | None
    bad: list[Bad] = field(default_factory=list)
    first_row: int = 0


class Piece(Protocol):
    """A part of a stream that a split task reads by itself."""

    @property
    def ordinal(self) -> int:
        """The arrival number of what the piece belongs to (a file, a block)."""

    @property
    def weight(self) -> int:
        """About how much work it is, to spread pieces over tasks."""

    @property
    def label(self) -> str:
        """What to call it in messages, e.g. the path of a file."""

    @property
    def lane(self) -> str | None:
        """The part of the stream it belongs to, if the stream comes partitioned."""

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        """The rows, in order. With `salvage`, good rows of a broken file are kept."""


@dataclass(frozen=True)
class Limits:
    """How much one epoch may take of a stream, and into how many pieces to cut it."""

    files: int
    bytes: int
    rows: int
    pieces: int


@dataclass(frozen=True)
class Offer:
    """New input of a stream: its pieces, and the offset once they are consumed."""

    pieces: tuple[Piece, ...]
    offset: Any
    next_ordinal: int
    backlog: int = 0
    """Rows or files known to wait behind this offer."""


@dataclass(frozen=True)
class Sample:
    """Some rows of a stream, for estimates before anything has run."""

    rows: pl.DataFrame
    per_epoch: float
    """About how many rows an epoch will have."""
    lanes: pl.Series | None = None
    """The lane of each row, if the stream comes partitioned."""


class Source(Protocol):
    """The driver's side of a stream."""

    schema: pl.Schema

    def sample(self, rows: int, limits: Limits) -> Sample | None:
        """About so many rows of what will come, without taking them; None if that cannot be had."""

    def start(self, offset: Any, available_now: bool) -> None:
        """Goes to an offset; with `available_now`, only what exists now will be offered."""

    def poll(self, limits: Limits, ordinal: int) -> Offer | None:
        """The next input, or None if there is none at the moment."""

    def finished(self) -> bool:
        """Whether nothing will ever come any more (only with `available_now`, or a bounded source)."""

    def committed(self, offset: Any) -> None:
        """Everything up to this offset is safe in the checkpoint."""

    def stop(self) -> None:
        """Releases what the source holds."""
