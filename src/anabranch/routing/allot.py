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
    costs: Mapping[str, float], maps: Mapping[str, PartitionMap], sites: int
) -> dict[str, PartitionMap]:
    """Another map for every exchange that has a cost.

    >>> from anabranch.routing.partition_map import even_map
    >>> even = {"heavy": even_map(6, 2), "light": even_map(2, 2)}
    >>> maps = allot({"heavy": 3.0, "light": 1.0}, even, 2)
    >>> maps["heavy"].sites, maps["light"].sites
    ((0, 0, 0, 0, 1, 1), (1, 1))
    """
    total = sum(costs.values())
    found: dict[str, PartitionMap] = {}
    start = 0.0
    for name, cost in costs.items():
        length = cost / total * sites
        count = maps[name].partitions
        places = start + (np.arange(count) + 0.5) * length / count
        found[name] = maps[name].on(np.minimum(places.astype(int), sites - 1).tolist())
        start += length
    return found


def allot_whole(
    costs: Mapping[str, float], maps: Mapping[str, PartitionMap], sites: int
) -> dict[str, PartitionMap]:
    """Another map for every exchange, on whole sites of its own, as long as there are enough.

    >>> from anabranch.routing.partition_map import even_map
    >>> even = {"heavy": even_map(4, 4), "light": even_map(2, 4)}
    >>> allot_whole({"heavy": 3.0, "light": 1.0}, even, 4)["heavy"].sites
    (0, 1, 1, 2)
    """
    total = sum(costs.values())
    found: dict[str, PartitionMap] = {}
    start = 0
    for name, cost in costs.items():
        own = max(1, int(cost / total * sites))
        count = maps[name].partitions
        places = start + (np.arange(count) + 0.5) * own / count
        found[name] = maps[name].on((places.astype(int) % sites).tolist())
        start += own
    return found


def busiest(costs: Mapping[str, float], maps: Mapping[str, PartitionMap], sites: int) -> float:
    """What the busiest site has to do under these maps."""
    loads = np.zeros(sites)
    for name, cost in costs.items():
        owners = np.asarray(maps[name].sites)
        loads += np.bincount(owners, minlength=sites) * cost / len(owners)
    return float(loads.max())
