"""Partitions on their way between sites: Flux's movement protocol (F4) in simulated time.

A partition's input is paused at all producers; once its site has worked off what was on the connections
then, its state is extracted, sent and installed, and its input goes on at the new site. All else flows
meanwhile. A site pauses a few of the partitions it has to give and sends one after another.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from anabranch.simulate.cluster import Cluster

DRAIN, EXTRACT, TRANSFER, INSTALL, DONE = range(5)


@dataclass(frozen=True)
class Order:
    """A partition to be moved."""

    partition: int
    source: int
    target: int


class Movement:
    """All moves of a cluster: those that wait for their turn, and those under way as columns of numbers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[int, deque[Order]] = {}
        self._orders: list[Order] = []
        self._stage = np.zeros(0, dtype=np.int64)
        self._left = np.zeros(0)
        """Rows, seconds or bytes until the stage is done."""
        self._source = np.zeros(0, dtype=np.int64)
        self._target = np.zeros(0, dtype=np.int64)

    @property
    def idle(self) -> bool:
        return not self._orders and not self._waiting

    @property
    def wanted(self) -> set[int]:
        """Partitions whose move has not begun."""
        return {order.partition for orders in self._waiting.values() for order in orders}

    def add(self, order: Order) -> None:
        self._waiting.setdefault(order.source, deque()).append(order)

    def needs(self, site: int) -> float:
        """Seconds that a site needs for moves: to work off rows on the way, to extract and to install."""
        rows = self._left[(self._stage == DRAIN) & (self._source == site)]
        extracted = self._left[(self._stage == EXTRACT) & (self._source == site)]
        installed = self._left[(self._stage == INSTALL) & (self._target == site)]
        drained = float(rows.max()) * self._cluster.row_seconds if len(rows) else 0.0
        handled = len(rows) * self._cluster.partition_rows * self._cluster.handling_seconds
        return drained + handled + float(extracted.sum() + installed.sum())

    def begin(self, queued: np.ndarray, unable: set[int], on_disk: np.ndarray) -> list[Order]:
        """The orders whose partitions are paused now; `queued` are the rows on each site's connections.

        Sites that are `unable` to answer begin nothing; partitions on disk have to be read first.
        """
        begun = []
        for site in [site for site in self._waiting if site not in unable]:
            orders = self._waiting[site]
            under_way = int(((self._source == site) & (self._stage < INSTALL)).sum())
            for _ in range(len(orders)):
                if under_way < self._cluster.at_once and not on_disk[orders[0].partition]:
                    begun.append(orders.popleft())
                    under_way += 1
                else:
                    orders.rotate(-1)
            if not orders:
                del self._waiting[site]
        if begun:
            source = np.array([order.source for order in begun])
            self._orders += begun
            self._stage = np.append(self._stage, np.full(len(begun), DRAIN))
            self._left = np.append(self._left, queued[source])
            self._source = np.append(self._source, source)
            self._target = np.append(self._target, [order.target for order in begun])
        return begun

    def handle(self, seconds: np.ndarray) -> None:
        """Extracts and installs, which takes from the seconds that each site has."""
        for stage, sites in ((EXTRACT, self._source), (INSTALL, self._target)):
            for at in np.flatnonzero(self._stage == stage).tolist():
                spent = min(seconds[sites[at]], self._left[at])
                seconds[sites[at]] -= spent
                self._left[at] -= spent

    def advance(self, served: np.ndarray, seconds: float) -> list[Order]:
        """Goes on by one step of time in which sites served so many rows; the moves that are done."""
        drain = self._stage == DRAIN
        self._left[drain] -= served[self._source[drain]]
        sending = np.flatnonzero(self._stage == TRANSFER)
        if len(sending):
            _, first = np.unique(self._source[sending], return_index=True)
            speed = min(self._cluster.link, self._cluster.moving / len(first))
            self._left[sending[first]] -= speed * seconds
        over = self._left <= 1e-12
        if not over.any():
            return []
        self._stage[over] += 1
        handling = self._cluster.partition_rows * self._cluster.handling_seconds
        self._left = np.where(
            over & (self._stage == TRANSFER), self._cluster.partition_bytes, self._left
        )
        self._left = np.where(over & np.isin(self._stage, (EXTRACT, INSTALL)), handling, self._left)
        done = self._stage == DONE
        finished = [self._orders[at] for at in np.flatnonzero(done).tolist()]
        if finished:
            self._orders = [
                order for order, ended in zip(self._orders, done, strict=True) if not ended
            ]
            keep = ~done
            self._stage, self._left = self._stage[keep], self._left[keep]
            self._source, self._target = self._source[keep], self._target[keep]
        return finished
