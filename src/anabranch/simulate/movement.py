"""Partitions on their way between sites: what the movement protocol asks for, in simulated time.

The governor is told when a move's turn has come and when its state has arrived, and says when to pause a
partition's input at all producers, when its state travels, and when its input goes on at the new site. It
pauses first, as Flux does. State travels once its site has worked off what was on the connections: it is
extracted, sent and inserted. All else flows meanwhile. A site begins a few of the moves it has to make and
sends one partition after another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import compress

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.simulate.cluster import Cluster

DRAIN, EXTRACT, TRANSFER, INSERT, ARRIVED = range(5)


class Movement:
    """All moves of a cluster: those that wait for their turn, and state that travels, in columns."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[int, deque[Move]] = {}
        self._travels: list[Move] = []
        self._stage = np.zeros(0, dtype=np.int64)
        self._left = np.zeros(0)
        """Rows, seconds or bytes until the stage is done."""
        self._source = np.zeros(0, dtype=np.int64)
        self._target = np.zeros(0, dtype=np.int64)

    @property
    def idle(self) -> bool:
        return not self._travels and not self._waiting

    @property
    def wanted(self) -> set[int]:
        """Partitions whose move has not begun."""
        return {move.partition for moves in self._waiting.values() for move in moves}

    @property
    def travelling(self) -> set[tuple[str, int]]:
        """Partitions whose state is on its way."""
        return {move.subject for move in self._travels}

    def add(self, move: Move) -> None:
        self._waiting.setdefault(move.source, deque()).append(move)

    def needs(self, site: int) -> float:
        """Seconds that a site needs for moves: to work off rows on the way, to extract and to insert."""
        rows = self._left[(self._stage == DRAIN) & (self._source == site)]
        extracted = self._left[(self._stage == EXTRACT) & (self._source == site)]
        inserted = self._left[(self._stage == INSERT) & (self._target == site)]
        drained = float(rows.max()) * self._cluster.row_seconds if len(rows) else 0.0
        handled = len(rows) * self._cluster.partition_rows * self._cluster.handling_seconds
        return drained + handled + float(extracted.sum() + inserted.sum())

    def begin(self, unable: set[int], on_disk: np.ndarray) -> list[Move]:
        """The moves whose turn has come.

        Sites that are `unable` to answer begin nothing; partitions on disk have to be read first.
        """
        begun: list[Move] = []
        for site in [site for site in self._waiting if site not in unable]:
            moves = self._waiting[site]
            under_way = int(((self._source == site) & (self._stage < INSERT)).sum())
            for _ in range(len(moves)):
                if under_way < self._cluster.at_once and not on_disk[moves[0].partition]:
                    begun.append(moves.popleft())
                    under_way += 1
                else:
                    moves.rotate(-1)
            if not moves:
                del self._waiting[site]
        return begun

    def fetch(self, moves: Sequence[Move], queued: np.ndarray) -> None:
        """Lets state travel as soon as the rows `queued` on the connections to its site are worked off."""
        source = [move.source for move in moves]
        self._travels += moves
        self._stage = np.append(self._stage, np.full(len(moves), DRAIN))
        self._left = np.append(self._left, queued[source])
        self._source = np.append(self._source, source)
        self._target = np.append(self._target, [move.target for move in moves])

    def handle(self, seconds: np.ndarray) -> None:
        """Extracts and inserts, which takes from the seconds that each site has."""
        for stage, sites in ((EXTRACT, self._source), (INSERT, self._target)):
            for at in np.flatnonzero(self._stage == stage).tolist():
                spent = min(seconds[sites[at]], self._left[at])
                seconds[sites[at]] -= spent
                self._left[at] -= spent

    def advance(self, served: np.ndarray, seconds: float) -> list[Move]:
        """Goes on by one step of time in which sites served so many rows; those whose state has arrived."""
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
        self._left = np.where(over & np.isin(self._stage, (EXTRACT, INSERT)), handling, self._left)
        keep = self._stage < ARRIVED
        arrived = [self._travels[at] for at in np.flatnonzero(~keep).tolist()]
        if arrived:
            self._travels = list(compress(self._travels, keep))
            self._stage, self._left = self._stage[keep], self._left[keep]
            self._source, self._target = self._source[keep], self._target[keep]
        return arrived
