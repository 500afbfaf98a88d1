"""Producers with what they hold back, and the connections from them to the sites.

`SkewBuffer` is Flux's (F2): one space for all destinations, so that a producer stands still only when all
of it is taken. `Exchange` divides the same space over its connections: a producer stands still as soon as
the connection that its next row needs is full, whatever space the others have. With no space besides
the connections this is the traditional exchange.

Rows are counted, not kept. Sites take fractions of rows from all connections alike, producers draw whole
ones at random.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from anabranch.errors import RunError
from anabranch.simulate.cluster import Cluster

POPULAR = 0.2
"""A partition with this share of what a site gets on average is told apart in the buffers."""


class Producers(Protocol):
    """What the model needs of producers."""

    queued: np.ndarray
    """Rows on the connections, by lane and site."""
    paused: set[int]
    """Partitions whose rows are held back."""

    @property
    def held(self) -> np.ndarray:
        """Rows held back for each site."""

    @property
    def by_site(self) -> np.ndarray:
        """The share of all rows that goes to each site."""

    def produce(self) -> float:
        """Fills buffers and connections with new rows; how many."""

    def take(self, share: np.ndarray) -> None:
        """Sites take this share of what is on their connections."""

    def pause(self, partition: int, site: int) -> None:
        """Rows for a partition of this site are held back from now on."""

    def resume(self, partition: int, site: int) -> None:
        """Rows for a partition go to this site from now on."""


class SkewBuffer:
    """Rows held back by destination, in columns: one for each site, then those of single partitions.

    A popular partition has a column of its own from the beginning, for it may be most of what is held. Any
    other gets one while it is moved; what is held of it until then is drawn from its site's column.
    """

    def __init__(
        self, cluster: Cluster, chances: np.ndarray, site: np.ndarray, rng: np.random.Generator
    ) -> None:
        self.queued = np.zeros((cluster.lanes, cluster.sites))
        self.paused: set[int] = set()
        self._rng = rng
        self._sites = cluster.sites
        self._chances = chances
        popular = np.flatnonzero(chances * cluster.sites > POPULAR).tolist()
        self._popular = {partition: cluster.sites + at for at, partition in enumerate(popular)}
        self._held = np.zeros((cluster.lanes, cluster.sites + len(popular)))
        self._column = site.copy()
        self._column[popular] = list(self._popular.values())
        self._to = {column: int(site[partition]) for partition, column in self._popular.items()}
        """The site that a popular partition's column goes to, unless it is paused."""
        self._spare: list[int] = []
        self._room = cluster.buffer_rows * cluster.in_lane
        self._connection = cluster.connection_rows * cluster.in_lane
        self._packet = cluster.packet_rows
        self._fastest = int(cluster.step / cluster.produce_seconds * cluster.in_lane)
        self._count()

    @property
    def held(self) -> np.ndarray:
        waiting: np.ndarray = self._ready().sum(axis=0)
        return waiting

    @property
    def by_site(self) -> np.ndarray:
        share: np.ndarray = self._by_column[: self._sites].copy()
        for column, site in self._to.items():
            share[site] += self._by_column[column]
        return share

    def produce(self) -> float:
        space = (self._room - self._held.sum(axis=1)).astype(np.int64)
        drawn = np.clip(space, 0, self._fastest)
        self._held += self._rng.multinomial(drawn, self._by_column)
        ready = self._ready()
        sent = np.minimum(ready, self._connection - self.queued)
        packets = np.floor(sent / self._packet) * self._packet
        # Where no destination has a packet's rows, and there is no space for more, they go as they are
        stuck = (ready.max(axis=1) < self._packet) & (drawn == space)
        sent = np.where(stuck[:, None], sent, packets)
        kept = 1 - np.divide(sent, ready, out=np.zeros_like(ready), where=ready > 0)
        self._held[:, : self._sites] *= kept
        for column, site in self._to.items():
            self._held[:, column] *= kept[:, site]
        self.queued += sent
        return float(drawn.sum())

    def take(self, share: np.ndarray) -> None:
        self.queued *= 1 - share

    def pause(self, partition: int, site: int) -> None:
        self.paused.add(partition)
        if partition in self._popular:
            del self._to[self._popular[partition]]
            return
        if not self._spare:
            self._spare.append(self._held.shape[1])
            self._held = np.pad(self._held, ((0, 0), (0, 1)))
        column = self._column[partition] = self._spare.pop()
        share = min(self._chances[partition] / max(self._by_column[site], 1e-300), 1.0)
        own = self._rng.binomial(self._held[:, site].astype(np.int64), share)
        self._held[:, site] -= own
        self._held[:, column] += own
        self._count()

    def resume(self, partition: int, site: int) -> None:
        self.paused.remove(partition)
        if partition in self._popular:
            self._to[self._popular[partition]] = site
            return
        column = int(self._column[partition])
        self._held[:, site] += self._held[:, column]
        self._held[:, column] = 0
        self._column[partition] = site
        self._spare.append(column)
        self._count()

    def _ready(self) -> np.ndarray:
        ready = self._held[:, : self._sites].copy()
        for column, site in self._to.items():
            ready[:, site] += self._held[:, column]
        return ready

    def _count(self) -> None:
        by_column = np.bincount(self._column, self._chances, self._held.shape[1])
        self._by_column = by_column / by_column.sum()


