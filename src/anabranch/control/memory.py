"""The memory of the sites: what each may keep, and what of the state is not in it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

import numpy as np

from anabranch.amount import in_bytes
from anabranch.control.observed import Observed
from anabranch.control.spilling import Spilling
from anabranch.control.transitions import Subject
from anabranch.plan.exchange import Exchange
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import AUTO, Settings
from anabranch.state.manifest import Manifest
from anabranch.state.shelf import bytes_of


class Memory:
    """What sites may keep, as the setting says or as they have told, and what is put aside."""

    def __init__(self, plan: Plan, settings: Settings, sites: int, spilling: Spilling) -> None:
        self._plan, self._spilling = plan, spilling
        self._told = settings.site_memory_bytes
        self._assumed = math.inf
        self._on_disk: Mapping[str, Collection[int]] = {}
        self._too_small: set[str] = set()
        """The exchanges of which it has been told that a slot does not fit."""
        self.resize(sites)

    def assume(self, total: float) -> None:
        """What all sites together may keep, as long as they have not told."""
        if self._told == AUTO:
            self._assumed = total
            self.resize(len(self.limit))

    def resize(self, sites: int) -> None:
        """Goes on with another number of sites."""
        each = self._told if isinstance(self._told, int) else self._assumed / sites
        self.limit = np.full(sites, float(each))
        """The bytes that each site may keep."""

    def observe(self, observed: Observed) -> None:
        """Takes in what sites have told."""
        self._on_disk = observed.spilled
        self.resize(len(self.limit))
        for site, limit in observed.memory.items():
            if site < len(self.limit):
                self.limit[site] = limit

    def aside(self, exchange: str, known: PartitionMap, size: np.ndarray) -> np.ndarray:
        """The bytes of each partition, of this size, that are put aside."""
        if self._on_disk:
            gone: np.ndarray = np.isin(known.starts, list(self._on_disk.get(exchange, ()))) * size
            return gone
        known_bytes = self._spilling.aside.bytes(exchange, known)
        return np.asarray(np.minimum(known_bytes, size))

    def closing(self, exchange: Exchange, known: PartitionMap, manifest: Manifest) -> np.ndarray:
        """Whether each partition has something aside whose time has come."""
        return self._spilling.aside.closing(exchange, known, manifest)

    def since(self, exchange: str, known: PartitionMap) -> np.ndarray:
        """The epoch since which something of each partition is put aside."""
        return self._spilling.aside.since(exchange, known)

    def generations(self, exchange: str, known: PartitionMap) -> np.ndarray:
        """How many generations of each partition are put aside."""
        return self._spilling.aside.generations(exchange, known)

    @property
    def awaited(self) -> Collection[str]:
        """The exchanges for whose state, while it is put aside, rows or the time above them wait."""
        return self._spilling.awaited

    def too_small(self, manifest: Manifest, maps: Mapping[str, PartitionMap]) -> Iterator[str]:
        """Tells, once for an exchange with state aside, of a slot that has more than its site may keep."""
        for exchange in sorted(manifest.spilled.keys() - self._too_small):
            known = maps[exchange]
            shelves = [
                manifest.subqueries[member.name].shelf
                for member in self._plan.exchanges[exchange].members
                if member.name in manifest.subqueries
            ]
            size = bytes_of(shelves, np.arange(known.slots), known.slots)
            limit = self.limit[known.site_of(np.arange(known.slots))]
            beyond = np.where(size > limit, size, 0.0)
            slot = int(np.argmax(beyond))
            if beyond[slot]:
                self._too_small.add(exchange)
                yield (
                    f"Memory: slot {slot} of {exchange} alone has about {in_bytes(size[slot])}, and site "
                    f"{known.site_at(slot)} may keep {in_bytes(limit[slot])}. It goes aside again and again, "
                    "and comes together in blocks where it can. To hold it, site_memory_bytes would have "
                    f"to be {math.ceil(size[slot]):,} or more."
                )

    def never_aside(self, manifest: Manifest, under_way: Collection[Subject]) -> set[Subject | str]:
        """The partitions, and exchanges as a whole, of which nothing can be put aside now."""
        records = manifest.exchanges.items()
        return {
            *under_way,
            *(name for name, one in records if one.grid or one.scattered),
            *self._spilling.scattering.exchanges,
            *(one.name for one in self._plan.exchanges.values() if one.in_step or one.in_grid),
        }
