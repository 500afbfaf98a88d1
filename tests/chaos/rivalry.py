"""What tests of two drivers on one checkpoint share: a driver to stop, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from helpers import Stage, manifests, missing, sample

FILES = 6
GOOD = [sample(number) for number in range(FILES)]
RIVAL = Path(__file__).with_name("rival.py")
LOSING = ("Another run has taken over", "is in use by process", "Stop that run first", "done")
"""How the other of two ends: overtaken, refused by the lock or by the result folder, or all was over."""
HERE: Mapping[str, str] = MappingProxyType({})
"""The environment of a driver on this machine."""


def filled(root: Path) -> Stage:
    stage = Stage(root)
    for number, rows in enumerate(GOOD):
        stage.write(number, rows)
    return stage


@contextlib.contextmanager
def stopped(
    stage: Stage, checkpoint: str, step: str, epoch: int, machine: Mapping[str, str] = HERE
) -> Iterator[Any]:
    """A driver that has stopped itself in the middle."""
    command = [sys.executable, str(RIVAL), str(stage.root), checkpoint, step, str(epoch)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **machine}
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait(60)


def contents(*folders: Path) -> dict[Path, str]:
    """What files hold, but for the lock and the histories, to which each run adds its own end."""
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and path.name != "lock" and path.suffix != ".events"
    }


def one_line(stage: Stage) -> None:
    """The kept manifests follow one another, all of the last run."""
    entries = manifests(stage.checkpoint)
    first = entries[0].serial
    assert [entry.serial for entry in entries] == list(range(first, first + len(entries)))
    assert len({entry.token for entry in entries}) == 1
    assert missing(stage.checkpoint) == set()
