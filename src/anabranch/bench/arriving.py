"""Files that arrive one by one, and how long it takes until the results that they bring can be read."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from anabranch.errors import RunError

LONGEST = 120.0
"""Seconds after which results are no longer waited for."""
_PATH = re.compile(r'"path":"([^"]+)"')


def arrivals(
    files: list[Path], folder: Path, seen: Callable[[], int], ended: Callable[[], bool]
) -> list[float]:
    """Milliseconds from the arrival of each file but the first until more results are to be seen.

    Each file closes the window of the one before it, and comes when the results of that are there.
    """
    folder.mkdir(exist_ok=True)
    os.link(files[0], folder / files[0].name)
    times, known = [], 0
    for path in files[1:]:
        os.link(path, folder / path.name)
        began = time.monotonic()
        while (now := seen()) == known:
            if ended() or time.monotonic() - began > LONGEST:
                raise RunError(f"No results came after '{path.name}' had arrived.")
            time.sleep(0.002)
        times.append(1000 * (time.monotonic() - began))
        known = now
    return times


def epochs_seen(results: Path) -> int:
    """The epochs whose results are visible in a folder of ours."""
    return sum(1 for _ in results.glob("epoch=*")) if results.exists() else 0


def files_seen(results: Path) -> int:
    """The files that Spark's log of a sink names: who reads the folder with Spark sees these alone."""
    log = results / "_spark_metadata"
    entries = [entry for entry in log.glob("[0-9]*") if not entry.name.endswith(".tmp")]
    return len({path for entry in entries for path in _PATH.findall(entry.read_text())})
