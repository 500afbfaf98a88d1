"""Pins: partitions that stay on the site the user chose, whatever the controller sees."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anabranch.routing.partition_map import PartitionMap


class Pins(dict[tuple[str, int], int]):
    """The site of each pinned partition, told by its exchange and first slot."""

    @classmethod
    def recorded(cls, record: Mapping[str, Mapping[int, int]]) -> Pins:
        """The pins as a manifest has them."""
        return cls(
            ((home, start), site)
            for home, pinned in record.items()
            for start, site in pinned.items()
        )

    def by_exchange(self) -> dict[str, dict[int, int]]:
        """The site of each first slot, by exchange."""
        found: dict[str, dict[int, int]] = {}
        for (home, start), site in list(self.items()):
            found.setdefault(home, {})[start] = site
        return found

    def cut(self, maps: Mapping[str, PartitionMap]) -> dict[str, PartitionMap]:
        """The maps with a partition that begins wherever a pinned one does."""
        found = dict(maps)
        for home, start in self:
            if home in found and start < found[home].slots:
                found[home] = found[home].split(start)
        return found

    def keep(self, maps: Mapping[str, PartitionMap], alive: np.ndarray) -> dict[str, PartitionMap]:
        """The maps with pinned partitions on their sites, where these live."""
        kept = dict(maps)
        for home, pinned in self.by_exchange().items():
            if home in kept:
                here = {
                    at: site for at, site in pinned.items() if site < len(alive) and alive[site]
                }
                kept[home] = kept[home].moved(here)
        return kept
