"""Sites with less memory than state: partitions are written to disk and take turns in memory (F8).

Disks work synchronously: while one reads or writes a partition, its site serves no rows and answers no
messages. A site that keeps too much writes until the rest fits. From then on it brings partitions back,
at once where there is room, else in exchange for the one that has been in memory for longest, and
gives disk and rows their shares of the time. Rows for a partition on disk are set aside there and worked
off when it is back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from anabranch.simulate.cluster import Cluster


@dataclass
class Job:
    """A partition being written or read."""

    partition: int
    left: float
    writes: bool
    turn: bool
    """Whether it is part of the rotation, and not needed to get down to the memory there is."""


@dataclass
class Pressed:
    """A site that keeps more than its memory."""

    resident: deque[int]
    on_disk: deque[int] = field(default_factory=deque)
    job: Job | None = None
    serving: float = 0.0
    """Seconds for rows before the disk's next turn."""


class Disks:
    """The disks of all sites, of which only those short of memory have anything to do."""

    def __init__(self, cluster: Cluster, site: np.ndarray, rng: np.random.Generator) -> None:
        self._cluster = cluster
        self._rng = rng
        self._site = site
        self.memory = np.full(cluster.sites, cluster.memory)
        self.pressed: dict[int, Pressed] = {}
        self.on_disk = np.zeros(cluster.partitions, dtype=bool)
        self.aside = np.zeros(cluster.partitions)
        """Rows that wait for partitions on disk."""
        self._came = np.zeros(cluster.partitions)
        """The sum of the times at which these came."""
        self.silent: set[int] = set()
        """Sites that were at their disks for all of the last step."""
        self.read: list[int] = []
        """Partitions that came back in the last step."""

    def check(self) -> None:
        """Finds the sites that have become short of memory."""
        kept = np.bincount(self._site, minlength=len(self.memory)) * self._cluster.partition_bytes
        for site in np.flatnonzero(kept > self.memory).tolist():
            if site not in self.pressed:
                self.pressed[site] = Pressed(deque(np.flatnonzero(self._site == site).tolist()))

    def leave(self, partition: int, source: int, target: int) -> None:
        """A partition has moved."""
        for site, arrives in ((source, False), (target, True)):
            if site in self.pressed:
                resident = self.pressed[site].resident
                resident.append(partition) if arrives else resident.remove(partition)
        self.check()

    def keep(self, partition: int, site: int) -> None:
        """A partition is about to move: if it is being written, that was for nothing."""
        pressed = self.pressed.get(site)
        if pressed is not None and pressed.job is not None and pressed.job.partition == partition:
            pressed.job = None

    def step(
        self, needed: dict[int, float], moving: set[int], wanted: set[int]
    ) -> dict[int, float]:
        """Goes on by one step; the seconds of it that each site short of memory has for rows.

        `needed` are seconds that sites need for moves, which they have also while they get down to
        their memory; partitions that are `wanted` for a move are read before others.
        """
        self.silent, self.read, left = set(), [], {}
        for site, pressed in list(self.pressed.items()):
            for partition in wanted.intersection(pressed.on_disk):
                pressed.on_disk.remove(partition)
                pressed.on_disk.appendleft(partition)
            before = pressed.job
            left[site] = self._work(site, pressed, needed.get(site, 0.0), moving)
            if before is not None and before is pressed.job:
                self.silent.add(site)
            if not pressed.on_disk and pressed.job is None and not self._excess(site, pressed):
                del self.pressed[site]
        return left

    def set_aside(self, rows: float, chances: np.ndarray, now: float) -> None:
        """Rows for partitions on disk; `chances` says how they divide."""
        self.aside += rows * chances
        self._came += rows * now * chances

    def back(self, partition: int, now: float) -> tuple[float, float]:
        """Rows that waited for a partition that is back, and for how long all of them together."""
        rows = float(self.aside[partition])
        waited = rows * now - float(self._came[partition])
        self.aside[partition] = self._came[partition] = 0.0
        return rows, waited

    def _excess(self, site: int, pressed: Pressed) -> bool:
        return bool(len(pressed.resident) * self._cluster.partition_bytes > self.memory[site])

    def _work(self, site: int, pressed: Pressed, needed: float, moving: set[int]) -> float:
        """Spends one step on disk and rows; the seconds for rows."""
        budget, rows = self._cluster.step, 0.0
        while budget > 0:
            if pressed.job is not None:
                spent = min(budget, pressed.job.left)
                pressed.job.left -= spent
                budget -= spent
                if pressed.job.left <= 1e-12:
                    self._finish(pressed, pressed.job, needed)
                continue
            spent = min(budget, pressed.serving)
            pressed.serving -= spent
            rows += spent
            budget -= spent
            if budget > 0:
                pressed.job = self._choose(site, pressed, moving)
                if pressed.job is None:
                    return rows + budget
        return rows

    def _choose(self, site: int, pressed: Pressed, moving: set[int]) -> Job | None:
        excess = self._excess(site, pressed)
        size = self._cluster.partition_bytes
        room = (len(pressed.resident) + 1) * size <= self.memory[site]
        if not excess and not pressed.on_disk:
            return None
        if room:
            partition = pressed.on_disk[0]
            return self._job(
                partition, size + self.aside[partition] * self._cluster.row_bytes, False, True
            )
        free = (partition for partition in pressed.resident if partition not in moving)
        partition = next(free, -1)
        return None if partition < 0 else self._job(partition, size, True, not excess)

    def _job(self, partition: int, size: float, writes: bool, turn: bool) -> Job:
        seek = self._rng.normal(self._cluster.seek, self._cluster.seek_deviation)
        return Job(partition, seek + size / self._cluster.disk, writes, turn)

    def _finish(self, pressed: Pressed, job: Job, needed: float) -> None:
        pressed.job = None
        if job.writes:
            pressed.resident.remove(job.partition)
            pressed.on_disk.append(job.partition)
        else:
            pressed.on_disk.remove(job.partition)
            pressed.resident.append(job.partition)
            self.read.append(job.partition)
        self.on_disk[job.partition] = job.writes
        share = self._cluster.disk_share
        seconds = self._cluster.partition_bytes / self._cluster.disk
        pressed.serving = seconds * (1 - share) / share if job.turn else needed
