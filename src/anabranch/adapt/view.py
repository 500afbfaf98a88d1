"""What the controller sees: for every site and partition, what it did while figures were collected.

A view is immutable and columnar: one array element per site or partition, so that a thousand sites with
64,000 partitions are looked at as fast as eight. The exchanges whose sites work at the same time are in
one view, as they share that time. Who collects it (the engine from the reports of epochs, the simulator
from its model) is not seen here.

The work of a partition is told in nominal seconds: what an average site would take for it. A site's
slowness turns them into its own. With one exchange this is Flux's estimate: a site keeps its time per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Sites:
    """What each site did."""

    busy: np.ndarray
    """Seconds at work."""
    waiting: np.ndarray
    """Seconds in which it had work but was held up by others."""
    rows: np.ndarray
    slowness: np.ndarray
    """Its seconds for one nominal second of work."""
    resident: np.ndarray
    """Bytes of state in memory."""
    spilled: np.ndarray
    """Bytes of state on disk only."""
    held: np.ndarray
    """Rows held back for it."""
    memory: np.ndarray
    """Bytes it may keep in memory."""
    alive: np.ndarray
    """Whether it can have partitions at all."""
    executors: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.busy)


@dataclass(frozen=True)
class Partitions:
    """What each partition brought."""

    exchange: np.ndarray
    """The number of its exchange in the view."""
    start: np.ndarray
    """The first slot of its range: with the exchange, its name."""
    slots: np.ndarray
    """The length of its range: one that has but one slot cannot be split."""
    site: np.ndarray
    rows_in: np.ndarray
    rows_out: np.ndarray
    """Results an epoch."""
    work: np.ndarray
    """Nominal seconds."""
    bytes: np.ndarray
    """Bytes of its state, in memory or not."""
    aside: np.ndarray
    """Bytes of it that are put aside, on disk only."""
    last_use: np.ndarray
    """When it last had rows, in epochs or seconds."""
    spills: np.ndarray
    """Whether its state can be put aside now."""
    closing: np.ndarray
    """Whether something that is put aside has results to give now: windows that close."""
    since: np.ndarray
    """The epoch since which something of it is put aside."""
    generations: np.ndarray
    """How many generations of it are put aside."""
    awaited: np.ndarray
    """Whether rows, or the time of what reads its results, wait while that is so."""
    fixed: np.ndarray
    """Whether it must stay: pinned by the user, or being moved."""
    peak: np.ndarray
    """The share of its rows in the slot that has most of them."""
    peak_at: np.ndarray
    """That slot."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class View:
    """Sites and partitions over the time of one collection."""

    exchanges: tuple[str, ...]
    seconds: float
    """How long figures were collected."""
    sites: Sites
    partitions: Partitions

    @property
    def utilisation(self) -> np.ndarray:
        """The share of the time that each site was busy (Flux's 1 - idle/δ)."""
        used: np.ndarray = self.sites.busy / self.seconds
        return used

    @property
    def share(self) -> np.ndarray:
        """The part of its own site's time that each partition takes."""
        at = self.partitions.site
        taken: np.ndarray = self.partitions.work * self.sites.slowness[at] / self.seconds
        return taken

    def moved(self, partitions: Sequence[int], targets: Sequence[int]) -> View:
        """The view as it should be after these moves: partitions keep their work, sites their slowness."""
        where, site = np.asarray(partitions, dtype=int), self.partitions.site.copy()
        work = self.partitions.work[where]
        busy = self.sites.busy.copy()
        np.subtract.at(busy, site[where], work * self.sites.slowness[site[where]])
        site[where] = targets
        np.add.at(busy, site[where], work * self.sites.slowness[site[where]])
        return replace(
            self,
            sites=replace(self.sites, busy=np.maximum(busy, 0.0)),
            partitions=replace(self.partitions, site=site),
        )


def slowness(busy: np.ndarray, nominal: np.ndarray) -> np.ndarray:
    """How slow each site is: its seconds against the nominal ones of what it had to do.

    A site that had nothing to do is taken to be as fast as the others on average.

    >>> slowness(np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0])).tolist()
    [1.0, 2.0, 1.5]
    """
    worked = nominal > 0
    mean = busy[worked].sum() / nominal[worked].sum() if worked.any() else 1.0
    found = np.full(len(busy), mean if mean > 0 else 1.0)
    np.divide(busy, nominal, out=found, where=worked & (busy > 0))
    return found
