"""Runs of neighbours among sorted rows: what each of many rows can meet, as places and lengths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.routing.ranges import expand

CHUNK = 500_000
"""Combinations made at a time: what a key with very many matches takes of the memory."""


@dataclass(frozen=True)
class Runs:
    """Runs of neighbours: `start` and `length` of each, and of `which` row it is the run."""

    which: np.ndarray
    start: np.ndarray
    length: np.ndarray

    @property
    def rows(self) -> int:
        return int(self.length.sum())

    @property
    def places(self) -> np.ndarray:
        """The places of all rows, run by run."""
        # Half as wide as NumPy's own, and what Polars takes; that the shift wraps around is made up for
        shift = self.start - (np.cumsum(self.length) - self.length)
        found = np.repeat(shift.astype(np.uint32), self.length)
        found += np.arange(len(found), dtype=np.uint32)
        return found

    def of(self, wanted: np.ndarray) -> Runs:
        return Runs(self.which[wanted], self.start[wanted], self.length[wanted])

    def cut(self, rows: int) -> tuple[Runs, Runs]:
        """So many rows of each run, and what is left of them."""
        head = Runs(self.which, self.start, np.minimum(self.length, rows))
        rest = Runs(self.which, self.start + rows, self.length - rows)
        return head, rest.of(rest.length > 0)

    def chunks(self, most: int) -> Iterator[Runs]:
        """The runs, those with at most so many rows at a time; longer ones in pieces."""
        which, start, length = self.which, self.start, self.length
        if len(length) and int(length.max()) > most:
            pieces = np.maximum(1, -(-length // most))
            piece = np.repeat(np.arange(len(length)), pieces)
            inner = expand(np.zeros(len(length), dtype=np.int64), pieces) * most
            which, start = which[piece], start[piece] + inner
            length = np.minimum(length[piece] - inner, most)
        ends = np.cumsum(length)
        at = 0
        while at < len(length):
            before = ends[at - 1] if at else 0
            upto = max(at + 1, int(np.searchsorted(ends, before + most, side="right")))
            cut = slice(at, upto)
            yield Runs(which[cut], start[cut], length[cut])
            at = upto


def joined(parts: Sequence[Runs]) -> Runs:
    """All runs of several."""
    which, start, length = (
        np.concatenate([np.empty(0, dtype=np.int64), *(getattr(part, name) for part in parts)])
        for name in ("which", "start", "length")
    )
    return Runs(which, start, length)


def in_chunks(
    begin: np.ndarray, end: np.ndarray, most: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The places in each of the runs [begin, end) and the numbers of their runs, so many at once."""
    places = expand(begin, end - begin).astype(np.uint32)
    group = np.repeat(np.arange(len(begin)), end - begin)
    for at in range(0, len(places), most):
        yield places[at : at + most], group[at : at + most]
