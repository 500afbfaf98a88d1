"""Sites for the exchanges of a plan, in proportion to what each costs (StreamCloud's instantiator).

The sites are laid out as a line, and the exchanges one after another on it, each as long as its share of
the cost. A site on a border serves two exchanges, in proportion: no capacity is lost to rounding, which
the paper names as the main loss of giving whole nodes to operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from anabranch.adapt.actions import Allot
from anabranch.routing.partition_map import PartitionMap

Owners: TypeAlias = Mapping[str, np.ndarray]
"""The site of each partition, by exchange."""


def propose_shares(
    costs: Mapping[str, float], maps: Mapping[str, PartitionMap], sites: int, threshold: float,
    whole: bool, pinned: Callable[[Owners], Owners],
) -> Iterator[Allot]:  # fmt: skip
    """Other sites for the exchanges that share them, where the busiest has so much too much to do.

    `whole` gives each exchange sites of its own; `pinned` puts back what must stay where it is.
    """
    owners = {exchange: maps[exchange].owners for exchange in costs}
    counts = {exchange: len(own) for exchange, own in owners.items()}
    wanted = pinned((allot_whole if whole else allot)(costs, counts, sites))
    before, after = (busiest(costs, some, sites) for some in (owners, wanted))
    # Fewer sites mean fewer frames and files; one more or less is not worth a move
    wasteful = any(_span(owners[name]) > _span(wanted[name]) + 1 for name in costs)
    if not wasteful and before <= after * threshold:
        return
    total = sum(costs.values())
    for exchange, cost in costs.items():
        if (wanted[exchange] != owners[exchange]).any():
            cause = f"shares: {cost / total:.0%} of what its level costs"
            yield Allot(exchange, 0, cause, sites=tuple(wanted[exchange].tolist()))


def allot(
    costs: Mapping[str, float], counts: Mapping[str, int], sites: int
) -> dict[str, np.ndarray]:
    """Other sites for every exchange that has a cost and so many partitions.

    >>> owners = allot({"heavy": 3.0, "light": 1.0}, {"heavy": 6, "light": 2}, 2)
    >>> owners["heavy"].tolist(), owners["light"].tolist()
    ([0, 0, 0, 0, 1, 1], [1, 1])
    """
    total = sum(costs.values())
    found: dict[str, np.ndarray] = {}
    start = 0.0
    for name, cost in costs.items():
        length = cost / total * sites
        places = start + (np.arange(counts[name]) + 0.5) * length / counts[name]
        found[name] = np.minimum(places.astype(int), sites - 1)
        start += length
    return found


def allot_whole(
    costs: Mapping[str, float], counts: Mapping[str, int], sites: int
) -> dict[str, np.ndarray]:
    """Other sites for every exchange, whole ones of its own, as long as there are enough.

    >>> allot_whole({"heavy": 3.0, "light": 1.0}, {"heavy": 4, "light": 2}, 4)["heavy"].tolist()
    [0, 1, 1, 2]
    """
    total = sum(costs.values())
    found: dict[str, np.ndarray] = {}
    start = 0
    for name, cost in costs.items():
        own = max(1, int(cost / total * sites))
        places = start + (np.arange(counts[name]) + 0.5) * own / counts[name]
        found[name] = places.astype(int) % sites
        start += own
    return found


def busiest(costs: Mapping[str, float], owners: Owners, sites: int) -> float:
    """What the busiest site has to do if partitions are on these sites."""
    loads = np.zeros(sites)
    for name, cost in costs.items():
        own = owners[name]
        loads += np.bincount(own, minlength=sites) * cost / len(own)
    return float(loads.max())


def _span(owners: np.ndarray) -> int:
    """The number of sites that have partitions."""
    return int(np.count_nonzero(np.bincount(owners)))
