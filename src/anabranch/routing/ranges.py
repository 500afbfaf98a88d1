"""Lists of [first, end) ranges, of slots or of rows: what is in both, what is left, what they cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MANY = 24
"""Ranges from which on they are not looked at one by one."""


def expand(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """The concatenation of the ranges [start, start + length)."""
    ends = np.cumsum(length)
    shift: np.ndarray = np.repeat(start - (ends - length), length)
    shift += np.arange(len(shift))
    return shift


def ranges_where(chosen: np.ndarray) -> list[tuple[int, int]]:
    """The positions that are True, as [first, end) ranges.

    >>> ranges_where(np.array([False, True, True, False, True]))
    [(1, 3), (4, 5)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([0], chosen.astype(np.int8), [0])))).tolist()
    return list(zip(edges[0::2], edges[1::2], strict=True))


def ranges_of(positions: np.ndarray) -> list[tuple[int, int]]:
    """Sorted positions as [first, end) ranges.

    >>> ranges_of(np.array([1, 2, 4]))
    [(1, 3), (4, 5)]
    """
    gaps = np.flatnonzero(np.diff(positions) != 1)
    firsts = positions[np.concatenate(([0], gaps + 1))] if len(positions) else positions
    lasts = positions[np.concatenate((gaps, [len(positions) - 1]))] if len(positions) else positions
    return list(zip(firsts.tolist(), (lasts + 1).tolist(), strict=True))


def intersect(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What is in both of two sorted lists of ranges."""
    if len(left) + len(right) > MANY:
        return _intersect_many(np.asarray(left), np.asarray(right)) if left and right else []
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


def _intersect_many(left: np.ndarray, right: np.ndarray) -> list[tuple[int, int]]:
    (a, b), (c, d) = left.T, right.T
    # Each meets those from the first that ends behind its beginning to the last that begins before its end
    first = np.searchsorted(d, a, "right")
    count = np.maximum(np.searchsorted(c, b, "left") - first, 0)
    mine, other = np.repeat(np.arange(len(a)), count), expand(first, count)
    begins, ends = np.maximum(a[mine], c[other]), np.minimum(b[mine], d[other])
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def union(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What is in one of two lists of ranges, or in both.

    >>> union([(0, 2), (6, 9)], [(2, 4), (5, 7)])
    [(0, 4), (5, 9)]
    """
    if len(left) + len(right) > MANY:
        return _union_many(np.asarray([*left, *right]))
    result: list[tuple[int, int]] = []
    for first, end in sorted([*left, *right]):
        if result and first <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((first, end))
    return result


def _union_many(ranges: np.ndarray) -> list[tuple[int, int]]:
    first, end = ranges[np.argsort(ranges[:, 0], kind="stable")].T
    reached = np.maximum.accumulate(end)
    begins = np.flatnonzero(np.concatenate(([True], first[1:] > reached[:-1])))
    ends = reached[np.concatenate((begins[1:], [len(first)])) - 1]
    return list(zip(first[begins].tolist(), ends.tolist(), strict=True))


def subtract(
    left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """What of the first list of ranges is not in the second.

    >>> subtract([(0, 4), (6, 9)], [(1, 2), (3, 7)])
    [(0, 1), (2, 3), (7, 9)]
    """
    if not left or not right:
        return sorted((a, b) for a, b in left if a < b)
    if len(left) + len(right) > MANY:
        return _subtract_many(np.asarray(left), np.asarray(right))
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


def _subtract_many(left: np.ndarray, right: np.ndarray) -> list[tuple[int, int]]:
    a, b = left[np.lexsort((left[:, 1], left[:, 0]))].T
    c, d = right[np.argsort(right[:, 0], kind="stable")].T
    if (c[1:] < d[:-1]).any():
        return _subtract_many(left, np.asarray(_union_many(right)))
    first = np.searchsorted(d, a, "right")
    count = np.maximum(np.searchsorted(c, b, "left") - first, 0)
    # What is left lies before, between and behind those that each meets
    pieces = expand(np.zeros(len(a), dtype=np.int64), count + 1)
    mine = np.repeat(np.arange(len(a)), count + 1)
    met = first[mine] + pieces
    begins = np.where(pieces == 0, a[mine], d[np.maximum(met - 1, 0)])
    ends = np.where(pieces == count[mine], b[mine], c[np.minimum(met, len(c) - 1)])
    some = begins < ends
    return list(zip(begins[some].tolist(), ends[some].tolist(), strict=True))
