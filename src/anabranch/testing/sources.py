"""A source for tests: frames in memory, one for each epoch.

>>> import polars as pl
>>> source = EpochSource([pl.DataFrame({"time": [1, 2]}), pl.DataFrame({"time": [3]})])
>>> EpochReader(source.frames).poll(EpochLimits(1, 1, 1, pieces=2), ordinal=0).offset
1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl

from anabranch.errors import SourceError
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reader, Reading, StreamSample


@dataclass(frozen=True, eq=False)
class FramePiece:
    """Some rows of one epoch; travels to the split task with its rows."""

    rows: pl.DataFrame
    ordinal: int
    label: str
    lane: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FramePiece) and (
            (self.ordinal, self.label, self.lane) == (other.ordinal, other.label, other.lane)
            and self.rows.equals(other.rows)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def weight(self) -> int:
        return self.rows.height

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        return Reading(self.rows.select(columns))


def cut(rows: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """The rows in so many parts of about the same length."""
    cuts = [rows.height * number // count for number in range(count + 1)]
    return [rows[start:end] for start, end in pairwise(cuts)]


@dataclass
class EpochSource:
    """The rows of `frames[k]`, in their order, in epoch k of the run; the offset counts frames.

    An empty frame makes an epoch without rows. A frame is cut into as many pieces as there are split
    tasks, or into one for each of the `lanes`, if there are any: the first lane has the first rows of every
    frame. The source ends after the last frame, whatever the trigger.
    """

    frames: Sequence[pl.DataFrame]
    lanes: int = field(default=0, kw_only=True)
    schema: pl.Schema = field(init=False)

    def __post_init__(self) -> None:
        if not self.frames:
            raise SourceError("An EpochSource needs at least one frame, if only an empty one.")
        self.schema = self.frames[0].schema
        for number, frame in enumerate(self.frames):
            if frame.schema != self.schema:
                raise SourceError(
                    f"Frame {number} of an EpochSource has the columns {dict(frame.schema)}; "
                    f"expected those of frame 0: {dict(self.schema)}."
                )

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        filled = next((frame for frame in self.frames if frame.height), None)
        return None if filled is None else StreamSample(filled.head(rows), filled.height)

    def open(self, context: ReadContext) -> Reader:
        return EpochReader(self.frames, int(context.offset or 0), lanes=self.lanes)

    def describe(self) -> str:
        return type(self).__name__


@dataclass
class EpochReader:
    """How many frames one run has taken."""

    frames: Sequence[pl.DataFrame]
    taken: int = 0
    lanes: int = field(default=0, kw_only=True)

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        return self._after(self.taken, limits, ordinal)

    def look_ahead(self, limits: EpochLimits, ordinal: int, taken: Offer | None) -> Offer | None:
        return self._after(self.taken + (taken is not None), limits, ordinal)

    def _after(self, frames: int, limits: EpochLimits, ordinal: int) -> Offer | None:
        """What comes after so many frames."""
        if frames >= len(self.frames):
            return None
        rows = self.frames[frames]
        count = self.lanes or max(1, min(limits.pieces, rows.height))
        names = [str(number) if self.lanes else None for number in range(count)]
        pieces = tuple(
            FramePiece(slice, ordinal + number, f"frame {frames}", names[number])
            for number, slice in enumerate(cut(rows, count))
        )
        left = sum(frame.height for frame in self.frames[frames + 1 :])
        lanes = frozenset(name for name in names if name is not None) if self.lanes else None
        return Offer(pieces, frames + 1, ordinal + count, left, lanes)

    def finished(self) -> bool:
        return self.taken >= len(self.frames)

    def committed(self, offset: Any) -> None:
        self.taken = int(offset)

    def stop(self) -> None:
        pass
