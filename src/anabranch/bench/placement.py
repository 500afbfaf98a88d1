"""Placements by hand: what a partitioning could do at best, from perfect knowledge of loads and sites."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import slot_of
from anabranch.routing.partition_map import PartitionMap


def loads_of(keys: pl.Series, known: PartitionMap) -> np.ndarray:
    """The rows of each partition, for a subquery whose partitions follow the hash of this column."""
    slots = slot_of(hash_columns([keys], len(keys)), known.slots)
    rows = np.bincount(slots.view(np.int64), minlength=known.slots)
    found: np.ndarray = np.add.reduceat(rows, np.asarray(known.starts))
    return found


def place_by_load(loads: np.ndarray, sites: Sequence[int], slowness: np.ndarray) -> list[int]:
    """The best site of each partition, where no site has to give more than it has too much.

    A site keeps its partitions, the largest first, up to what it should have at its speed. All others go
    where they are done soonest, the largest first (LPT).

    >>> place_by_load(np.array([1, 4, 2, 3]), [0, 0, 0, 1], np.array([1.0, 1.0]))
    [0, 0, 1, 1]
    """
    placed = list(sites)
    fair = loads.sum() / (1 / slowness).sum()
    done, spare = np.zeros(len(slowness)), []
    order = np.argsort(-loads, kind="stable").tolist()
    for at in order:
        end = done[sites[at]] + loads[at] * slowness[sites[at]]
        if end <= fair:
            done[sites[at]] = end
        else:
            spare.append(at)
    for at in spare:
        placed[at] = int(np.argmin(done + loads[at] * slowness))
        done[placed[at]] += loads[at] * slowness[placed[at]]
    return placed


def busiest_over_even(loads: np.ndarray, sites: Sequence[int], slowness: np.ndarray) -> float:
    """The time of the busiest site against that of all, were the work divided without any rest."""
    each = np.bincount(sites, weights=loads, minlength=len(slowness)) * slowness
    return float(each.max() * (1 / slowness).sum() / loads.sum())
