"""Slot -> partition -> site: who works on which range of the hash space. Immutable; a change is a new map.

Slot i of S holds the hashes with i*2^64/S <= H < (i+1)*2^64/S, decided on the upper 32 bits, so that the
borders are the same on every machine. A partition is a range of slots, so it can be split and merged
without touching a row. A locator puts the slot in the upper 16 bits, before the lower 48 bits of the
operator key's hash (the upper ones often repeat the slot): rows sorted by locator are grouped by slot,
and so by partition.
"""

from __future__ import annotations

import heapq
import math
import operator
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from anabranch.errors import PlanningError

MAX_SLOTS = 1 << 16
SLOTS_PER_PARTITION = 64
"""How often a partition can be cut, where there are not too many of them."""
ROOM_FOR_CELLS = 1 << 12
"""Slots that are left for the cells of scattered ones."""
_SHIFT_32 = np.uint64(32)
_SHIFT_48 = np.uint64(48)
_LOWER_48 = np.uint64((1 << 48) - 1)


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
    def _owners(self) -> np.ndarray:
        """The site of each slot."""
        return np.repeat(np.asarray(self.sites, dtype=np.uint16), self.widths)

    @property
    def widths(self) -> np.ndarray:
        """The slots of each partition."""
        return np.diff([*self.starts, self.slots])

    def owned_by(self, site: int) -> list[tuple[int, int]]:
        """The ranges of slots of a site, as [first, end) pairs."""
        return ranges_where(self._owners == site)

    def partitions_of(self, site: int) -> np.ndarray:
        """The numbers of a site's partitions, in order."""
        order, edges = self._by_site
        return order[edges[site] : edges[site + 1]] if site + 1 < len(edges) else order[:0]

    @cached_property
    def _by_site(self) -> tuple[np.ndarray, np.ndarray]:
        """The partitions, site by site, and where in that order each site begins."""
        sites = np.asarray(self.sites)
        order = np.argsort(sites, kind="stable")
        return order, np.concatenate([[0], np.cumsum(np.bincount(sites))])

    def site_of(self, slots: np.ndarray) -> np.ndarray:
        return np.take(self._owners, slots)

    def partition_at(self, slot: int) -> int:
        """The number of the partition that a slot belongs to."""
        return bisect_right(self.starts, slot) - 1

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

    def with_cells(self, sites: Sequence[int]) -> PartitionMap:
        """With a cell on each of these sites, after all other slots."""
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


