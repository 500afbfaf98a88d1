"""The rounds of a controller in a simulation: collect figures, decide, move, and again.

Flux's own policy gets what sites report of each round as it is: rows served, and time without any. The
policy that tunes itself gets what the engine would give it: how slow each site is and what share of all
rows each partition has, smoothed. Rows count where they are produced, so that those a slow site has not got
to yet are work for it all the same; Flux notices only when buffers are full and other sites run idle.
"""

from __future__ import annotations

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.controller import Controller
from anabranch.adapt.smoothing import Smoothed
from anabranch.adapt.view import Partitions, Sites, View, slowness
from anabranch.simulate.cluster import Cluster

EXCHANGE = "rows"


class Rounds:
    """Figures of the collection under way, and when it ends."""

    def __init__(self, cluster: Cluster, controller: Controller) -> None:
        self._cluster = cluster
        self._controller = controller
        self._slowness, self._share = Smoothed(), Smoothed()
        self._moving_since = 0.0
        self.moving = False
        self._unanswered: set[int] | None = None
        self._begin(0.0)

    def add(self, served: np.ndarray, idle: np.ndarray, produced: float) -> None:
        """What happened in one step: rows each site served, seconds without any, rows produced by all."""
        self._rows += served
        self._idle += idle
        self._produced += produced

    def due(self, now: float, silent: set[int]) -> bool:
        """Whether all sites have answered; one that is at its disk answers later."""
        if self.moving or now - self._since < self._controller.tuning.collect:
            return False
        self._unanswered = silent if self._unanswered is None else self._unanswered & silent
        return not self._unanswered

    def decide(self, now: float, chances: np.ndarray, site: np.ndarray, on_disk: np.ndarray,
               memory: np.ndarray, held: np.ndarray, rng: np.random.Generator) -> list[Move]:  # fmt: skip
        """Moves to carry out, from figures that count whole rows by chance."""
        view = self._view(now - self._since, chances, site, on_disk, memory, held, rng)
        verdicts = self._controller.decide(view)
        self.moving, self._moving_since = True, now
        return [
            verdict.action
            for verdict in verdicts
            if verdict.accepted and isinstance(verdict.action, Move)
        ]

    def moved(self, now: float) -> None:
        """All moves of the round are done."""
        self._controller.finished(now - self._moving_since)
        self.moving = False
        self._begin(now)

    def collected(self, now: float) -> float:
        return now - self._since

    def _begin(self, now: float) -> None:
        self._since = now
        self._rows = np.zeros(self._cluster.sites)
        self._idle = np.zeros(self._cluster.sites)
        self._produced = 0.0
        self._unanswered = None

    def _view(self, seconds: float, chances: np.ndarray, site: np.ndarray, on_disk: np.ndarray,
              memory: np.ndarray, held: np.ndarray, rng: np.random.Generator) -> View:  # fmt: skip
        sites, partitions = self._cluster.sites, self._cluster.partitions
        counts = _counts(self._rows, np.where(on_disk, 0.0, chances), site, rng)
        busy = np.maximum(seconds - self._idle, 0.0)
        nominal = self._cluster.row_seconds + self._cluster.produce_seconds
        slow, work = slowness(busy, self._rows * nominal), counts * nominal
        if self._controller.tuning.itself:
            slow = self._slowness.add(slow, self._rows > 0)
            counts = rng.multinomial(int(self._produced), chances).astype(float)
            share = self._share.add(
                counts / max(counts.sum(), 1.0), np.full(partitions, counts.any())
            )
            work = share * counts.sum() * nominal
            busy = np.bincount(site, weights=work, minlength=sites) * slow
        size = self._cluster.partition_bytes
        state = np.bincount(site, minlength=sites) * float(size)
        spilled = np.bincount(site, weights=on_disk, minlength=sites) * size
        nothing = np.zeros(partitions, dtype=np.int64)
        return View(
            (EXCHANGE,),
            seconds,
            Sites(
                busy, np.zeros(sites), self._rows.copy(), slow, state - spilled, spilled, held,
                memory.copy(), np.ones(sites, dtype=bool),
            ),
            Partitions(
                nothing, np.arange(partitions), np.ones(partitions, dtype=np.int64), site.copy(),
                counts, counts, work, np.full(partitions, size), on_disk.copy(),
                np.zeros(partitions), np.zeros(partitions, dtype=bool), np.ones(partitions),
                np.arange(partitions),
            ),
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
