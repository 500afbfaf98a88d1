"""How often rows come for each partition: groups, how popular they are, and which partition has them."""

from __future__ import annotations

import math

import numpy as np

GROUPS = 16_384


def even(partitions: int) -> np.ndarray:
    """All groups alike, and as many in each partition."""
    return np.full(partitions, 1 / partitions)


def skewed(
    partitions: int, rng: np.random.Generator, groups: int = GROUPS, top: float = 0.2
) -> np.ndarray:
    """80/20: the first 20% of the groups have 80% of the rows, 20% of these 80% of that, and so on.

    Groups lie in partitions at random, as many in each.

    >>> chances = skewed(2048, np.random.default_rng(1))
    >>> bool(0.25 < chances.max() < 0.30), round(float(chances.sum()), 6)
    (True, 1.0)
    """
    exponent = math.log(1 - top) / math.log(top)
    share = np.diff((np.arange(groups + 1) / groups) ** exponent)
    place = rng.permutation(np.arange(groups) % partitions)
    return np.bincount(place, weights=share, minlength=partitions)
