"""What waits before the exchanges in an epoch, and what is let go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect, subtract
from anabranch.routing.reach import Holds, Reach, slots_of, within
from anabranch.state.manifest import HeldRef, Manifest


@dataclass(frozen=True)
class Waiting:
    """What waits before the exchanges in an epoch."""

    holds: Holds
    released: Holds
    held: tuple[HeldRef, ...]
    """The rows that are let go: those of some slots, where others go on waiting."""


def next_waiting(
    wanted: Mapping[str, Sequence[tuple[int, int]]], epoch: int, manifest: Manifest
) -> Waiting:
    """What waits in an epoch if the rows of these slots are to wait."""
    holds, released = {}, {}
    for exchange in {*wanted, *manifest.holds}:
        reach = manifest.reach.get(exchange, Reach())
        kept, gone = reach.renewed(wanted.get(exchange, []), epoch)
        if kept:
            holds[exchange] = kept
        if gone:
            released[exchange] = gone
    free = {exchange: sorted(slots_of(some)) for exchange, some in released.items()}
    cut = ((ref, intersect(ref.slots, free.get(ref.exchange, []))) for ref in manifest.held)
    return Waiting(holds, released, tuple(ref.cut(slots) for ref, slots in cut if slots))


def still_held(before: Iterable[HeldRef], let_go: Iterable[HeldRef]) -> list[HeldRef]:
    """The rows that go on waiting when these have been let go."""
    gone = {ref.file: ref.slots for ref in let_go}
    left = ((ref, subtract(ref.slots, gone.get(ref.file, ()))) for ref in before)
    return [ref.cut(slots) if ref.file in gone else ref for ref, slots in left if slots]


def waiting_of(
    subjects: Iterable[tuple[str, int]], holds: Holds, maps: Mapping[str, PartitionMap]
) -> set[tuple[str, int]]:
    """Those of these partitions all of whose rows wait."""
    waiting: set[tuple[str, int]] = set()
    by_exchange: dict[str, list[int]] = {}
    for exchange, start in subjects:
        by_exchange.setdefault(exchange, []).append(start)
    for exchange in by_exchange.keys() & holds.keys():
        known = maps[exchange]
        waits = within(np.arange(known.slots), slots_of(holds[exchange]))
        waiting |= {
            (exchange, start)
            for start in by_exchange[exchange]
            if waits[slice(*known.range_at(start))].all()
        }
    return waiting
