"""Means over rounds that follow a change at once and ignore noise."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

RECENCY = 0.125
"""The least weight of a new value; the first few since a change weigh as much as each before them."""
UNLIKELY = 3.0
"""A value this many mean deviations off is not noise: the mean jumps to it."""
ALWAYS_LIKELY = 0.05
"""So far off, relative to the mean, a value may always be."""


@dataclass
class Smoothed:
    """The mean of each element of an array that comes anew every round."""

    mean: np.ndarray = field(default_factory=lambda: np.zeros(0))
    deviation: np.ndarray = field(default_factory=lambda: np.zeros(0))
    seen: np.ndarray = field(default_factory=lambda: np.zeros(0))
    """Values since the last change."""

    def add(self, values: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
        """The means with these values; elements that are not `known` this time keep theirs.

        >>> steady = Smoothed()
        >>> for value in (1.0, 1.04, 0.96, 3.0):
        ...     mean = steady.add(np.array([value]))
        >>> float(mean[0])
        3.0
        """
        if len(values) != len(self.mean):
            self.mean, self.deviation = values.astype(float), np.zeros(len(values))
            self.seen = np.ones(len(values))
            return self.mean
        off = np.abs(values - self.mean)
        likely = UNLIKELY * self.deviation + ALWAYS_LIKELY * np.abs(self.mean)
        jump = off > likely
        weight = np.maximum(1 / (self.seen + 1), RECENCY)
        mean = np.where(jump, values, self.mean + weight * (values - self.mean))
        # Jumps count too, though none for more than is likely: if they go on, they are noise after all
        deviation = self.deviation + weight * (np.minimum(off, likely) - self.deviation)
        kept = np.zeros(len(values), dtype=bool) if known is None else ~known
        self.mean = np.where(kept, self.mean, mean)
        self.deviation = np.where(kept, self.deviation, deviation)
        self.seen = np.where(kept, self.seen, np.where(jump, 1.0, self.seen + 1))
        return self.mean

    def told_apart(self) -> np.ndarray:
        """The means, drawn together as far as noise alone may have set them apart.

        >>> noisy = Smoothed(np.array([1.0, 1.0, 1.2, 3.0]), np.array([0.1, 0.1, 0.2, 0.2]))
        >>> noisy.told_apart().round(2).tolist()
        [1.1, 1.1, 1.1, 2.98]
        """
        middle = float(np.median(self.mean)) if len(self.mean) else 0.0
        off = self.mean - middle
        noise = np.divide(self.deviation, np.abs(off), out=np.ones(len(off)), where=off != 0)
        found: np.ndarray = middle + off * np.maximum(0.0, 1 - noise * noise)
        return found
