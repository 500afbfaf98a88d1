"""What the governor is told of an epoch, and what it can tell from references to state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.adapt.collector import Sample
from anabranch.plan.exchange import Exchange
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.segment import SegmentRef


@dataclass(frozen=True)
class Observed:
    """What an epoch has shown."""

    epoch: int
    sites: int
    """How many it ran on."""
    seconds: float
    maps: Mapping[str, PartitionMap]
    """The maps that it ran with."""
    samples: Mapping[int, Sample]
    """What was measured at each level that had rows."""
    condensed: Mapping[str, tuple[int, int]]
    """Rows of hot slots before and after sub-aggregation, by exchange."""
    memory: Mapping[int, int]
    """Bytes that sites may keep, where that is another number than the setting's."""


def state_bytes(
    exchange: Exchange, known: PartitionMap, segments: Mapping[str, Sequence[SegmentRef]]
) -> np.ndarray:
    """The bytes of each partition's state, taken as spread evenly over a segment's slots."""
    steps = np.zeros(known.slots + 1)
    for member in exchange.members:
        for ref in segments.get(member.name, ()):
            first, end = np.asarray(ref.live).reshape(-1, 2).T
            density = ref.bytes / max(1, int((end - first).sum()))
            steps[first] += density
            steps[end] -= density
    found: np.ndarray = np.add.reduceat(np.cumsum(steps)[:-1], np.asarray(known.starts))
    found[found < 0] = 0.0
    return found
