"""Hash -> slot, and locators: where a state row lies.

Slot i of S holds the hashes with i*2^64/S <= H < (i+1)*2^64/S, decided on the upper 32 bits, so that the
borders are the same on every machine. A locator puts the slot in the upper 16 bits, before the lower 48 bits
of the operator key's hash (the upper ones often repeat the slot): rows sorted by locator are grouped by slot,
and so by partition.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from anabranch.routing.sorting import changes

MAX_SLOTS = 1 << 16
_SHIFT_32 = np.uint64(32)
_SHIFT_48 = np.uint64(48)
_LOWER_48 = np.uint64((1 << 48) - 1)


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


def runs_in_turn(arrival: np.ndarray, slots: int) -> np.ndarray:
    """The same for rows with these arrival numbers: what was made of one row stays together, in its order.

    >>> runs_in_turn(np.array([7, 7, 8, 9, 9]), 8).tolist()
    [0, 0, 5, 2, 2]
    """
    runs = np.cumsum(changes(arrival)) - 1
    found: np.ndarray = in_turn(len(arrival), slots)[runs]
    return found


def locator(slots: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    """The 64-bit sort key of state rows: slot, then the key's hash."""
    return (slots << _SHIFT_48) | (hashes & _LOWER_48)


def slot_of_locator(locators: np.ndarray) -> np.ndarray:
    return locators >> _SHIFT_48


def row_ranges(locators: np.ndarray, wanted: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Row ranges of these ranges of slots in an array sorted by locator, empty ones left out."""
    edges = [edge for pair in wanted for edge in pair]
    lower = np.array([edge << 48 for edge in edges if edge < MAX_SLOTS], dtype=np.uint64)
    found = np.searchsorted(locators, lower).tolist()
    # 2^16 << 48 does not fit in 64 bits: the end of the last slot is the end of the array
    found += [len(locators)] * (len(edges) - len(found))
    pairs = zip(found[0::2], found[1::2], strict=True)
    return [(start, end) for start, end in pairs if end > start]
