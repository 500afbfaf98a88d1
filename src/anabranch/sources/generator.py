"""Generated rows as a stream: for demonstrations, benchmarks and tests without any data.

The offset is the number of rows made so far. What the rows are is in `generate.py`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from anabranch.errors import SourceError
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reading, StreamSample
from anabranch.sources.generate import Generator


@dataclass(frozen=True)
class GeneratorPiece:
    """Rows start..start+count-1 of a generator."""

    generator: Generator
    start: int
    count: int
    ordinal: int
    lane: str | None = None

    @property
    def weight(self) -> int:
        return self.count

    @property
    def label(self) -> str:
        return f"{self.generator.kind} rows {self.start} to {self.start + self.count - 1}"

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        return Reading(self.generator.rows(self.start, self.count).select(columns))


@dataclass(frozen=True)
class GeneratorSource:
    """Rows of a generator: `total` of them or without end, at `rate` per second or as fast as asked."""

    generator: Generator
    total: int | None = None
    rate: int | None = None
    rows_per_epoch: int = 500_000
    clock: Callable[[], float] = time.monotonic

    @property
    def schema(self) -> pl.Schema:
        return self.generator.schema()

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        count = rows if self.total is None else min(rows, self.total)
        per_epoch = min(self.rows_per_epoch, limits.rows, self.total or limits.rows)
        return StreamSample(self.generator.rows(0, count), per_epoch) if count else None

    def open(self, context: ReadContext) -> GeneratorReader:
        if context.available_now and self.total is None:
            raise SourceError(
                f"The generator of {self.generator.kind} has no end, so an available-now run would "
                "not either: give the stream rows=, or trigger='continuous'."
            )
        made = int(context.offset or 0)
        return GeneratorReader(self, made, made, self.clock())

    def describe(self) -> str:
        rows = "without end" if self.total is None else f"{self.total:,} rows"
        return f"generator of {self.generator.kind}, {rows}"


@dataclass
class GeneratorReader:
    """How far one run has come with a generator."""

    source: GeneratorSource
    made: int
    first: int
    """How many rows were made before this run, which began at this time of the clock:"""
    began: float

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        return self._after(self.made, limits, ordinal)

    def look_ahead(self, limits: EpochLimits, ordinal: int, taken: Offer | None) -> Offer | None:
        # How many rows a rate allows by then only the clock knows
        known = self.source.rate is None
        made = self.made if taken is None else int(taken.offset)
        return self._after(made, limits, ordinal) if known else None

    def _after(self, made: int, limits: EpochLimits, ordinal: int) -> Offer | None:
        """What comes after so many rows."""
        source = self.source
        count = min(source.rows_per_epoch, limits.rows)
        if source.rate is not None:
            allowed = self.first + int((source.clock() - self.began) * source.rate)
            count = min(count, allowed - made)
        if source.total is not None:
            count = min(count, source.total - made)
        if count <= 0:
            return None
        cuts = [made + count * n // limits.pieces for n in range(limits.pieces + 1)]
        pieces = tuple(
            GeneratorPiece(source.generator, start, end - start, ordinal + number)
            for number, (start, end) in enumerate(itertools.pairwise(cuts))
            if end > start
        )
        left = 0 if source.total is None else source.total - made - count
        return Offer(pieces, made + count, ordinal + limits.pieces, left)

    def finished(self) -> bool:
        return self.source.total is not None and self.made >= self.source.total

    def committed(self, offset: Any) -> None:
        self.made = int(offset)

    def stop(self) -> None:
        pass