def place_lanes(known: Mapping[str, int], lanes: Iterable[str], slots: int) -> dict[str, int]:
    """The slot of each lane: known ones stay, the first ones lie evenly, later ones between them.

    >>> first = place_lanes({}, ["a", "b", "c"], 12)
    >>> first, place_lanes(first, ["b", "d"], 12)["d"]
    ({'a': 0, 'b': 4, 'c': 8}, 2)
    """
    new = [lane for lane in lanes if lane not in known]
    if not known:
        return {lane: at * slots // len(new) for at, lane in enumerate(new)}
    placed = dict(known)
    for lane in new:
        taken = sorted({*placed.values(), slots})
        ends = [*taken[1:], taken[0] + slots]
        gap, start = max((end - start, -start) for start, end in zip(taken, ends, strict=True))
        placed[lane] = (-start + gap // 2) % slots
    return placed


def slot_of(hashes: np.ndarray, slots: int) -> np.ndarray:
    """The slot of each 64-bit hash."""
    return ((hashes >> _SHIFT_32) * np.uint64(slots)) >> _SHIFT_32


def in_turn(rows: int, slots: int) -> np.ndarray:
    """A slot for each of so many rows, such that few rows too lie evenly over all slots.

    >>> in_turn(4, 8).tolist()
    [0, 5, 2, 7]
    """
    # The golden section spreads any number of turns evenly
    stride = max(1, round(slots * 0.6180339887))
    while math.gcd(stride, slots) != 1:
        stride += 1
    return (np.arange(rows, dtype=np.uint64) * np.uint64(stride)) % np.uint64(slots)


def locator(slots: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The 64-bit sort key of state rows: slot, then the key's hash."""
    return (slots << _SHIFT_48) | (hashes & _LOWER_48)


def slot_of_locator(locators: np.ndarray) -> np.ndarray:
    return locators >> _SHIFT_48


def sort_locators(locators: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order that sorts locators, rows with the same one as they came; and the sorted locators.

    Sorting words is four times faster than sorting positions, so each word carries its position in its
    lower bits. That blurs locators that differ only there; the few it leaves out of order are mended.
    """
    bits = max(1, (len(locators) - 1).bit_length())
    mask = np.uint64((1 << bits) - 1)
    words = locators & ~mask
    words |= np.arange(len(locators), dtype=np.uint64)
    words.sort()
    order: np.ndarray = (words & mask).view(np.int64)
    ordered = locators[order]
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    if len(wrong):
        blurred = distinct(words[wrong] & ~mask)
        start, end = (
            np.searchsorted(words, blurred),
            np.searchsorted(words, blurred | mask, "right"),
        )
        where = expand(start, end - start)
        order[where] = order[where][
            np.lexsort((order[where], ordered[where], words[where] & ~mask))
        ]
        ordered[where] = locators[order[where]]
    return order, ordered


def distinct(values: np.ndarray) -> np.ndarray:
    """The values in order, each once. (`numpy.unique` hashes them, which takes far longer.)

    >>> distinct(np.array([3, 1, 3, 2])).tolist()
    [1, 2, 3]
    """
    # A stable sort finds the runs that are sorted already, and only merges them
    ordered = np.sort(values, kind="stable")
    found: np.ndarray = ordered[changes(ordered)]
    return found


def changes(ordered: np.ndarray) -> np.ndarray:
    """Whether each value differs from the one before it; the first one does."""
    differs = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return differs


def expand(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """The concatenation of the ranges [start, start + length)."""
    ends = np.cumsum(length)
    shift: np.ndarray = np.repeat(start - (ends - length), length)
    shift += np.arange(len(shift))
    return shift


def row_ranges(locators: np.ndarray, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Row ranges of these ranges of slots in an array sorted by locator, empty ones left out."""
    edges = [edge for pair in wanted for edge in pair]
    lower = np.array([edge << 48 for edge in edges if edge < MAX_SLOTS], dtype=np.uint64)
    found = np.searchsorted(locators, lower).tolist()
    # 2^16 << 48 does not fit in 64 bits: the end of the last slot is the end of the array
    found += [len(locators)] * (len(edges) - len(found))
    pairs = zip(found[0::2], found[1::2], strict=True)
    return [(start, end) for start, end in pairs if end > start]


def ranges_where(chosen: np.ndarray) -> list[tuple[int, int]]:
    """The positions that are True, as [first, end) ranges.

    >>> ranges_where(np.array([False, True, True, False, True]))
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([0], chosen.astype(np.int8), [0])))).tolist()
    return list(zip(edges[0::2], edges[1::2], strict=True))


def intersect(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What is in both of two sorted lists of ranges."""
    result = []
    at = other = 0
    while at < len(left) and other < len(right):
        (a, b), (c, d) = left[at], right[other]
        if max(a, c) < min(b, d):
            result.append((max(a, c), min(b, d)))
        if b < d:
            at += 1
        else:
            other += 1
    return result


def subtract(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What of the first list of ranges is not in the second.

    >>> subtract([(0, 4), (6, 9)], [(1, 2), (3, 7)])
    [(0, 1), (2, 3), (7, 9)]
    """
    result = []
    gone, other = sorted(right), 0
    for a, b in sorted(left):
        while other < len(gone) and gone[other][1] <= a:
            other += 1
        at = other
        while at < len(gone) and gone[at][0] < b:
            if a < gone[at][0]:
                result.append((a, gone[at][0]))
            a = max(a, gone[at][1])
            at += 1
        if a < b:
            result.append((a, b))
    return result
