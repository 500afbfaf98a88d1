"""Sorting arrays of 64-bit words, and what can be told of a sorted one."""

from __future__ import annotations

import numpy as np

from anabranch.routing.ranges import expand


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
