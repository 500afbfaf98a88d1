"""From what epochs report to views: figures of several epochs, smoothed over rounds.

What is kept over rounds are things that a move does not change: the share of an exchange's rows that each
partition has, and the slowness of each site. So the figures of the epochs before a move are still good for
a view after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

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
    rows_out: int = 0
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


@dataclass
class _Exchange:
    """What is known of an exchange's partitions."""

    starts: tuple[int, ...]
    slots: int
    rows: np.ndarray
    rows_out: float = 0.0
    seconds: float = 0.0
    peak_rows: np.ndarray = field(default_factory=lambda: np.zeros(0))
    peak_slot: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    last_use: np.ndarray = field(default_factory=lambda: np.zeros(0))
    shares: Smoothed = field(default_factory=Smoothed)
    cost: float = 0.0
    """Nominal seconds a row."""
    usual: float = 0.0
    """Rows of an epoch, when there last were any."""


@dataclass(frozen=True)
class Standing:
    """What a view needs to know that epochs do not report: it is the driver's."""

    maps: Mapping[str, PartitionMap]
    bytes: Mapping[str, np.ndarray]
    """Bytes of state of each partition."""
    on_disk: Mapping[str, np.ndarray]
    """Whether the state of each partition was spilled."""
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
        self._exchanges: dict[str, _Exchange] = {}
        self._fixed = 0.0
        """Seconds an epoch that a site takes whatever it has to do."""
        self._fresh = False
        """Whether there was anything new since the view before the last."""
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
            known.rows = np.zeros(len(known.starts))
            known.peak_rows = np.zeros(len(known.starts))
            known.rows_out = known.seconds = 0.0

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
            known.rows_out += seen.rows_out
            known.seconds += seen.seconds
            worked = seen.worked
            if worked is None:
                owners = np.asarray(maps[name].sites)
                worked = np.bincount(owners, weights=seen.rows, minlength=self._sites)
            self._worked[name] = self._worked.get(name, 0) + worked

    def _known(self, name: str, partitions: PartitionMap) -> _Exchange:
        known = self._exchanges.get(name)
        cut = partitions.starts, partitions.slots
        if known is None or (known.starts, known.slots) != cut:
            known = self._exchanges[name] = _recut(known, partitions)
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
        parts = [self._partitions(at, name, standing) for at, name in enumerate(names)]
        partitions = Partitions(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        epochs = max(1, self.epochs)
        busy: np.ndarray = self._busy / epochs
        if self._smooth:
            taken = partitions.work * slow[partitions.site]
            busy = self._fixed + np.bincount(partitions.site, taken, self._sites)
        kept, spilled = (
            np.bincount(partitions.site, weights=size, minlength=self._sites)
            for size in (partitions.bytes, partitions.bytes * partitions.on_disk)
        )
        sites = Sites(
            busy=busy, waiting=self._waiting / epochs, rows=self._rows / epochs, slowness=slow,
            resident=kept - spilled, spilled=spilled, held=standing.held,
            memory=standing.memory, alive=standing.alive, executors=tuple(self._executors),
        )  # fmt: skip
        seconds = max(self.seconds / epochs, float(busy.max(initial=0.0)), 1e-9)
        self._restart()
        return View(names, seconds, sites, partitions)

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

    def _partitions(self, number: int, name: str, standing: Standing) -> list[np.ndarray]:
        """The columns of one exchange's partitions, in the order of the view's fields."""
        known, partitions = self._exchanges[name], standing.maps[name]
        count, total = partitions.partitions, float(known.rows.sum())
        share = known.rows / total if total > 0 else np.zeros(count)
        if total > 0 and (self._fresh or not self._smooth):
            share = known.shares.add(share) if self._smooth else share
        elif len(known.shares.mean) == count:
            share = known.shares.mean
        scale = max(1, self.epochs)
        if self.epochs:
            known.usual = total / scale
        rows = known.rows / scale if self.epochs else share * known.usual
        return [
            np.full(count, number),
            np.asarray(partitions.starts),
            partitions.widths,
            np.asarray(partitions.sites),
            rows,
            known.rows_out / scale * share,
            share * known.usual * known.cost,
            standing.bytes[name],
            standing.on_disk[name],
            known.last_use,
            standing.fixed[name],
            known.peak_rows / np.maximum(known.rows, 1),
            known.peak_slot,
        ]


def _recut(known: _Exchange | None, partitions: PartitionMap) -> _Exchange:
    """What was known of other cuts of the slots, spread over the new partitions by their lengths.

    There may be more slots than before, the cells of hot keys, and fewer: an epoch that ran when cells were
    decided on does not have them yet. Nothing is known of slots that only one of the cuts has.
    """
    count = partitions.partitions
    made = _Exchange(partitions.starts, partitions.slots, np.zeros(count))
    made.peak_rows, made.last_use = np.zeros(count), np.zeros(count)
    made.peak_slot = np.asarray(partitions.starts)
    if known is None:
        return made
    widths = np.diff([*known.starts, known.slots])
    common = min(known.slots, partitions.slots)

    def spread(values: np.ndarray) -> np.ndarray:
        each = np.zeros(partitions.slots)
        each[:common] = np.repeat(values / widths, widths)[:common]
        found: np.ndarray = np.add.reduceat(each, np.asarray(partitions.starts))
        return found

    made.rows, made.cost, made.usual = spread(known.rows), known.cost, known.usual
    made.rows_out, made.seconds = known.rows_out, known.seconds
    if len(known.shares.mean) == len(known.starts):
        old = np.searchsorted(known.starts, partitions.starts, "right") - 1
        mean, deviation = spread(known.shares.mean), spread(known.shares.deviation)
        made.shares = Smoothed(mean, deviation, known.shares.seen[old])
    return made
