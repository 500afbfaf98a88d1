"""The epochs of a simulation: while no partition moves, figures are collected; then the governor is told.

An epoch lasts for as long as the governor wants figures collected, and until all sites have answered. Under
Flux's own rules they tell what Flux's sites do: rows served, and time without any. For those that tune
themselves rows count where they are produced, as the engine's senders count them, so that those a slow site
has not got to yet are work for it all the same; Flux notices only when buffers are full and others run idle.
"""

from __future__ import annotations

import numpy as np

from anabranch.adapt.collector import Sample, Traffic
from anabranch.control.observed import Observed
from anabranch.routing.partition_map import PartitionMap
from anabranch.simulate.cluster import Cluster
from anabranch.simulate.governing import EXCHANGE


class Epochs:
    """What has happened in the epoch under way, and when it ends."""

    def __init__(self, cluster: Cluster, produced_count: bool) -> None:
        self._cluster, self._produced_count = cluster, produced_count
        self._number = -1
        self.begin(0.0)

    def begin(self, now: float) -> None:
        """Begins the next one."""
        self._since = now
        self._number += 1
        self._served = np.zeros(self._cluster.sites)
        self._idle = np.zeros(self._cluster.sites)
        self._produced = 0.0
        self._unanswered: set[int] | None = None

    def add(self, served: np.ndarray, idle: np.ndarray, produced: float) -> None:
        """What happened in one step: rows each site served, seconds without any, rows produced by all."""
        self._served += served
        self._idle += idle
        self._produced += produced

    def length(self, now: float) -> float:
        return now - self._since

    def over(self, now: float, collecting: float, silent: set[int]) -> bool:
        """Whether it was long enough and all sites have answered; one that is at its disk answers later."""
        if self.length(now) < collecting:
            return False
        self._unanswered = silent if self._unanswered is None else self._unanswered & silent
        return not self._unanswered

    def observed(
        self, now: float, chances: np.ndarray, known: PartitionMap, on_disk: np.ndarray,
        memory: np.ndarray, rng: np.random.Generator,
    ) -> Observed:  # fmt: skip
        """What the epoch has shown, in figures that count whole rows by chance."""
        seconds = self.length(now)
        if self._produced_count:
            rows = rng.multinomial(int(self._produced), chances).astype(float)
        else:
            own = np.where(on_disk, 0.0, chances)
            rows = _counts(self._served, own, np.asarray(known.sites), rng)
        busy = np.maximum(seconds - self._idle, 0.0)
        traffic = Traffic(
            rows, rows, np.arange(len(rows)), float(busy.sum()), worked=self._served.copy()
        )
        sample = Sample(
            seconds, busy, np.zeros(len(busy)), self._served.copy(), {EXCHANGE: traffic}
        )
        return Observed(
            self._number, len(busy), seconds, {EXCHANGE: known}, {1: sample}, {},
            {site: int(room) for site, room in enumerate(memory.tolist())},
            spilled={EXCHANGE: np.flatnonzero(on_disk).tolist()}, ended=now,
        )  # fmt: skip


def _counts(
    rows: np.ndarray, chances: np.ndarray, site: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """How many of each site's rows were of each of its partitions: drawn, so that few are noisy."""
    order = np.argsort(site, kind="stable")
    edges = np.searchsorted(site[order], np.arange(len(rows) + 1))
    counts = np.zeros(len(chances))
    for at, total in enumerate(rows.astype(np.int64).tolist()):
        own = order[edges[at] : edges[at + 1]]
        whole = chances[own].sum()
        if total and whole > 0:
            counts[own] = rng.multinomial(total, chances[own] / whole)
    return counts
