"""Faults on purpose: the one hook through which tests and benchmarks reach into a run and its tasks.

A run that nobody burdens has none of it: its tasks ask once for each subquery whether there is any.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from anabranch.errors import SettingsError

StepHook: TypeAlias = Callable[[str, int], None]
"""Called with the name of a step and the number of the epoch."""


@dataclass(frozen=True)
class Burden:
    """What makes a site slow, small or short-lived on purpose."""

    seconds_per_row: float = 0.0
    """Time that every row takes more."""
    slowdown: float = 1.0
    """How many times as long everything takes, this time included."""
    stall: float = 0.0
    """Seconds in which it does nothing."""
    memory: int | None = None
    """Bytes it may keep instead of what the setting says."""
    kill: bool = False
    """Whether its worker is killed at its first work; not where that is the driver."""

    def wait(self, rows: int, seconds: float) -> None:
        """Takes the time that so many rows, which took so many seconds, take under it."""
        time.sleep(max(0.0, self.takes(rows, seconds) - seconds))

    def takes(self, rows: int, seconds: float) -> float:
        """The seconds that so many rows take under it which took so many without it."""
        return (seconds + rows * self.seconds_per_row) * self.slowdown + self.stall


Burdens: TypeAlias = Callable[[int], Mapping[int, Burden]]
"""What weighs on sites in an epoch."""


def require_burdens(burdens: object) -> None:
    """Raises SettingsError unless it is what a run can be burdened with, or nothing."""
    if not (burdens is None or callable(burdens)):
        expected = "a Schedule or another function of the epoch for burdens"
        raise SettingsError(f"Expected {expected}, got {burdens!r}: Schedule([slow(0)]), say.")


@dataclass(frozen=True)
class SiteFaults:
    """What is done to the sites in one epoch; tasks get it with their orders."""

    burdens: Mapping[int, Burden]
    driver: int
    """The process that must live."""
    mark: Path
    """The beginning of the names that tell which workers have been killed: their successors live."""

    def worked(self, site: int, rows: int, seconds: float) -> None:
        """What happens to a site that has worked on so many rows for so many seconds."""
        burden = self.burdens.get(site)
        if burden is None:
            return
        if burden.kill and os.getpid() != self.driver:
            with contextlib.suppress(FileExistsError):
                self.mark.with_name(f"{self.mark.name}-{site}").touch(exist_ok=False)
                os.kill(os.getpid(), signal.SIGKILL)
        burden.wait(rows, seconds)

    def memory(self) -> dict[int, int]:
        """The bytes that sites may keep, where that is not what the setting says."""
        found = {site: burden.memory for site, burden in self.burdens.items()}
        return {site: memory for site, memory in found.items() if memory is not None}


@dataclass(frozen=True)
class Faults:
    """What is done to a run on purpose."""

    on_step: StepHook = lambda step, epoch: None
    """Called at each step of an epoch; what it raises ends the run there."""
    burdens: Burdens | None = None

    def of_sites(self, epoch: int, attempt: str, checkpoint: Path) -> SiteFaults | None:
        """What is done to the sites in an epoch; None if nothing is."""
        burdens = self.burdens(epoch) if self.burdens else {}
        mark = checkpoint / f".killed-{epoch}-{attempt}"
        return SiteFaults(burdens, os.getpid(), mark) if burdens else None
