"""From what epochs report to views: figures of several epochs, smoothed over rounds.

What is kept over rounds are things that a move does not change: the share of an exchange's rows that each
partition has, and the slowness of each site. So the figures of the epochs before a move are still good for
a view after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anabranch.adapt.known import KnownPartitions, recut
from anabranch.adapt.smoothing import Smoothed
from anabranch.adapt.view import Partitions, Sites, View, slowness
from anabranch.routing.partition_map import PartitionMap

ENOUGH = 0.2
"""With less than this share of the mean work, a site's time tells what is fixed, and not how slow it is."""
ODD = 1.5
"""A site known to be this much slower than most tells nothing about what is fixed."""


@dataclass(frozen=True)
class Traffic:
    """What came through one exchange in an epoch, an element for each partition."""

    rows: np.ndarray
    peak_rows: np.ndarray
    peak_slot: np.ndarray
    seconds: float
    """What all sites together spent on it."""
    rows_out: np.ndarray | None = None
    """The results of each partition, where they are told."""
    worked: np.ndarray | None = None
    """The rows that each site worked on, where these are not all that came for it."""


@dataclass(frozen=True)
class Sample:
    """One epoch on the sites of one level."""

    seconds: float
    """What the busiest site took; in a simulation, the time that passed."""
    busy: np.ndarray
    waiting: np.ndarray
    rows: np.ndarray
    traffic: Mapping[str, Traffic]
    executors: Sequence[str] = ()


@dataclass(frozen=True)
class Standing:
    """What a view needs to know that epochs do not report: it is the driver's."""

    maps: Mapping[str, PartitionMap]
    bytes: Mapping[str, np.ndarray]
    """Bytes of state of each partition."""
    aside: Mapping[str, np.ndarray]
    """Bytes of each partition that are put aside: on disk only."""
    spills: Mapping[str, np.ndarray]
    """Whether the state of each partition can be put aside."""
    closing: Mapping[str, np.ndarray]
    """Whether something that is put aside of each partition has results to give now."""
    since: Mapping[str, np.ndarray]
    """The epoch since which something of each partition is put aside."""
    generations: Mapping[str, np.ndarray]
    """How many generations of each partition are put aside."""
    awaited: Collection[str]
    """The exchanges for whose state, while it is put aside, rows or the time above them wait."""
    fixed: Mapping[str, np.ndarray]
    """Whether each partition must stay where it is."""
    alive: np.ndarray
    memory: np.ndarray
    held: np.ndarray


