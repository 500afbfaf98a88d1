"""What policies that pair sites have in common: the partitions of a donor in order, and moves of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.view import View


class Donors:
    """The partitions of each site that may leave it."""

    def __init__(self, view: View) -> None:
        free = np.flatnonzero(~view.partitions.fixed)
        self._order = free[np.argsort(view.partitions.site[free], kind="stable")]
        sites = view.partitions.site[self._order]
        self._edges = np.searchsorted(sites, np.arange(len(view.sites) + 1))

    def of(self, site: int, size: np.ndarray) -> np.ndarray:
        """Those of a site, the largest first; those of no size are left out."""
        own = self._order[self._edges[site] : self._edges[site + 1]]
        own = own[size[own] > 0]
        ordered: np.ndarray = own[np.argsort(-size[own], kind="stable")]
        return ordered


def moves_of(
    view: View, partitions: Iterable[int], targets: Iterable[int], cause: str
) -> Iterator[Move]:
    """Moves of these partitions of the view to these sites."""
    known = view.partitions
    for partition, target in zip(partitions, targets, strict=True):
        yield Move(
            view.exchanges[known.exchange[partition]],
            int(known.start[partition]),
            cause,
            source=int(known.site[partition]),
            target=int(target),
            bytes=int(known.bytes[partition]),
        )
