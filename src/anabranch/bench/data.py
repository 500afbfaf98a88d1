"""The files the benchmarks read: packets as in W1, streams to join, the same on every machine.

Nothing here knows who reads them. Names and times of change both follow the order of arrival, since
Spark takes files by the one and then the other, and so do we.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DESTINATIONS = 8
ROW_GROUP = 131_072
NOVEMBER_2023 = 1_700_000_000
"""When the streams to join begin: a watermark of Spark's begins at 0, and rows of time 0 are late."""


@dataclass(frozen=True)
class Packets:
    """A folder of files: `rows[i]` rows in file i, which covers `seconds_per_file` seconds."""

    rows: tuple[int, ...]
    sources: int = 200_000
    seconds_per_file: int = 20
    plain: bool = False
    """Written without compression and dictionaries: for many rows that only have to be there."""
    exponent: float = 0.0
    """How much more popular some sources are than others, by Zipf's law; 0: not at all."""

    @property
    def total(self) -> int:
        return sum(self.rows)

    def table(self, number: int) -> pa.Table:
        """The rows of one file: ordered by time, the keys uniform unless there is an exponent."""
        random, rows = np.random.default_rng(number), self.rows[number]
        start = number * self.seconds_per_file
        return pa.table(
            {
                "time": np.sort(random.integers(start, start + self.seconds_per_file, rows)),
                "srcIP": self._sources(random, rows),
                "destIP": random.integers(0, DESTINATIONS, rows),
                "len": random.integers(40, 1500, rows),
            }
        )

    def _sources(self, random: np.random.Generator, rows: int) -> np.ndarray:
        if not self.exponent:
            return random.integers(0, self.sources, rows)
        reached = np.cumsum(np.arange(1, self.sources + 1) ** -self.exponent)
        found: np.ndarray = np.searchsorted(reached, random.random(rows) * reached[-1])
        return found

    def write(self, folder: Path) -> Iterator[int]:
        """Writes the files and yields the number of each when it is there."""
        folder.mkdir(parents=True)
        options = {"compression": "none", "use_dictionary": False} if self.plain else {}
        for number in range(len(self.rows)):
            path = folder / f"{number:04d}.parquet"
            pq.write_table(self.table(number), path, row_group_size=ROW_GROUP, **options)
            yield number


@dataclass(frozen=True)
class Events:
    """Streams to join, a folder each: `rows` rows in each of `files` files, uniform keys but for one."""

    streams: tuple[str, ...]
    rows: int
    files: int
    keys: int
    seconds_per_file: int = 30
    popular: float = 0.0
    """The share of the first stream's rows that have key 0."""

    def table(self, stream: int, number: int) -> pa.Table:
        """The rows of one file: ordered by time, each file after the one before."""
        random = np.random.default_rng([stream, number])
        start = NOVEMBER_2023 + number * self.seconds_per_file
        times = np.sort(random.integers(start, start + self.seconds_per_file, self.rows))
        keys = random.integers(0, self.keys, self.rows)
        if self.popular and stream == 0:
            keys[random.random(self.rows) < self.popular] = 0
        return pa.table(
            {
                "time": times,
                "k": keys,
                "v": random.integers(0, 1_000_000_000, self.rows),
            }
        )

    def write(self, folder: Path) -> None:
        """Writes all files."""
        for stream, name in enumerate(self.streams):
            (folder / name).mkdir(parents=True)
            for number in range(self.files):
                path = folder / name / f"{number:04d}.parquet"
                pq.write_table(self.table(stream, number), path, row_group_size=ROW_GROUP)


def w1(rows: int = 1_000_000, files: int = 10, sources: int = 200_000) -> Packets:
    """W1, or W1 with another number of rows a file, files or sources."""
    return Packets((rows,) * files, sources)
