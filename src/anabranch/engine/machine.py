"""What memory there is for state on the machine, or in the container, that a process runs in."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""What a control group says that has no limit is at least this."""
LIMITS = {"memory.max": "anon", "memory.limit_in_bytes": "total_rss"}
"""The file with the limit of a control group, by edition, and what its processes have for themselves."""


def free_memory(proc: Path = PROC, groups: Path = CGROUPS) -> int:
    """The bytes that no process here keeps for itself; what is cached of files makes room for other files."""
    found = [_of_machine(proc)]
    with contextlib.suppress(OSError):
        for line in (proc / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers not in ("", "memory"):
                continue
            root = groups / controllers
            # Within a container, its own group is often mounted as the root
            for group in {*_upwards(root, path), root}:
                found += _of_group(group)
    return max(0, min(found))


def _of_machine(proc: Path) -> int:
    with contextlib.suppress(OSError):
        for name, size, *_ in map(str.split, (proc / "meminfo").read_text().splitlines()):
            if name == "MemAvailable:":
                return int(size) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _upwards(root: Path, path: str) -> list[Path]:
    whole = root / path.strip("/")
    return [whole, *(parent for parent in whole.parents if parent.is_relative_to(root))]


def _of_group(group: Path) -> list[int]:
    """What a control group has left; nothing if it has no limit."""
    for name, own in LIMITS.items():
        with contextlib.suppress(OSError, ValueError):
            limit = int((group / name).read_text())
            if limit >= NO_LIMIT:
                return []
            stat = dict(map(str.split, (group / "memory.stat").read_text().splitlines()))
            return [limit - int(stat.get(own, 0))]
    return []
