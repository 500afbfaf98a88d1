"""Producers with what they hold back, and the connections from them to the sites.

`SkewBuffer` is Flux's (F2): one space for all destinations, so that a producer stands still only when all
of it is taken. `Exchange` divides the same space over its connections: a producer stands still as soon as
the connection that its next row needs is full, whatever space the others have. With no space besides
the connections this is the traditional exchange.

Rows are counted, not kept. Sites take fractions of rows from all connections alike, producers draw whole
ones at random.
"""

from __future__ import annotations

import numpy as np

from anabranch.simulate.cluster import Cluster


class SkewBuffer:
    """Rows held back by destination: the sites first, then partitions that are being moved."""

    def __init__(self, cluster: Cluster, rng: np.random.Generator) -> None:
        self.queued = np.zeros((cluster.lanes, cluster.sites))
        """Rows on the connections, by lane and site."""
        self._rng = rng
        self._sites = cluster.sites
        self._held = np.zeros((cluster.lanes, cluster.sites))
        self._room = cluster.buffer_rows * cluster.in_lane
        self._connection = cluster.connection_rows * cluster.in_lane
        self._fastest = int(cluster.step / cluster.produce_seconds * cluster.in_lane)

    @property
    def held(self) -> np.ndarray:
        """Rows held back for each site."""
        waiting: np.ndarray = self._held[:, : self._sites].sum(axis=0)
        return waiting

    def produce(self, chances: np.ndarray) -> float:
        """Fills the buffers with rows for sites and moving partitions, then the connections; how many."""
        space = self._room - self._held.sum(axis=1)
        drawn = np.clip(space, 0, self._fastest).astype(np.int64)
        self._held += self._rng.multinomial(drawn, chances)
        ready = self._held[:, : self._sites]
        sent = np.minimum(ready, self._connection - self.queued)
        ready -= sent
        self.queued += sent
        return float(drawn.sum())

    def take(self, share: np.ndarray) -> None:
        """Sites take this share of what is on their connections."""
        self.queued *= 1 - share

    def add_column(self) -> None:
        """One more destination, for a partition that will be moved."""
        self._held = np.pad(self._held, ((0, 0), (0, 1)))

    def pause(self, site: int, column: int, share: float) -> None:
        """What is held for a partition with this share of its site's rows is set apart."""
        own = self._rng.binomial(self._held[:, site].astype(np.int64), min(share, 1.0))
        self._held[:, site] -= own
        self._held[:, column] += own

    def resume(self, column: int, site: int) -> None:
        """What was set apart now goes to this site."""
        self._held[:, site] += self._held[:, column]
        self._held[:, column] = 0


class Exchange:
    """Rows in the order they were drawn in; the first that finds its connection full holds up the rest."""

    AHEAD = 4096
    """Rows drawn at once for each producer."""
    LOOK = 64

    def __init__(self, cluster: Cluster, rng: np.random.Generator) -> None:
        lanes, sites = cluster.lanes, cluster.sites
        self._rng = rng
        self._capacity = (cluster.connection_rows + cluster.buffer_rows / sites) * cluster.in_lane
        self._sent = np.zeros((lanes, sites))
        self._taken = np.zeros((lanes, sites))
        self._lanes = np.arange(lanes)[:, None]
        self._next = np.full(lanes, self.AHEAD)
        self._drawn = np.zeros((lanes, self.AHEAD), dtype=np.int64)
        self._number = np.zeros((lanes, self.AHEAD))
        """How many rows were drawn for the same site before each."""

    @property
    def queued(self) -> np.ndarray:
        return self._sent - self._taken

    @property
    def held(self) -> np.ndarray:
        return np.zeros(self._sent.shape[1])

    def produce(self, chances: np.ndarray) -> float:
        """Sends rows in order until each producer meets a full connection."""
        produced, going = 0.0, True
        while going:
            if self._next.max() + self.LOOK > self.AHEAD:
                self._draw(chances)
            at = self._next[:, None] + np.arange(self.LOOK)
            site = self._drawn[self._lanes, at]
            fits = self._number[self._lanes, at] + 1 <= self._taken[self._lanes, site] + self._capacity
            sent = np.where(fits.all(axis=1), self.LOOK, fits.argmin(axis=1))
            before = np.arange(self.LOOK) < sent[:, None]
            np.add.at(self._sent, (np.nonzero(before)[0], site[before]), 1)
            self._next += sent
            produced += float(sent.sum())
            going = bool((sent == self.LOOK).any())
        return produced

    def take(self, share: np.ndarray) -> None:
        """Sites take this share of what is on their connections."""
        self._taken += (self._sent - self._taken) * share

    def _draw(self, chances: np.ndarray) -> None:
        """Moves what is left to the front, draws the rest anew and numbers it."""
        lanes, ahead = self._drawn.shape
        edges = np.cumsum(chances) / chances.sum()
        fresh = np.searchsorted(edges, self._rng.random((lanes, ahead)), side="right")
        both = np.concatenate([self._drawn, np.minimum(fresh, len(chances) - 1)], axis=1)
        self._drawn = np.take_along_axis(both, self._next[:, None] + np.arange(ahead), axis=1)
        self._next[:] = 0
        order = np.argsort(self._drawn, axis=1, kind="stable")
        sorted_sites = np.take_along_axis(self._drawn, order, axis=1)
        first = np.array([np.searchsorted(line, line) for line in sorted_sites])
        rank = np.empty((lanes, ahead))
        np.put_along_axis(rank, order, np.arange(ahead) - first, axis=1)
        self._number = rank + self._sent[self._lanes, self._drawn]
