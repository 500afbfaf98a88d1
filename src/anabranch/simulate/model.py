"""The model of a running cluster: producers, sites, moves and disks, one small step of time after another.

State is columnar, one number per site, partition or connection, so that a step costs about the same for 32
sites and little more for a thousand. All chance comes from one generator, so that a seed gives a run again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.adapt.protocols.moving import Fetch, Install, Pause, Queue
from anabranch.control.transitions import Order
from anabranch.errors import RunError
from anabranch.settings import Settings
from anabranch.simulate.cluster import Cluster, Event
from anabranch.simulate.disks import Disks
from anabranch.simulate.epochs import Epochs
from anabranch.simulate.governing import EXCHANGE, begin_with, govern
from anabranch.simulate.movement import Movement
from anabranch.simulate.producers import Exchange, Producers, SkewBuffer
from anabranch.simulate.record import Moved, Record


class Simulation:
    """One cluster under the governor with these settings, or under none."""

    def __init__(
        self,
        cluster: Cluster,
        chances: np.ndarray,
        seed: int,
        settings: Settings | None = None,
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
        self._manifest = begin_with(cluster)
        self.governor = govern(cluster, settings, self._manifest) if settings else None
        self._epochs = Epochs(cluster, settings is not None and settings.self_tuning)
        self._moving = False
        """Whether partitions move, so that no figures are collected."""
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
            self._begin_moves(round(now / step), queued, now, record)
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
            self._end_moves(taken, queued - taken, now, record)
        if self.governor is not None:
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
        governor, disks = self.governor, self._disks
        assert governor is not None
        if self._moving:
            if not governor.moving:
                self._moving = False
                self._epochs.begin(now)
            return
        self._epochs.add(served, idle, produced)
        if self._epochs.over(now, governor.collecting, disks.silent):
            record.collections.append((now, self._epochs.length(now)))
            observed = self._epochs.observed(
                now, self._chances, governor.maps[EXCHANGE], disks.on_disk, disks.memory, self._rng
            )
            self._carry_out(governor.adapt(observed, self._manifest), served, now, record)
            self._moving = bool(governor.moving)
            if not self._moving:
                self._epochs.begin(now)

    def _begin_moves(self, step: int, queued: np.ndarray, now: float, record: Record) -> None:
        """Tells the governor of the moves whose turn has come."""
        assert self.governor is not None
        for move in self._movement.begin(self._disks.silent, self._disks.on_disk):
            orders = self.governor.turn_came(move.subject, step)
            self._carry_out(orders, queued, now, record)

    def _end_moves(self, taken: np.ndarray, queued: np.ndarray, now: float, record: Record) -> None:
        """Tells the governor of the moves whose state has arrived."""
        assert self.governor is not None
        arrived = self._movement.advance(taken, self.cluster.step)
        if arrived:
            subjects = [move.subject for move in arrived]
            orders = self.governor.arrived(subjects, now + self.cluster.step)
            self._carry_out(orders, queued, now, record)

    def _carry_out(
        self, orders: Sequence[Order], queued: np.ndarray, now: float, record: Record
    ) -> None:
        """Does what the governor says, `queued` being the rows on each site's connections."""
        for order in orders:
            match order:
                case Queue(move):
                    self._movement.add(move)
                case Pause(move):
                    self._disks.keep(move.partition, move.source)
                    self._producers.pause(move.partition, move.source)
                case Fetch(move):
                    self._movement.fetch([move], queued)
                case Install(move):
                    self._producers.resume(move.partition, move.target)
                    self.site[move.partition] = move.target
                    self._disks.leave(move.partition, move.source, move.target)
                    record.moves.append(Moved(now, move.partition, move.source, move.target))

    def validate(self) -> None:
        """Raises RunError unless partitions are where the governor has them, and only its state travels."""
        if self.governor is None:
            return
        protocol, maps = self.governor.holdings.transitions.moves, self.governor.maps
        waiting = {(EXCHANGE, partition) for partition in self._producers.paused}
        protocol.validate({EXCHANGE: maps[EXCHANGE].on(self.site.tolist())}, waiting)
        if waiting != protocol.paused:
            raise RunError("Rows wait of partitions that are not paused.")
        if self._movement.travelling != protocol.paused:
            raise RunError("State travels that is not being moved, or is being moved and does not.")
        if maps[EXCHANGE].sites != tuple(self.site.tolist()):
            raise RunError("Partitions are not where the governor has them.")

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