class Exchange:
    """Rows in the order they were drawn in; the first that finds its connection full holds up the rest."""

    AHEAD = 4096
    """Rows drawn at once for each producer."""
    LOOK = 64

    def __init__(
        self, cluster: Cluster, chances: np.ndarray, site: np.ndarray, rng: np.random.Generator
    ) -> None:
        lanes, sites = cluster.lanes, cluster.sites
        self.queued = np.zeros((lanes, sites))
        self.paused: set[int] = set()
        self.held = np.zeros(sites)
        self.by_site = np.bincount(site, chances, sites)
        self._rng = rng
        self._capacity = (cluster.connection_rows + cluster.buffer_rows / sites) * cluster.in_lane
        self._sent = np.zeros((lanes, sites))
        self._taken = np.zeros((lanes, sites))
        self._lanes = np.arange(lanes)[:, None]
        self._next = np.full(lanes, self.AHEAD)
        self._drawn = np.zeros((lanes, self.AHEAD), dtype=np.int64)
        self._number = np.zeros((lanes, self.AHEAD))
        """How many rows were drawn for the same site before each."""

    def pause(self, partition: int, site: int) -> None:
        raise RunError(
            "Partitions move only behind a skew buffer: an exchange cannot hold rows back."
        )

    resume = pause

    def produce(self) -> float:
        produced, going = 0.0, True
        while going:
            if self._next.max() + self.LOOK > self.AHEAD:
                self._draw()
            at = self._next[:, None] + np.arange(self.LOOK)
            site = self._drawn[self._lanes, at]
            fits = (
                self._number[self._lanes, at] + 1 <= self._taken[self._lanes, site] + self._capacity
            )
            sent = np.where(fits.all(axis=1), self.LOOK, fits.argmin(axis=1))
            before = np.arange(self.LOOK) < sent[:, None]
            np.add.at(self._sent, (np.nonzero(before)[0], site[before]), 1)
            self._next += sent
            produced += float(sent.sum())
            going = bool((sent == self.LOOK).any())
        self.queued = self._sent - self._taken
        return produced

    def take(self, share: np.ndarray) -> None:
        self._taken += self.queued * share
        self.queued = self._sent - self._taken

    def _draw(self) -> None:
        """Moves what is left to the front, draws the rest anew and numbers it."""
        lanes, ahead = self._drawn.shape
        edges = np.cumsum(self.by_site)
        fresh = np.searchsorted(edges, self._rng.random((lanes, ahead)), side="right")
        both = np.concatenate([self._drawn, np.minimum(fresh, len(edges) - 1)], axis=1)
        self._drawn = np.take_along_axis(both, self._next[:, None] + np.arange(ahead), axis=1)
        self._next[:] = 0
        order = np.argsort(self._drawn, axis=1, kind="stable")
        sorted_sites = np.take_along_axis(self._drawn, order, axis=1)
        first = np.array([np.searchsorted(line, line) for line in sorted_sites])
        rank = np.empty((lanes, ahead))
        np.put_along_axis(rank, order, np.arange(ahead) - first, axis=1)
        self._number = rank + self._sent[self._lanes, self._drawn]
