"""What a source is to the engine: a description that a run opens to poll for pieces; split tasks read them.

What is registered with a session never changes. A run opens it and gets a reader of its own, which has all
that changes: how far it has come, what it holds. So any number of runs may read one stream at a time.

A piece is a small picklable description (a file and its row groups, a range of a generator). Reading
gives rows in the stream's schema, and whatever could not be read, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import polars as pl

from anabranch.errors import StateError
from anabranch.state.place import Place


@dataclass(frozen=True)
class Bad:
    """Input that does not fit: a whole file, lines of one, or messages of a topic."""

    stream: str
    file: str
    """The file, or what the letters about messages are to be called."""
    reason: str
    lines: tuple[str, ...] = ()
    """The bad lines or messages with their reasons, as JSON; not more than a file may keep."""
    rows: int = 0
    """How many of them are bad; none if it is the whole file."""
    part: str = ""
    """Which part of the file, if the others were read by themselves."""


@dataclass
class Reading:
    """What came of reading a piece."""

    rows: pl.DataFrame | None
    bad: list[Bad] = field(default_factory=list)
    first_row: int = 0


class Piece(Protocol):
    """A part of a stream that a split task reads by itself.

    It may have a `remedy`: what to do about bad input, for people.
    """

    @property
    def ordinal(self) -> int:
        """The arrival number of what the piece belongs to (a file, a block)."""

    @property
    def weight(self) -> int:
        """About how much work it is, to spread pieces over tasks."""

    @property
    def label(self) -> str:
        """What to call it in messages, e.g. a file with its path."""

    @property
    def lane(self) -> str | None:
        """The part of the stream it belongs to, if the stream comes partitioned."""

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        """The rows, in order. With `salvage`, good rows of a broken file are kept."""


@dataclass(frozen=True)
class EpochLimits:
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
    lanes: frozenset[str] | None = None
    """The lanes that have input, in this offer or waiting behind it, or that may have some; None if the
    stream has no lanes. A lane that has had no row, and is not among them, is no longer waited for."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the source has counted since the checkpoint began, for the progress report."""


@dataclass(frozen=True)
class StreamSample:
    """Some rows of a stream, for estimates before anything has run."""

    rows: pl.DataFrame
    per_epoch: float
    """About how many rows an epoch will have."""
    lanes: pl.Series | None = None
    """The lane of each row, if the stream comes partitioned."""


@dataclass(frozen=True)
class ReadContext:
    """The run that opens a source: where it stands, and where a source may keep what it must remember."""

    offset: Any
    """Where its last committed epoch had come to; None at the very beginning."""
    available_now: bool
    """Whether only what exists now is to be offered."""
    columns: tuple[str, ...]
    """The columns that the run reads."""
    place: Place
    """The checkpoint, for durable files under `sources/`."""

    def known_offset(self, stream: str, parts: Collection[str]) -> Any:
        """The offset, if it has no parts but these: this build would not heed what another one says."""
        unknown = sorted({*(self.offset or ())} - {*parts})
        if unknown:
            raise StateError(
                f"Stream '{stream}': the checkpoint tells where to go on with '{unknown[0]}', which this "
                "version does not know. Use the version of Anabranch that wrote it."
            )
        return self.offset


def gives_once(source: object) -> bool:
    """Whether a source gives its rows to one reader only, so that none can begin later or anew."""
    return bool(getattr(source, "once", False))


class Reader(Protocol):
    """A source opened by one run: the driver's side of a stream."""

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        """The next input, or None if there is none at the moment."""

    def finished(self) -> bool:
        """Whether nothing will ever come any more (only with `available_now`, or a bounded source)."""

    def committed(self, offset: Any) -> None:
        """Everything up to this offset is safe in the checkpoint."""

    def stop(self) -> None:
        """Releases what the reader holds."""


@runtime_checkable
class LooksAhead(Protocol):
    """A reader that can tell what it will offer after the epoch that is under way."""

    def look_ahead(self, limits: EpochLimits, ordinal: int, taken: Offer | None) -> Offer | None:
        """What `poll` would give if what was taken were committed now and nothing came meanwhile.

        Nothing is noted by it: it is asked while the epoch that takes `taken`, if anything, is under way. Who
        prepares for it looks later whether it has come so.
        """


class Source(Protocol):
    """Where a stream comes from. Runs open it; it does not change by that."""

    @property
    def schema(self) -> pl.Schema:
        """The columns of the stream."""

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        """About so many rows of what will come, without taking them; None if that cannot be had."""

    def open(self, context: ReadContext) -> Reader:
        """A reader for one run, at the offset that the run has come to."""

    def describe(self) -> str:
        """How the stream is read, for people."""
