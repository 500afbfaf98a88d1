"""What a simulation leaves behind: rows served, their latency and the moves of every second."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Moved:
    """A move that was carried out."""

    at: float
    partition: int
    source: int
    target: int


@dataclass
class Record:
    """Sums for every second of simulated time."""

    seconds: int
    rows: np.ndarray = field(init=False)
    waited: np.ndarray = field(init=False)
    """Seconds from a row's entry into its site until it is served, over all rows."""
    moves: list[Moved] = field(default_factory=list)
    collections: list[tuple[float, float]] = field(default_factory=list)
    """When a collection ended, and how long it took."""

    def __post_init__(self) -> None:
        self.rows, self.waited = np.zeros(self.seconds), np.zeros(self.seconds)

    def add(self, now: float, rows: float, waited: float) -> None:
        second = min(int(now), self.seconds - 1)
        self.rows[second] += rows
        self.waited[second] += waited

    @property
    def latency(self) -> np.ndarray:
        """The mean latency of the rows of each second; of a second without rows, nothing is known."""
        found = np.full(self.seconds, np.nan)
        np.divide(self.waited, self.rows, out=found, where=self.rows > 0)
        return found

    def rate(self, begin: int = 0, end: int | None = None) -> float:
        """Rows a second, over some of the seconds."""
        return float(self.rows[begin:end].mean())
