"""Generated rows as a stream: for demonstrations, benchmarks and tests without any data.

The offset is the number of rows made so far. What the rows are is in `generate.py`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from anabranch.errors import SourceError
from anabranch.sources.base import Limits, Offer, Reading, Sample
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


@dataclass
class GeneratorSource:
    """Rows of a generator: `total` of them or without end, at `rate` per second or as fast as asked."""

    generator: Generator
    total: int | None = None
    rate: int | None = None
    rows_per_epoch: int = 500_000
    clock: Callable[[], float] = time.monotonic
    schema: pl.Schema = field(init=False)
    _made: int = 0
    _began: float = 0.0
    _base: int = 0

    def __post_init__(self) -> None:
        self.schema = self.generator.schema()

    def sample(self, rows: int, limits: Limits) -> Sample | None:
        count = rows if self.total is None else min(rows, self.total)
        per_epoch = min(self.rows_per_epoch, limits.rows, self.total or limits.rows)
        return Sample(self.generator.rows(0, count), per_epoch) if count else None

    def start(self, offset: Any, available_now: bool) -> None:
        if available_now and self.total is None:
            raise SourceError(
                f"The generator of {self.generator.kind} has no end, so an available-now run would "
                "not either: give the stream rows=, or trigger='continuous'."
            )
        self._made = self._base = int(offset or 0)
        self._began = self.clock()

    def poll(self, limits: Limits, ordinal: int) -> Offer | None:
        count = min(self.rows_per_epoch, limits.rows)
        if self.rate is not None:
            allowed = self._base + int((self.clock() - self._began) * self.rate)
            count = min(count, allowed - self._made)
        if self.total is not None:
            count = min(count, self.total - self._made)
        if count <= 0:
            return None
        cuts = [self._made + count * n // limits.pieces for n in range(limits.pieces + 1)]
        pieces = tuple(
            GeneratorPiece(self.generator, start, end - start, ordinal + number)
            for number, (start, end) in enumerate(itertools.pairwise(cuts))
            if end > start
        )
        left = 0 if self.total is None else self.total - self._made - count
        return Offer(pieces, self._made + count, ordinal + limits.pieces, left)

    def finished(self) -> bool:
        return self.total is not None and self._made >= self.total

    def committed(self, offset: Any) -> None:
        self._made = int(offset)

    def stop(self) -> None:
        pass
