"""The model of a running cluster: producers, sites, moves and disks, one small step of time after another.

State is columnar, one number per site, partition or connection, so that a step costs about the same for 32
sites and little more for a thousand. All chance comes from one generator, so that a seed gives a run again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.adapt.controller import Controller
from anabranch.adapt.protocols.moving import Fetch, Install, Instruction, Pause
from anabranch.errors import RunError
from anabranch.routing.partition_map import PartitionMap
from anabranch.simulate.cluster import Cluster, Event
from anabranch.simulate.disks import Disks
from anabranch.simulate.movement import Movement
from anabranch.simulate.producers import Exchange, Producers, SkewBuffer
from anabranch.simulate.record import Moved, Record
from anabranch.simulate.rounds import EXCHANGE, Rounds


class Simulation:
    """One cluster under one controller, or under none."""

    def __init__(
        self,
        cluster: Cluster,
        chances: np.ndarray,
        seed: int,
        controller: Controller | None = None,
        events: Sequence[Event] = (),
        exchange: bool = False,
    ) -> None:
        self.cluster = cluster
        self._rng = np.random.default_rng(seed)
        self._chances = chances
        self.site = np.arange(cluster.partitions) * cluster.sites // cluster.partitions
        """Where each partition is."""
        self._producers: Producers = (Exchange if exchange else SkewBuffer)(
            cluster, chances, self.site, self._rng
        )
        self._movement = Movement(cluster)
        self._disks = Disks(cluster, self.site, self._rng)
        self._rounds = Rounds(cluster, controller) if controller is not None else None
        self._events = sorted(events, key=lambda event: event.at)
        self._rate = np.ones(cluster.sites)
        self._debt = np.zeros(cluster.sites)
        """Seconds that sites still have to spend on rows that were set aside."""

    def run(self, seconds: int) -> Record:
        """Runs from the beginning for so many seconds."""
        record = Record(seconds)
        for number in range(round(seconds / self.cluster.step)):
            self._step(number * self.cluster.step, record)
        return record

    def _step(self, now: float, record: Record) -> None:
        step, cost = self.cluster.step, self.cluster.row_seconds
        while self._events and self._events[0].at <= now:
            self._happen(self._events.pop(0))
        queued = self._producers.queued.sum(axis=0)
        if not self._movement.idle:
            begun = self._movement.begin(round(now / step), self._disks.silent, self._disks.on_disk)
            self._carry_out(begun, queued, now, record)
        produced = self._producers.produce()
        queued = self._producers.queued.sum(axis=0)
        mine = produced / self.cluster.sites * self.cluster.produce_seconds
        seconds = np.maximum(step - mine, 0.0) * self._rate
        whole = seconds.copy()
        if self._disks.pressed:
            self._use_disks(seconds, now, record)
        if not self._movement.idle:
            self._movement.handle(seconds)
        # The time for n rows deviates by √n times that of one
        noise = self._rng.standard_normal(self.cluster.sites)
        able = np.maximum(seconds / cost, 0.0)
        able += noise * np.sqrt(able) * (self.cluster.row_deviation / cost)
        taken = np.minimum(np.maximum(able, 0.0), queued)
        served = taken
        if self._disks.on_disk.any():
            taken, served = self._set_aside(able, queued, now)
        self._producers.take(np.divide(taken, queued, out=np.zeros_like(taken), where=queued > 0))
        rows = float(served.sum())
        record.add(now, rows, float((served / self._rate).sum()) * cost)
        if not self._movement.idle:
            self._carry_out(self._movement.advance(taken, step), queued - taken, now, record)
        if self._rounds is not None:
            left = np.maximum(seconds - served * cost, 0.0)
            idle = step * np.divide(left, whole, out=np.zeros_like(left), where=whole > 0)
            idle[taken < queued] = 0.0
            self._control(served, idle, produced, now + step, record)

    def _happen(self, event: Event) -> None:
        if event.rate is not None:
            self._rate[event.site] = event.rate
        if event.memory is not None:
            self._disks.memory[event.site] = event.memory
            self._disks.check()

    def _control(
        self, served: np.ndarray, idle: np.ndarray, produced: float, now: float, record: Record
    ) -> None:
        rounds = self._rounds
        assert rounds is not None
        if rounds.moving:
            if self._movement.idle:
                rounds.moved(now)
            return
        rounds.add(served, idle, produced)
        if rounds.due(now, self._disks.silent):
            record.collections.append((now, rounds.collected(now)))
            moves = rounds.decide(
                now, self._chances, self.site, self._disks.on_disk, self._disks.memory,
                self._producers.held, self._rng,
            )  # fmt: skip
            for move in moves:
                self._movement.add(move)
            if not moves:
                rounds.moved(now)

    def _carry_out(
        self, instructions: Sequence[Instruction], queued: np.ndarray, now: float, record: Record
    ) -> None:
        """Does what the protocol says, `queued` being the rows on each site's connections."""
        for order in instructions:
            move = order.move
            if isinstance(order, Pause):
                self._disks.keep(move.partition, move.source)
                self._producers.pause(move.partition, move.source)
            elif isinstance(order, Install):
                self._producers.resume(move.partition, move.target)
                self.site[move.partition] = move.target
                self._disks.leave(move.partition, move.source, move.target)
                record.moves.append(Moved(now, move.partition, move.source, move.target))
        fetches = [order.move for order in instructions if isinstance(order, Fetch)]
        if fetches:
            self._movement.fetch(fetches, queued)

    def validate(self) -> None:
        """Raises RunError unless partitions are where the protocol has them, and only its state travels."""
        protocol = self._movement.protocol
        waiting = {(EXCHANGE, partition) for partition in self._producers.paused}
        protocol.validate({EXCHANGE: PartitionMap(tuple(self.site.tolist()))}, waiting)
        if waiting != protocol.paused:
            raise RunError("Rows wait of partitions that are not paused.")
        if self._movement.travelling != protocol.moving.keys():
            raise RunError("State travels that is not being moved, or is being moved and does not.")

    def _use_disks(self, seconds: np.ndarray, now: float, record: Record) -> None:
        """Takes the time at disks, and for rows that waited there, from what sites have."""
        cost = self.cluster.row_seconds
        needed = {site: self._movement.needs(site) for site in self._disks.pressed}
        for site, left in self._disks.step(
            needed, self._producers.paused, self._movement.wanted
        ).items():
            seconds[site] *= left / self.cluster.step
        for partition in self._disks.read:
            rows, waited = self._disks.back(partition, now)
            self._debt[self.site[partition]] += rows * cost
            record.add(now, rows, waited)
        paid = np.minimum(self._debt, seconds)
        self._debt -= paid
        seconds -= paid

    def _set_aside(
        self, able: np.ndarray, queued: np.ndarray, now: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows that sites take from their connections, and those of them that they serve."""
        away = np.where(self._disks.on_disk, self._chances, 0.0)
        by_site = np.bincount(self.site, weights=away, minlength=self.cluster.sites)
        part = by_site / np.maximum(self._producers.by_site, 1e-300)
        writing = self.cluster.row_bytes / self.cluster.disk / self.cluster.row_seconds
        taken = np.minimum(np.maximum(able, 0.0) / (1 - part + part * writing), queued)
        for site in np.flatnonzero(part).tolist():
            own = np.where(self.site == site, away, 0.0) / by_site[site]
            self._disks.set_aside(float(taken[site] * part[site]), own, now)
        return taken, taken * (1 - part)