class Collector:
    """Collects the epochs of one level until someone asks for a view.

    `doubt` are the seconds an epoch by which times differ for no reason, at least.
    """

    def __init__(self, sites: int, smooth: bool, doubt: float = 0.0) -> None:
        self._smooth, self._doubt = smooth, doubt
        self._slowness = Smoothed()
        self._exchanges: dict[str, KnownPartitions] = {}
        self._fixed = 0.0
        """Seconds an epoch that a site takes whatever it has to do."""
        self._fresh = False
        """Whether there was anything new since the view before the last."""
        self._now = 0
        """The last epoch that was taken in."""
        self.resize(sites)

    def resize(self, sites: int) -> None:
        """Goes on with another number of sites; what was collected of the old ones is dropped."""
        self._sites = sites
        self._executors: Sequence[str] = ()
        self._slowness = Smoothed()
        self._last: dict[str, Any] = {}
        self._restart()

    def _restart(self) -> None:
        self.seconds, self.epochs = 0.0, 0
        self._busy, self._waiting, self._rows = (np.zeros(self._sites) for _ in range(3))
        self._worked: dict[str, np.ndarray] = {}
        for known in self._exchanges.values():
            known.rows, known.peak_rows = np.zeros((2, len(known.starts)))
            known.seconds = 0.0

    def _keep(self) -> None:
        """Remembers what was collected, for a view that is wanted before there is more."""
        names = ("seconds", "epochs", "_busy", "_waiting", "_rows", "_worked")
        self._last = {name: getattr(self, name) for name in names}
        self._last["_exchanges"] = {name: replace(e) for name, e in self._exchanges.items()}

    def _restore(self) -> None:
        """What was last collected once more; it is not smoothed in a second time."""
        vars(self).update(self._last)
        self._exchanges = {name: replace(known) for name, known in self._exchanges.items()}

    def add(self, sample: Sample, maps: Mapping[str, PartitionMap], epoch: int) -> None:
        """Takes in an epoch that ran with these maps."""
        self._now = epoch
        self.seconds += sample.seconds
        self.epochs += 1
        self._busy += sample.busy
        self._waiting += sample.waiting
        self._rows += sample.rows
        self._executors = sample.executors
        for name, seen in sample.traffic.items():
            known = self._known(name, maps[name])
            known.rows += seen.rows
            same, larger = seen.peak_slot == known.peak_slot, seen.peak_rows > known.peak_rows
            known.peak_slot = np.where(larger, seen.peak_slot, known.peak_slot)
            most = np.maximum(known.peak_rows, seen.peak_rows)
            known.peak_rows = np.where(same, known.peak_rows + seen.peak_rows, most)
            known.last_use = np.where(seen.rows > 0, epoch, known.last_use)
            if seen.rows_out is not None:
                known.output.add(seen.rows_out)
            known.seconds += seen.seconds
            worked = seen.worked
            if worked is None:
                owners = np.asarray(maps[name].sites)
                worked = np.bincount(owners, weights=seen.rows, minlength=self._sites)
            self._worked[name] = self._worked.get(name, 0) + worked

    def _known(self, name: str, partitions: PartitionMap) -> KnownPartitions:
        known = self._exchanges.get(name)
        cut = partitions.starts, partitions.slots
        if known is None or (known.starts, known.slots) != cut:
            known = self._exchanges[name] = recut(known, partitions, self._now)
        return known

    def view(self, standing: Standing) -> View:
        """What was collected since the last view, per epoch; collecting begins anew.

        If that is nothing, it is what the last view was made of.
        """
        names = tuple(standing.maps)
        self._fresh = self.epochs > 0
        if self._fresh:
            self._keep()
        else:
            self._restore()
        nominal = np.zeros(self._sites)
        for name in names:
            known = self._known(name, standing.maps[name])
            worked = np.asarray(self._worked.get(name, 0.0))
            if worked.sum() > 0 and known.seconds > 0:
                known.cost = known.seconds / float(worked.sum())
            nominal += worked * known.cost
        slow = self._slow(nominal)
        partitions = self._all_partitions(standing, self._load)
        epochs = max(1, self.epochs)
        busy: np.ndarray = self._busy / epochs
        if self._smooth:
            taken = partitions.work * slow[partitions.site]
            busy = self._fixed + np.bincount(partitions.site, taken, self._sites)
        sites = self._all_sites(
            standing, partitions, busy, self._waiting / epochs, self._rows / epochs, slow
        )
        seconds = max(self.seconds / epochs, float(busy.max(initial=0.0)), 1e-9)
        self._restart()
        return View(names, seconds, sites, partitions)

    def kept(self, standing: Standing) -> View:
        """What sites and partitions keep, and what they did as far as it is known: collecting goes on."""
        for name, known in standing.maps.items():
            self._known(name, known)
        partitions = self._all_partitions(standing, KnownPartitions.usual_load)
        slow, none = self._slowness.mean, np.zeros(self._sites)
        if len(slow) != self._sites:
            slow = none + 1
        taken = partitions.work * slow[partitions.site]
        busy = np.bincount(partitions.site, taken, self._sites)
        sites = self._all_sites(standing, partitions, busy, none, none, slow)
        return View(tuple(standing.maps), 1.0, sites, partitions)

    def _all_sites(
        self, standing: Standing, partitions: Partitions, busy: np.ndarray, waiting: np.ndarray,
        rows: np.ndarray, slow: np.ndarray,
    ) -> Sites:  # fmt: skip
        kept, spilled = (
            np.bincount(partitions.site, weights=size, minlength=self._sites)
            for size in (partitions.bytes, partitions.aside)
        )
        return Sites(
            busy=busy, waiting=waiting, rows=rows, slowness=slow,
            resident=kept - spilled, spilled=spilled, held=standing.held,
            memory=standing.memory, alive=standing.alive, executors=tuple(self._executors),
        )  # fmt: skip

    def _all_partitions(
        self, standing: Standing, load: Callable[[KnownPartitions], Sequence[np.ndarray]]
    ) -> Partitions:
        parts = [
            self._partitions(at, name, standing, *load(self._exchanges[name]))
            for at, name in enumerate(standing.maps)
        ]
        return Partitions(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def _slow(self, nominal: np.ndarray) -> np.ndarray:
        if not self._smooth:
            return slowness(self._busy, nominal)
        known = self._slowness.mean
        if not self._fresh and len(known) == self._sites:
            return self._slowness.told_apart()
        telling = nominal > ENOUGH * nominal.mean()
        usual = known <= ODD * np.median(known) if len(known) == self._sites else True
        idle = ~telling & usual
        if telling.any() and idle.any():
            # What little work they had is no part of it
            beside = np.maximum(self._busy - nominal, 0.0)
            least = min(beside[idle].min(), self._busy[telling].min()) / max(1, self.epochs)
            self._fixed = least if self._fixed == 0 else 0.5 * (self._fixed + least)
        found = self._shrunk(nominal, telling)
        self._slowness.add(found, telling)
        return self._slowness.told_apart()

    def _shrunk(self, nominal: np.ndarray, telling: np.ndarray) -> np.ndarray:
        """The slowness of each site, closer to the mean the less its time goes beyond what is fixed."""
        if not telling.any():
            return np.ones(self._sites)
        spent = np.maximum(self._busy - self._fixed * self.epochs, 0.0)
        mean = float(spent[telling].sum() / nominal[telling].sum()) or 1.0
        doubt = (self._fixed + self._doubt) * self.epochs
        found = np.full(self._sites, mean)
        np.divide(mean * (spent + doubt), mean * nominal + doubt, out=found, where=telling)
        return found

    def _load(self, known: KnownPartitions) -> tuple[np.ndarray, np.ndarray]:
        """The rows of each partition of an exchange, and its nominal seconds."""
        count, total = len(known.starts), float(known.rows.sum())
        share = known.rows / total if total > 0 else np.zeros(count)
        if total > 0 and (self._fresh or not self._smooth):
            share = known.shares.add(share) if self._smooth else share
        elif len(known.shares.mean) == count:
            share = known.shares.mean
        if self.epochs:
            known.usual = total / self.epochs
        rows = known.rows / self.epochs if self.epochs else share * known.usual
        return rows, share * known.usual * known.cost

    def _partitions(
        self, number: int, name: str, standing: Standing, rows: np.ndarray, work: np.ndarray
    ) -> list[np.ndarray]:
        """The columns of one exchange's partitions, in the order of the view's fields."""
        known, partitions = self._exchanges[name], standing.maps[name]
        count = partitions.partitions
        return [
            np.full(count, number),
            np.asarray(partitions.starts),
            partitions.widths,
            np.asarray(partitions.sites),
            rows,
            known.output.mean if len(known.output.mean) == count else np.zeros(count),
            work,
            standing.bytes[name],
            standing.aside[name],
            known.last_use,
            standing.spills[name],
            standing.closing[name],
            standing.since[name],
            standing.generations[name],
            np.full(count, name in standing.awaited),
            standing.fixed[name],
            known.peak_rows / np.maximum(known.rows, 1),
            known.peak_slot,
        ]
