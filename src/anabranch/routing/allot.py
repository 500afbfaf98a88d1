"""Sites for the exchanges of a plan, in proportion to what each costs (StreamCloud's instantiator).

The sites are laid out as a line, and the exchanges one after another on it, each as long as its share of
the cost. A site on a border serves two exchanges, in proportion: no capacity is lost to rounding, which
the paper names as the main loss of giving whole nodes to operators.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anabranch.routing.partition_map import PartitionMap


def allot(
    costs: Mapping[str, float], partitions: Mapping[str, int], sites: int
) -> dict[str, PartitionMap]:
    """A map for every exchange that has a cost.

    >>> maps = allot({"heavy": 3.0, "light": 1.0}, {"heavy": 6, "light": 2}, 2)
    >>> maps["heavy"].sites, maps["light"].sites
    ((0, 0, 0, 0, 1, 1), (1, 1))
    """
    total = sum(costs.values())
    maps: dict[str, PartitionMap] = {}
    start = 0.0
    for name, cost in costs.items():
        length = cost / total * sites
        count = partitions[name]
        places = start + (np.arange(count) + 0.5) * length / count
        maps[name] = PartitionMap(tuple(np.minimum(places.astype(int), sites - 1).tolist()))
        start += length
    return maps


def allot_whole(
    costs: Mapping[str, float], partitions: Mapping[str, int], sites: int
) -> dict[str, PartitionMap]:
    """A map for every exchange, on whole sites of its own, as long as there are enough.

    >>> allot_whole({"heavy": 3.0, "light": 1.0}, {"heavy": 4, "light": 2}, 4)["heavy"].sites
    (0, 1, 1, 2)
    """
    total = sum(costs.values())
    maps: dict[str, PartitionMap] = {}
    start = 0
    for name, cost in costs.items():
        own = max(1, int(cost / total * sites))
        count = partitions[name]
        places = start + (np.arange(count) + 0.5) * own / count
        maps[name] = PartitionMap(tuple((places.astype(int) % sites).tolist()))
        start += own
    return maps


def busiest(costs: Mapping[str, float], maps: Mapping[str, PartitionMap], sites: int) -> float:
    """What the busiest site has to do under these maps."""
    loads = np.zeros(sites)
    for name, cost in costs.items():
        owners = np.asarray(maps[name].sites)
        loads += np.bincount(owners, minlength=sites) * cost / len(owners)
    return float(loads.max())
