"""A process and all it starts in a control group of its own, with a limit of memory that the kernel keeps.

Only the first edition of control groups, whose memory controller must be mounted and writable.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

CONTROLLER = Path("/sys/fs/cgroup/memory")
INTERVAL = 0.2
ENTER = 'echo $$ > "$0" && exec "$@"'
"""The shell joins the group, then becomes the process."""


@dataclass(frozen=True)
class Confinement:
    """How a process in a group got on."""

    exit: str
    """"done", "killed" by the kernel, "failed", or "given up" by who waited for it."""
    seconds: float
    peak_bytes: int
    """The most that processes kept for themselves at one time."""
    most_bytes: int
    """The same with what was cached of files: at most the limit."""
    major_faults: int
    """Pages that had to be read from disk when they were touched."""
    killed: int
    """Processes that the kernel has killed because the group was full."""
    noise: str
    """The end of what was written to standard error."""


def missing() -> str | None:
    """Why no group can be made here; None if one can."""
    if not (CONTROLLER / "memory.limit_in_bytes").exists():
        return f"there is no memory controller at {CONTROLLER}"
    if not os.access(CONTROLLER, os.W_OK):
        return f"{CONTROLLER} cannot be written: it needs root"
    return None


def run_confined(
    command: Sequence[str], limit: int, give_up: Callable[[float], bool], noise: Path
) -> Confinement:
    """Runs a command with so many bytes of memory, until it is to be given up after some seconds."""
    with _group(limit) as group, noise.open("w+") as errors:
        began = time.monotonic()
        process = subprocess.Popen(
            ["/bin/sh", "-c", ENTER, str(group / "cgroup.procs"), *command],
            stdout=errors, stderr=errors, start_new_session=True,
        )  # fmt: skip
        peak, given_up = 0, False
        try:
            while process.poll() is None:
                peak = max(peak, _stat(group, "total_rss"))
                if give_up(time.monotonic() - began):
                    given_up = True
                    _end(group)
                time.sleep(INTERVAL)
        finally:
            _end(group)
            process.wait()
        elapsed = time.monotonic() - began
        killed = int(_fields(group / "memory.oom_control").get("oom_kill", "0"))
        faults, most = _stat(group, "total_pgmajfault"), group / "memory.max_usage_in_bytes"
        errors.seek(0)
        ended = "done" if process.returncode == 0 else "killed" if killed else "failed"
        return Confinement(
            "given up" if given_up else ended,
            elapsed, peak, int(most.read_text()), faults, killed, errors.read()[-2000:],
        )  # fmt: skip


@contextlib.contextmanager
def _group(limit: int) -> Iterator[Path]:
    group = CONTROLLER / f"anabranch-bench-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        yield group
    finally:
        _end(group)
        group.rmdir()


def _end(group: Path) -> None:
    """Kills all that is in a group, also what a process that has ended has left."""
    for _ in range(100):
        members = (group / "cgroup.procs").read_text().split()
        if not members:
            return
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(member), signal.SIGKILL)
        time.sleep(0.1)


def _stat(group: Path, name: str) -> int:
    return int(_fields(group / "memory.stat").get(name, "0"))


def _fields(path: Path) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in path.read_text().splitlines())
