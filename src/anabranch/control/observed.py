"""What the governor is told of an epoch, and what it can tell from references to state."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from anabranch.adapt.collector import Sample
from anabranch.adapt.policies.combine import Intake
from anabranch.adapt.policies.plans import Counted
from anabranch.plan.exchange import Exchange
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.shelf import Shelf, bytes_of


@dataclass(frozen=True)
class InputRates:
    """What came to each input of a join in an epoch."""

    rows: tuple[float, ...]
    bytes: tuple[float, ...]
    pairs: float = 0.0
    """Pairs of rows that were looked at."""

    def smoothed(self, now: InputRates, weight: float) -> InputRates:
        """A mean in which the newest epoch has this weight."""

        def mean(before: float, after: float) -> float:
            return before + weight * (after - before)

        return InputRates(
            tuple(map(mean, self.rows, now.rows)),
            tuple(map(mean, self.bytes, now.bytes)),
            mean(self.pairs, now.pairs),
        )


@dataclass(frozen=True)
class JoinWork:
    """What a join has done in an epoch."""

    rows: int = 0
    pairs: int = 0
    """Pairs of rows that it looked at."""
    results: int = 0
    seconds: float = 0.0
    """What all sites together spent on it."""
    sampling: float = 0.0
    """The part of it that went into counting what it would do in other shapes."""
    kept: tuple[float, ...] = ()
    """The rows of each input that it remembered."""


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
    intakes: Mapping[str, Intake] = field(default_factory=dict)
    """What came to subqueries that senders may sub-aggregate for."""
    spilled: Mapping[str, Collection[int]] = field(default_factory=dict)
    """The partitions of each exchange whose state is on disk only, by their first slots."""
    inputs: Mapping[str, InputRates] = field(default_factory=dict)
    """What came to the inputs of joins that have an exchange for themselves."""
    joins: Mapping[str, JoinWork] = field(default_factory=dict)
    """What each join has done that can have several shapes."""
    sampled: Mapping[str, Mapping[int, Counted]] = field(default_factory=dict)
    """What joins would do in other shapes, where that was counted, by the first slots of partitions."""
    ended: float = 0.0
    """When it ended; it counts where moves take a time of their own."""


def state_bytes(
    exchange: Exchange, known: PartitionMap, shelves: Mapping[str, Shelf]
) -> np.ndarray:
    """The bytes of each partition's state."""
    own = [shelves[member.name] for member in exchange.members if member.name in shelves]
    return bytes_of(own, np.asarray(known.starts), known.slots)
