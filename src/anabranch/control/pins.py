"""Pins: partitions that stay on the site the user chose, whatever the controller sees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anabranch.adapt.policies.shares import Owners
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.manifest import Manifest


class Pins(dict[tuple[str, int], int]):
    """The site of each pinned partition, told by its exchange and first slot."""

    @classmethod
    def recorded(cls, manifest: Manifest) -> Pins:
        """The pins as a manifest has them."""
        return cls(
            ((exchange, start), site)
            for exchange, record in manifest.exchanges.items()
            for start, site in record.pins.items()
        )

    def by_exchange(self) -> dict[str, dict[int, int]]:
        """The site of each first slot, by exchange."""
        found: dict[str, dict[int, int]] = {}
        for (exchange, start), site in list(self.items()):
            found.setdefault(exchange, {})[start] = site
        return found

    def cut(self, maps: Mapping[str, PartitionMap]) -> dict[str, PartitionMap]:
        """The maps with a partition that begins wherever a pinned one does."""
        found = dict(maps)
        for exchange, start in self:
            if exchange in found and start < found[exchange].slots:
                found[exchange] = found[exchange].split(start)
        return found

    def keep(self, maps: Mapping[str, PartitionMap], alive: np.ndarray) -> dict[str, PartitionMap]:
        """The maps with pinned partitions on their sites, where these live."""
        kept = dict(maps)
        for exchange, here in self._living(alive).items():
            if exchange in kept:
                kept[exchange] = kept[exchange].moved(here)
        return kept

    def keep_owners(
        self, owners: Owners, maps: Mapping[str, PartitionMap], alive: np.ndarray
    ) -> Owners:
        """The same of the sites of partitions as these maps cut them."""
        kept = dict(owners)
        for exchange, here in self._living(alive).items():
            if exchange in kept:
                own = kept[exchange] = kept[exchange].copy()
                for at, site in here.items():
                    number = maps[exchange].partition_at(at)
                    if maps[exchange].starts[number] == at:
                        own[number] = site
        return kept

    def _living(self, alive: np.ndarray) -> dict[str, dict[int, int]]:
        """The pins to sites that live, by exchange."""
        return {
            exchange: {at: s for at, s in pinned.items() if s < len(alive) and alive[s]}
            for exchange, pinned in self.by_exchange().items()
        }
