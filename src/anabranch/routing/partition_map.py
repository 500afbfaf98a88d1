"""Partition -> site: who works on which range of the hash space. Immutable; a change is a new map.

A partition is a range of slots (`locator.py`), so it can be split and merged without touching a row.
"""

from __future__ import annotations

import heapq
import operator
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from anabranch.errors import PlanningError
from anabranch.routing.locator import MAX_SLOTS
from anabranch.routing.ranges import ranges_where

SLOTS_PER_PARTITION = 64
"""How often a partition can be cut, where there are not too many of them."""
ROOM_FOR_CELLS = 1 << 12
"""Slots that are left for the cells of scattered ones."""


@dataclass(frozen=True)
class PartitionMap:
    """`sites[n]` is the site of the n-th partition, which begins at slot `starts[n]`.

    Without starts every slot is a partition.

    >>> PartitionMap((0, 1), starts=(0, 4), slots=6).owned_by(1)
    [(4, 6)]
    """

    sites: tuple[int, ...]
    starts: tuple[int, ...] = ()
    slots: int = 0
    cells: int = 0
    """How many slots at the end no hash leads to: rows of scattered slots meet in them."""

    def __post_init__(self) -> None:
        if not self.starts:
            object.__setattr__(self, "starts", tuple(range(len(self.sites))))
            object.__setattr__(self, "slots", self.slots or len(self.sites))
        if not (1 <= len(self.sites) <= self.slots <= MAX_SLOTS):
            raise PlanningError(
                f"Expected 1 to {MAX_SLOTS} partitions, got {len(self.sites)} in {self.slots} slots."
            )
        ordered = all(a < b for a, b in pairwise((*self.starts, self.slots)))
        if len(self.starts) != len(self.sites) or self.starts[0] != 0 or not ordered:
            raise PlanningError("Partitions must cover all slots, each once, in order.")

    def __getstate__(self) -> dict[str, object]:
        # What is told to tasks is the map, not what has been made of it here
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def partitions(self) -> int:
        return len(self.sites)

    @property
    def hashed(self) -> int:
        """The slots that hashes lead to."""
        return self.slots - self.cells

    @property
    def span(self) -> int:
        """The number of sites that have partitions."""
        return len(set(self.sites))

    @cached_property
    def owners(self) -> np.ndarray:
        """The site of each partition."""
        return np.asarray(self.sites, dtype=np.int64)

    @cached_property
    def _by_slot(self) -> np.ndarray:
        """The site of each slot."""
        return np.repeat(self.owners.astype(np.uint16), self.widths)

    @property
    def widths(self) -> np.ndarray:
        """The slots of each partition."""
        return np.diff([*self.starts, self.slots])

    def owned_by(self, site: int) -> list[tuple[int, int]]:
        """The ranges of slots of a site, as [first, end) pairs."""
        return ranges_where(self._by_slot == site)

    def partitions_of(self, site: int) -> np.ndarray:
        """The numbers of a site's partitions, in order."""
        order, edges = self._by_site
        return order[edges[site] : edges[site + 1]] if site + 1 < len(edges) else order[:0]

    @cached_property
    def _by_site(self) -> tuple[np.ndarray, np.ndarray]:
        """The partitions, site by site, and where in that order each site begins."""
        order = np.argsort(self.owners, kind="stable")
        return order, np.concatenate([[0], np.cumsum(np.bincount(self.owners))])

    def site_of(self, slots: np.ndarray) -> np.ndarray:
        return np.take(self._by_slot, slots)

    def with_some_of(self, slots: np.ndarray) -> np.ndarray:
        """The first slots of the partitions that have some of these slots, in order.

        >>> PartitionMap((0, 1), starts=(0, 4), slots=6).with_some_of(np.array([4, 5])).tolist()
        [4]
        """
        chosen = np.zeros(self.slots, dtype=bool)
        chosen[slots] = True
        starts = np.asarray(self.starts)
        found: np.ndarray = starts[np.logical_or.reduceat(chosen, starts)]
        return found

    def partition_at(self, slot: int) -> int:
        """The number of the partition that a slot belongs to."""
        return bisect_right(self.starts, slot) - 1

    def site_at(self, slot: int) -> int:
        """The site that has this slot."""
        return self.sites[self.partition_at(slot)]

    def _slot(self, given: object) -> int:
        """What was given for a slot, if it is one."""
        if not isinstance(given, (int, np.integer)) or not 0 <= given < self.slots:
            raise PlanningError(
                f"There is no slot {given!r:.100}; expected a whole number from 0 to {self.slots - 1}."
            )
        return int(given)

    def range_at(self, slot: int) -> tuple[int, int]:
        """The slots [first, end) of the partition that a slot belongs to."""
        number = self.partition_at(slot)
        end = self.starts[number + 1] if number + 1 < self.partitions else self.slots
        return self.starts[number], end

    def on(self, sites: Sequence[int]) -> PartitionMap:
        """The same partitions on these sites."""
        try:
            numbers = tuple(operator.index(site) for site in sites)
        except TypeError as error:
            raise PlanningError(
                f"Expected a list of sites by number, got {sites!r:.100}."
            ) from error
        for number in numbers:
            if not 0 <= number < MAX_SLOTS:
                raise PlanningError(f"There is no site {number}; sites are counted from 0.")
        return replace(self, sites=numbers)

    def moved(self, targets: Mapping[int, int]) -> PartitionMap:
        """With partitions, told by their first slots, on other sites."""
        if not isinstance(targets, Mapping):
            raise PlanningError(
                f"Expected a mapping of first slots to sites, got {targets!r:.100}."
            )
        return self.on([targets.get(at, s) for at, s in zip(self.starts, self.sites, strict=True)])

    def respread(self, sites: Sequence[int]) -> PartitionMap:
        """Over these sites alone, each with about as many slots, moving few of them.

        >>> even_map(6, 2).respread([0, 1, 2]).sites
        (0, 0, 2, 1, 1, 2)
        """
        widths, owners = self.widths.tolist(), list(self.sites)
        own: dict[int, list[int]] = {site: [] for site in sites}
        homeless: list[int] = []
        for number, site in enumerate(owners):
            own.get(site, homeless).append(number)
        share = self.slots / len(own)
        loads = {site: sum(widths[number] for number in some) for site, some in own.items()}
        for site, some in own.items():
            # The last ones leave, as long as enough is left
            while some and loads[site] - widths[some[-1]] >= share:
                loads[site] -= widths[some[-1]]
                homeless.append(some.pop())
        emptiest = [(load, site) for site, load in loads.items()]
        heapq.heapify(emptiest)
        for number in sorted(homeless, key=lambda number: -widths[number]):
            load, site = emptiest[0]
            owners[number] = site
            heapq.heapreplace(emptiest, (load + widths[number], site))
        return self.on(owners)

    def split(self, at: int) -> PartitionMap:
        """With the partition around a slot cut in two there; both stay on its site."""
        number = self.partition_at(self._slot(at))
        if self.starts[number] == at:
            return self
        starts = (*self.starts[: number + 1], at, *self.starts[number + 1 :])
        sites = (*self.sites[: number + 1], *self.sites[number:])
        return replace(self, sites=sites, starts=starts)

    def merged(self, at: int) -> PartitionMap:
        """With the partition that begins at a slot joined to the one before it, on that one's site."""
        number = self.partition_at(self._slot(at))
        if number == 0 or self.starts[number] != at:
            return self
        keep = [n for n in range(self.partitions) if n != number]
        return replace(
            self,
            sites=tuple(self.sites[n] for n in keep),
            starts=tuple(self.starts[n] for n in keep),
        )

    def with_cells(self, sites: Sequence[int], first: int | None = None) -> PartitionMap:
        """With a cell on each of these sites, after all other slots, or from one of the cells on.

        >>> even_map(2, 2).with_cells([0, 1, 0]).with_cells([1, 1], first=3).sites
        (0, 1, 0, 1, 1)
        """
        if first is not None and first < self.slots:
            known = self
            for cell in range(first, min(first + len(sites) + 1, self.slots)):
                known = known.split(cell)
            return known.moved(dict(enumerate(sites, first)))
        more = tuple(range(self.slots, self.slots + len(sites)))
        return PartitionMap(
            (*self.sites, *sites), (*self.starts, *more), self.slots + len(sites),
            self.cells + len(sites),
        )  # fmt: skip


def even_map(partitions: int, sites: int, slots: int = 0) -> PartitionMap:
    """Each site gets an equal run of neighbouring partitions, of equal length.

    >>> even_map(4, 2).sites
    (0, 0, 1, 1)
    """
    if not 1 <= partitions <= MAX_SLOTS:
        raise PlanningError(
            f"{sites} sites would have {partitions} partitions together; there may be 1 to {MAX_SLOTS}: "
            "ask for fewer sites, or for a smaller partitions_per_site."
        )
    slots = slots or partitions
    starts = tuple(p * slots // partitions for p in range(partitions))
    return PartitionMap(tuple(p * sites // partitions for p in range(partitions)), starts, slots)


def slots_for(partitions: int) -> int:
    """How many slots so many partitions are made of at first."""
    room = MAX_SLOTS - ROOM_FOR_CELLS
    return partitions * max(1, min(SLOTS_PER_PARTITION, room // partitions))
