"""Partition -> site: who works on which range of the hash space. Immutable; a change is a new map.

Partition i of P holds the hashes with i*2^64/P <= H < (i+1)*2^64/P, decided on the upper 32 bits,
so that the borders are the same on every machine. A locator puts the partition in the upper 16 bits,
before the lower 48 bits of the operator key's hash (the upper ones often repeat the partition): rows
sorted by locator are grouped by partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.errors import PlanningError

MAX_PARTITIONS = 1 << 16
_SHIFT_32 = np.uint64(32)
_SHIFT_48 = np.uint64(48)
_LOWER_48 = np.uint64((1 << 48) - 1)


@dataclass(frozen=True)
class PartitionMap:
    """`sites[p]` is the site of partition p."""

    sites: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.sites) <= MAX_PARTITIONS:
            raise PlanningError(
                f"Expected 1 to {MAX_PARTITIONS} partitions, got {len(self.sites)}."
            )

    @property
    def partitions(self) -> int:
        return len(self.sites)

    @property
    def span(self) -> int:
        """The number of sites that have partitions."""
        return len(set(self.sites))

    def owned_by(self, site: int) -> list[tuple[int, int]]:
        """The ranges of partitions of a site, as [first, end) pairs."""
        return ranges(p for p, owner in enumerate(self.sites) if owner == site)

    def site_of(self, partitions: np.ndarray) -> np.ndarray:
        owners: np.ndarray = np.asarray(self.sites, dtype=np.uint16)
        return np.take(owners, partitions)


def even_map(partitions: int, sites: int) -> PartitionMap:
    """Each site gets an equal run of neighbouring partitions.

    >>> even_map(4, 2).sites
    (0, 0, 1, 1)
    """
    return PartitionMap(tuple(p * sites // partitions for p in range(partitions)))


def place_lanes(known: Mapping[str, int], lanes: Iterable[str], partitions: int) -> dict[str, int]:
    """The partition of each lane: known ones stay, the first ones lie evenly, later ones between them.

    >>> first = place_lanes({}, ["a", "b", "c"], 12)
    >>> first, place_lanes(first, ["b", "d"], 12)["d"]
    ({'a': 0, 'b': 4, 'c': 8}, 2)
    """
    new = [lane for lane in lanes if lane not in known]
    if not known:
        return {lane: at * partitions // len(new) for at, lane in enumerate(new)}
    placed = dict(known)
    for lane in new:
        taken = sorted({*placed.values(), partitions})
        ends = [*taken[1:], taken[0] + partitions]
        gap, start = max((end - start, -start) for start, end in zip(taken, ends, strict=True))
        placed[lane] = (-start + gap // 2) % partitions
    return placed


def partition_of(hashes: np.ndarray, partitions: int) -> np.ndarray:
    """The partition of each 64-bit hash."""
    return ((hashes >> _SHIFT_32) * np.uint64(partitions)) >> _SHIFT_32


def locator(partitions: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The 64-bit sort key of state rows: partition, then the key's hash."""
    return (partitions << _SHIFT_48) | (hashes & _LOWER_48)


def partition_of_locator(locators: np.ndarray) -> np.ndarray:
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


def slices(locators: np.ndarray, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Row ranges of these partition ranges in an array sorted by locator, empty ones left out."""
    edges = [edge for pair in wanted for edge in pair]
    lower = np.array([edge << 48 for edge in edges if edge < MAX_PARTITIONS], dtype=np.uint64)
    found = np.searchsorted(locators, lower).tolist()
    # 2^16 << 48 does not fit in 64 bits: the end of the last partition is the end of the array
    found += [len(locators)] * (len(edges) - len(found))
    pairs = zip(found[0::2], found[1::2], strict=True)
    return [(start, end) for start, end in pairs if end > start]


def ranges(partitions: Iterable[int]) -> list[tuple[int, int]]:
    """Sorted partitions as [first, end) ranges.

    >>> ranges([1, 2, 5])
    [(1, 3), (5, 6)]
    """
    result: list[tuple[int, int]] = []
    for partition in sorted(partitions):
        if result and result[-1][1] == partition:
            result[-1] = (result[-1][0], partition + 1)
        else:
            result.append((partition, partition + 1))
    return result


def intersect(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The partitions in both lists of ranges."""
    result = []
    for a, b in left:
        for c, d in right:
            if max(a, c) < min(b, d):
                result.append((max(a, c), min(b, d)))
    return sorted(result)


def subtract(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The partitions of the first list of ranges that are not in the second."""
    result = list(left)
    for c, d in right:
        result = [
            piece
            for a, b in result
            for piece in ((a, min(b, c)), (max(a, d), b))
            if piece[0] < piece[1]
        ]
    return sorted(result)
