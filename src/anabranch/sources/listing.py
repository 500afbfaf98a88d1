"""The files that a path stands for, with their sizes and times.

A file is known by its name below the root of the path, so that the folder may be moved or reached through a
link; a link is known by what it points to as well, so that nothing is read twice under two names.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from anabranch.errors import SourceError
from anabranch.sources.tree import FileEntry
from anabranch.state.uris import is_object

Version = tuple[int, int, int]
"""The size of a file, the time of its contents and that of its last change."""


@dataclass(frozen=True)
class ListedFile:
    """A file as a listing shows it."""

    path: str
    names: tuple[str, ...]
    """What it is known by: its name below the root, and for links that of what they point to."""
    modified: int
    size: int
    regular: bool
    """Whether it can be read like a file; reading what is none says what is wrong with it."""
    changed: int
    """When anything of it has changed, its name too: unlike the time of its contents, nobody can set it."""
    etag: str | None = None
    """What an object store tells this object from another one of its name by."""
    inode: int = 0
    """What tells it from another file that is put in its place."""
    taken: int = 0
    """Of a file that is followed, the bytes that were read before."""

    @classmethod
    def at(cls, path: str, names: tuple[str, ...]) -> ListedFile | None:
        """The file as it is now; None if it cannot be looked at."""
        try:
            return _listed(path, names, os.stat(path))
        except OSError:
            return None

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def version(self) -> Version:
        return self.size, self.modified, self.changed

    def renewed(self) -> ListedFile:
        """The file as it is now; as it was, if it cannot be looked at: whoever reads it says why."""
        if is_object(self.path):
            return self  # whoever fetches it asks for this version
        return ListedFile.at(self.path, self.names) or self


def measure(
    entries: Iterable[FileEntry], known: Callable[[str], bool]
) -> tuple[list[ListedFile], list[FileEntry]]:
    """The files among some entries that are not known by any name, and entries that nothing is behind.

    Of a file and a link to it, the file counts.
    """
    files: list[ListedFile] = []
    absent: list[FileEntry] = []
    fresh = set[str]()
    unknown = [entry for entry in entries if not any(map(known, entry.names))]
    for entry in sorted(unknown, key=lambda entry: (len(entry.names) > 1, entry.names)):
        if not fresh.isdisjoint(entry.names):
            continue
        try:
            about = os.stat(entry.path)
        except FileNotFoundError:
            absent.append(entry)  # gone since it was listed, or a link to what is not there yet
            continue
        except OSError:
            about = os.lstat(entry.path)  # what is wrong with it is said when it is read
        files.append(_listed(entry.path, entry.names, about))
        fresh.update(entry.names)
    return files, absent


def _listed(path: str, names: tuple[str, ...], entry: os.stat_result) -> ListedFile:
    size, modified, changed = version_of(entry)
    regular = stat.S_ISREG(entry.st_mode)
    return ListedFile(path, names, modified, size, regular, changed, inode=entry.st_ino)


def version_of(entry: os.stat_result) -> Version:
    """What differs as soon as a file is written to or another one is put in its place."""
    return entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns


def regular_version(path: str, where: str) -> Version:
    """The version of a file; raises SourceError for what would never end, or is no file."""
    entry = os.stat(path)
    if not stat.S_ISREG(entry.st_mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
        kind = kinds.get(stat.S_IFMT(entry.st_mode), "a device")
        raise SourceError(f"{where}: expected a file, but it is {kind}")
    return version_of(entry)
