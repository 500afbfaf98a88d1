"""A folder as it was at the last look, and what of it is cheap to ask for."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from anabranch.sources.paths import Fit

Stamp = tuple[int, int, int, int]
"""What tells a folder, and whether names came or went: device, number, time of change, of any change."""

Named = tuple[str, bool, bool]
"""A name, whether it is that of a folder, and whether it is a link."""


@dataclass
class Folder:
    """A folder that is looked into, as it was at the last look."""

    path: str
    real: str
    name: str
    """The beginning of the names in it, with a separator at the end."""
    fit: Fit
    linked: bool = False
    """Whether it is reached through a link below the root."""
    stamp: Stamp | None = None
    names: set[str] = field(default_factory=set)
    """What is in it; the names of folders end with a separator."""
    watch: int | None = None
    settles: float | None = None
    """When it is to be listed again although its times are what they were."""


def mark(name: str, is_folder: bool) -> str:
    """A name that tells a folder from what is none."""
    return name + os.sep if is_folder else name


def unmark(name: str) -> str:
    return name.removesuffix(os.sep)


def stamp_of(path: str) -> Stamp | None:
    try:
        entry = os.stat(path)
    except OSError:
        return None
    return entry.st_dev, entry.st_ino, entry.st_mtime_ns, entry.st_ctime_ns


def kind_of(path: str) -> tuple[bool, bool] | None:
    """Whether something is a folder, and whether it is a link; None if it is not there."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return None
    return stat.S_ISDIR(mode), stat.S_ISLNK(mode)
