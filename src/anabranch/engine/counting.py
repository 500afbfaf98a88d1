"""How many rows go to each partition: counted by senders, added up on sites, put together by the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anabranch.engine.report import Counts
from anabranch.routing.locator import slot_of_locator
from anabranch.routing.partition_map import PartitionMap


def count(partitions: PartitionMap, places: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The rows of each partition, those of its fullest slot and that slot, of rows for these slots."""
    found = np.zeros(partitions.slots, dtype=np.int64)
    for some in places:
        found += np.bincount(some.view(np.int64), minlength=partitions.slots)
    starts = np.asarray(partitions.starts)
    peaks = np.maximum.reduceat(found, starts)
    # The first slot of each partition that has as many rows as its fullest
    full = np.flatnonzero(found == np.repeat(peaks, partitions.widths))
    at = full[np.searchsorted(full, starts)]
    arrays = np.add.reduceat(found, starts), peaks, at
    return tuple(array.astype(np.int64) for array in arrays)


class Made:
    """Counts the results of a site's partitions."""

    def __init__(self, maps: Mapping[str, PartitionMap]) -> None:
        self._maps = maps
        self._by_slot: dict[str, np.ndarray] = {}

    def add(self, exchange: str, locators: np.ndarray) -> None:
        """Takes in results of an operator behind an exchange."""
        slots = slot_of_locator(locators).view(np.int64)
        counts = np.bincount(slots, minlength=self._maps[exchange].slots)
        self._by_slot[exchange] = self._by_slot.get(exchange, 0) + counts

    def of(self, site: int) -> dict[str, bytes]:
        """The results of each partition of a site, by exchange."""
        found = {}
        for exchange, counts in self._by_slot.items():
            known = self._maps[exchange]
            each = np.add.reduceat(counts, np.asarray(known.starts))
            found[exchange] = each[known.partitions_of(site)].astype(np.int64).tobytes()
        return found


def added(counts: Sequence[Counts]) -> Counts:
    """What all senders sent; the fullest slot is that of the sender who sent most."""
    rows, peaks, slots = (
        np.stack([np.frombuffer(getattr(one, name), dtype=np.int64) for one in counts])
        for name in ("rows", "peak_rows", "peak_slot")
    )
    chosen = slots[peaks.argmax(axis=0), np.arange(peaks.shape[1])]
    together = np.where(slots == chosen, peaks, 0).sum(axis=0)
    return Counts(*(array.tobytes() for array in (rows.sum(axis=0), together, chosen)))


def together(
    arrived: Mapping[int, Counts], known: PartitionMap
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What came to each partition: its rows, those of its fullest slot, and that slot."""
    arrays = tuple(np.zeros(known.partitions, dtype=np.int64) for _ in range(3))
    for site, counts in arrived.items():
        mine = known.partitions_of(site)
        for array, own in zip(
            arrays, (counts.rows, counts.peak_rows, counts.peak_slot), strict=True
        ):
            array[mine] = np.frombuffer(own, dtype=np.int64)
    return arrays  # type: ignore[return-value]


def made(counts: Mapping[int, bytes], known: PartitionMap) -> np.ndarray:
    """The results of each partition, of what each site has told."""
    found = np.zeros(known.partitions, dtype=np.int64)
    for site, own in counts.items():
        found[known.partitions_of(site)] = np.frombuffer(own, dtype=np.int64)
    return found
