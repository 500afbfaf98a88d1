"""Sites for the exchanges of a plan, in proportion to what each costs (StreamCloud's instantiator).

The sites are laid out as a line, and the exchanges one after another on it, each as long as its share of
the cost. A site on a border serves two exchanges, in proportion: no capacity is lost to rounding, which
the paper names as the main loss of giving whole nodes to operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from anabranch.adapt.actions import Allot
from anabranch.routing.partition_map import PartitionMap

Maps = Mapping[str, PartitionMap]


def propose_shares(
    costs: Mapping[str, float], maps: Maps, sites: int, threshold: float, whole: bool,
    pinned: Callable[[Maps], Maps],
) -> Iterator[Allot]:  # fmt: skip
    """Other sites for the exchanges that share them, where the busiest has so much too much to do.

    `whole` gives each exchange sites of its own; `pinned` puts back what must stay where it is.
    """
    wanted = pinned((allot_whole if whole else allot)(costs, maps, sites))
    before, after = (busiest(costs, some, sites) for some in (maps, wanted))
    spans = ((maps[exchange].span, wanted[exchange].span) for exchange in costs)
    # Fewer sites mean fewer frames and files; one more or less is not worth a move
    wasteful = any(now > needed + 1 for now, needed in spans)
    if not wasteful and before <= after * threshold:
        return
    total = sum(costs.values())
    for exchange, cost in costs.items():
        if wanted[exchange] != maps[exchange]:
            cause = f"shares: {cost / total:.0%} of what its level costs"
            yield Allot(exchange, 0, cause, sites=wanted[exchange].sites)


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
