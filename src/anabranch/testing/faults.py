"""Faults and load on purpose: slow sites, stalled ones, ones with little memory, workers that are killed.

A schedule says in which epochs what weighs on which site; a run takes it as `burdens`. It can be written by
hand or drawn from a seed. What it does to the results is: nothing. What it does to the times, and what the
controller makes of that, is what one wants to see.

>>> import polars as pl
>>> from anabranch import Session, count
>>> from anabranch.testing.sources import EpochSource
>>> session = Session.in_process(sites=2)
>>> rows = [pl.DataFrame({"time": [at] * 8, "k": range(8)}) for at in range(4)]
>>> stream = session.stream("rows", EpochSource(rows), ordered="time", lateness=0)
>>> flows = session.query("flows", stream.group_by("time", "k").agg(count().alias("n")))
>>> faults = Schedule([slow(site=0, seconds_per_row=0.0001, until=3), stalled(site=1, epoch=2, seconds=0.01)])
>>> run = session.start(sinks={"flows": "memory"}, at_end="close", burdens=faults)
>>> run.await_termination(), run.results("flows").height
(True, 32)
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from anabranch.engine.faults import Burden
from anabranch.errors import SettingsError

FLUX_SLOWDOWN = 1 / 0.43
"""The load of Flux's experiments, 100 µs busy and 50 µs asleep in turn, left a site 0.43 of its rate."""


@dataclass(frozen=True)
class Affliction:
    """One burden on one site, from an epoch until before another; without `until` for good."""

    site: int
    burden: Burden
    from_epoch: int = 0
    until: int | None = None

    def __post_init__(self) -> None:
        _at_least("site", self.site, 0)
        _at_least("epoch", self.from_epoch, 0)
        if self.until is not None and self.until <= self.from_epoch:
            raise SettingsError(
                f"A fault of site {self.site} begins in epoch {self.from_epoch} and lasts until before "
                f"epoch {self.until}: it would never be felt. Give a later 'until', or none."
            )

    def felt_in(self, epoch: int) -> bool:
        return self.from_epoch <= epoch and (self.until is None or epoch < self.until)


def slow(
    site: int, seconds_per_row: float = 0.0, slowdown: float | None = None, from_epoch: int = 0,
    until: int | None = None,
) -> Affliction:  # fmt: skip
    """A slow site: so much more time for every row, everything so many times as long.

    Without either it is the load of Flux's experiments.

    >>> round(slow(0).burden.slowdown, 2), slow(0, seconds_per_row=0.001).burden.slowdown
    (2.33, 1.0)
    """
    _at_least("seconds_per_row", seconds_per_row, 0)
    if slowdown is None:
        slowdown = 1.0 if seconds_per_row else FLUX_SLOWDOWN
    _at_least("slowdown", slowdown, 1)
    burden = Burden(seconds_per_row=seconds_per_row, slowdown=slowdown)
    return Affliction(site, burden, from_epoch, until)


def stalled(site: int, epoch: int, seconds: float = 0.5) -> Affliction:
    """A site that does nothing for a while, in one epoch.

    >>> Schedule([stalled(1, epoch=4, seconds=2.0)])(4)[1].stall
    2.0
    """
    _at_least("seconds", seconds, 0)
    return Affliction(site, Burden(stall=seconds), epoch, epoch + 1)


def small_memory(
    site: int, bytes: int, from_epoch: int = 0, until: int | None = None
) -> Affliction:
    """A site that may keep so many bytes of state, whatever the setting `site_memory_bytes` says.

    >>> small_memory(2, 1_000_000).burden.memory
    1000000
    """
    _at_least("bytes", bytes, 1)
    return Affliction(site, Burden(memory=bytes), from_epoch, until)


def killed_worker(site: int, epoch: int) -> Affliction:
    """The process of a site is killed when it first gets to work in an epoch; the task is run again.

    Nothing happens where that process is the driver: in an in-process session.

    >>> killed_worker(0, epoch=3).burden.kill
    True
    """
    return Affliction(site, Burden(kill=True), epoch, epoch + 1)


@dataclass(frozen=True)
class Schedule:
    """What weighs on the sites in every epoch; several faults of a site add up.

    >>> faults = [slow(0, seconds_per_row=0.001), slow(0, slowdown=2, from_epoch=5)]
    >>> both = Schedule([*faults, small_memory(1, bytes=10)])
    >>> sorted(both(0)), both(0)[0].slowdown, both(5)[0].slowdown, both(5)[0].seconds_per_row
    ([0, 1], 1.0, 2.0, 0.001)
    """

    afflictions: Sequence[Affliction] = ()

    def __post_init__(self) -> None:
        for one in self.afflictions:
            if not isinstance(one, Affliction):
                raise SettingsError(
                    "A schedule is made of slow(), stalled(), small_memory() and killed_worker(); got "
                    f"{one!r}."
                )

    def __call__(self, epoch: int) -> dict[int, Burden]:
        found: dict[int, Burden] = {}
        for one in self.afflictions:
            if one.felt_in(epoch):
                known = found.get(one.site)
                found[one.site] = one.burden if known is None else together(known, one.burden)
        return found


def together(one: Burden, other: Burden) -> Burden:
    """Two burdens on the same site."""
    limits = [burden.memory for burden in (one, other) if burden.memory is not None]
    return replace(
        one,
        seconds_per_row=one.seconds_per_row + other.seconds_per_row,
        slowdown=float(one.slowdown * other.slowdown),
        stall=one.stall + other.stall,
        memory=min(limits, default=None),
        kill=one.kill or other.kill,
    )


def random_schedule(
    seed: int, sites: int, epochs: int, *, faults: int = 4, seconds_per_row: float = 0.001,
    stall_seconds: float = 0.5, memory: int = 1_000_000, kills: bool = False,
) -> Schedule:  # fmt: skip
    """Up to so many faults at random, the same for the same seed; each at most as bad as given here.

    >>> random_schedule(7, sites=4, epochs=20) == random_schedule(7, sites=4, epochs=20)
    True
    >>> all(one.site < 4 for one in random_schedule(7, sites=4, epochs=20).afflictions)
    True
    """
    _at_least("sites", sites, 1)
    _at_least("epochs", epochs, 1)
    _at_least("faults", faults, 0)
    draw = random.Random(seed)
    kinds = ["slow", "slow", "loaded", "stalled", "memory", *(["killed"] if kills else [])]
    made = []
    for _ in range(draw.randint(min(1, faults), faults)):
        site, begin, severity = draw.randrange(sites), draw.randrange(epochs), draw.uniform(0.1, 1)
        until = draw.choice([None, begin + draw.randint(1, epochs)])
        match draw.choice(kinds):
            case "slow":
                made.append(slow(site, severity * seconds_per_row, None, begin, until))
            case "loaded":
                made.append(slow(site, 0.0, 1 + severity * 2 * (FLUX_SLOWDOWN - 1), begin, until))
            case "stalled":
                made.append(stalled(site, begin, severity * stall_seconds))
            case "memory":
                made.append(small_memory(site, max(1, int(severity * memory)), begin, until))
            case "killed":
                made.append(killed_worker(site, begin))
    return Schedule(tuple(made))


def _at_least(name: str, value: Any, least: float) -> None:
    if not isinstance(value, (int, float)) or value < least:
        raise SettingsError(
            f"A fault was asked for with {name} {value!r}; expected a number, at least {least}."
        )
