"""What memory there is for state on the machine, or in the container, that a process runs in."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""What a control group says that has no limit is at least this."""
LIMITS = {"memory.max": "anon", "memory.limit_in_bytes": "total_rss"}
"""The file with the limit of a control group, by edition, and what its processes have for themselves."""


def free_memory(proc: Path = PROC, groups: Path = CGROUPS) -> int:
    """The bytes that no process here keeps for itself; what is cached of files makes room for other files."""
    # Every site asks in every epoch: paths are plain texts here
    found = [_of_machine(str(proc))]
    with contextlib.suppress(OSError):
        for line in _read(f"{proc}/self/cgroup").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers in ("", "memory"):
                # Within a container, its own group is often mounted as the root
                for group in _upwards(os.path.join(groups, controllers), path.strip("/")):
                    found += _of_group(group)
    return max(0, min(found))


def _of_machine(proc: str) -> int:
    with contextlib.suppress(OSError):
        for line in _read(f"{proc}/meminfo").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _upwards(root: str, path: str) -> Iterator[str]:
    """The folder of a path below the root, and those that it is in, the root with them."""
    while path:
        yield os.path.join(root, path)
        path = os.path.dirname(path)
    yield root


def _of_group(group: str) -> list[int]:
    """What a control group has left; nothing if it has no limit."""
    for name, own in LIMITS.items():
        with contextlib.suppress(OSError, ValueError):
            limit = int(_read(f"{group}/{name}"))
            if limit >= NO_LIMIT:
                return []
            stat = dict(map(str.split, _read(f"{group}/memory.stat").splitlines()))
            return [limit - int(stat.get(own, 0))]
    return []


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()
