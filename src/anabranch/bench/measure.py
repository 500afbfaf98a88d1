"""What a benchmark measures besides rows and time: memory, the load of the machine, spreads.

Memory is that of a whole process tree. RSS counts a page that two processes map once for each of them;
PSS shares it out, but the kernel has to walk the page tables for it, so it is sampled more rarely.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import psutil

INTERVAL = 0.05
FAMILY_INTERVAL = 0.25
"""Listing the tree reads all processes of the machine; too dear for every sample."""
PSS_SHARE = 0.02
"""At most this part of the time goes into PSS, which stops the process it looks at."""
MB = 1024 * 1024


@dataclass(frozen=True)
class Peak:
    """The most memory a process tree held at any one time, in MB, and the time it was computing."""

    rss_mb: float
    pss_mb: float
    cpu_seconds: float
    processes: int
    samples: int
    pss_samples: int


class MemoryWatch(threading.Thread):
    """Samples a process and all it starts, until told to stop."""

    def __init__(self, process: int) -> None:
        super().__init__(name="memory-watch", daemon=True)
        self._root = psutil.Process(process)
        self._done = threading.Event()
        self._rss = self._pss = 0
        self._cpu: dict[psutil.Process, float] = {}
        self._processes = self._samples = self._pss_samples = 0

    def run(self) -> None:
        family: list[psutil.Process] = []
        listed: set[psutil.Process] = set()
        list_at = pss_at = 0.0
        while not self._done.wait(INTERVAL):
            now = time.monotonic()
            if now >= list_at:
                # Counted from the second time on: a JVM that starts a helper (Hadoop's chmod)
                # shares all its memory with it for a moment, and would be counted twice
                seen = _family(self._root)
                family = [member for member in seen if member in listed]
                listed = set(seen)
                self._cpu |= {member: _cpu(member, self._cpu.get(member, 0.0)) for member in family}
                list_at = now + FAMILY_INTERVAL
            self._samples += 1
            self._processes = max(self._processes, len(family))
            self._rss = max(self._rss, sum(_rss(member) for member in family))
            if now >= pss_at:
                began = time.monotonic()
                self._pss = max(self._pss, sum(_pss(member) for member in family))
                self._pss_samples += 1
                pss_at = began + (time.monotonic() - began) / PSS_SHARE

    def finish(self) -> Peak:
        """Stops sampling and returns the peaks."""
        self._done.set()
        self.join()
        return Peak(
            round(self._rss / MB, 1), round(self._pss / MB, 1), round(sum(self._cpu.values()), 2),
            self._processes, self._samples, self._pss_samples,
        )  # fmt: skip


def cpu_seconds() -> float:
    """For how long this process, and all that it has started, have been computing."""
    found = 0.0
    for member in _family(psutil.Process()):
        with contextlib.suppress(psutil.Error):
            times = member.cpu_times()
            # Those of children that have ended, too
            found += times.user + times.system + times.children_user + times.children_system
    return found


def _family(root: psutil.Process) -> list[psutil.Process]:
    try:
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _cpu(process: psutil.Process, known: float) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:
        return known
    return float(times.user + times.system)


def _pss(process: psutil.Process) -> int:
    try:
        return int(getattr(process.memory_full_info(), "pss", 0))
    except psutil.Error:
        return 0


@dataclass(frozen=True)
class Repeated:
    """Repeated values: the one in the middle, and how far apart they are."""

    median: float
    least: float
    most: float
    values: tuple[float, ...]

    @property
    def relative(self) -> float:
        """The distance between the extremes as a part of the median."""
        return (self.most - self.least) / self.median if self.median else 0.0


def spread(values: Sequence[float]) -> Repeated:
    """The spread of at least one value.

    >>> spread([3.0, 1.0, 2.0]).median
    2.0
    """
    return Repeated(statistics.median(values), min(values), max(values), tuple(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed.

    >>> percentile([4, 1, 3, 2], 0.5)
    2
    """
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def load() -> list[float]:
    """How many processes wanted to run, on average over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def machine() -> dict[str, Any]:
    """Where the figures come from."""
    packages = ("anabranch", "pyspark", "polars", "pyarrow", "numpy", "duckdb")
    return {
        "cores": os.cpu_count(),
        "memory_mb": round(psutil.virtual_memory().total / MB),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: _version(name) for name in packages},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "not installed"
