"""What a collector knows of the partitions of an exchange, and what of it survives when they are cut anew."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from anabranch.adapt.smoothing import Smoothed
from anabranch.routing.partition_map import PartitionMap


@dataclass
class KnownPartitions:
    """What is known of an exchange's partitions."""

    starts: tuple[int, ...]
    slots: int
    rows: np.ndarray
    seconds: float = 0.0
    peak_rows: np.ndarray = field(default_factory=lambda: np.zeros(0))
    peak_slot: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last_use: np.ndarray = field(default_factory=lambda: np.zeros(0))
    shares: Smoothed = field(default_factory=Smoothed)
    output: Smoothed = field(default_factory=Smoothed)
    """Results an epoch."""
    cost: float = 0.0
    """Nominal seconds a row."""
    usual: float = 0.0
    """Rows of an epoch, when there last were any."""

    def usual_load(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each partition in an epoch, and their nominal seconds, as far as they are known."""
        if len(self.shares.mean) != len(self.starts):
            return np.zeros(len(self.starts)), np.zeros(len(self.starts))
        rows = self.shares.mean * self.usual
        return rows, rows * self.cost


def recut(known: KnownPartitions | None, partitions: PartitionMap, now: float) -> KnownPartitions:
    """What was known of other cuts of the slots, spread over the new partitions by their lengths.

    There may be more slots than before, the cells of hot keys, and fewer: an epoch that ran when cells were
    decided on does not have them yet. Nothing is known of slots that only one of the cuts has.
    """
    count = partitions.partitions
    made = KnownPartitions(partitions.starts, partitions.slots, np.zeros(count))
    made.peak_rows = np.zeros(count)
    made.last_use = np.full(
        count, float(now)
    )  # of what is not known yet nobody can say that it is idle
    made.peak_slot = np.asarray(partitions.starts)
    if known is None:
        return made
    widths = np.diff([*known.starts, known.slots])
    common = min(known.slots, partitions.slots)

    def spread(values: np.ndarray) -> np.ndarray:
        each = np.zeros(partitions.slots)
        each[:common] = np.repeat(values / widths, widths)[:common]
        found: np.ndarray = np.add.reduceat(each, np.asarray(partitions.starts))
        return found

    made.rows, made.cost, made.usual = spread(known.rows), known.cost, known.usual
    made.seconds = known.seconds
    old = np.searchsorted(known.starts, partitions.starts, "right") - 1
    made.last_use = known.last_use[old]

    def respread(before: Smoothed) -> Smoothed:
        if len(before.mean) != len(known.starts):
            return Smoothed()
        return Smoothed(spread(before.mean), spread(before.deviation), before.seen[old])

    made.shares, made.output = respread(known.shares), respread(known.output)
    return made
