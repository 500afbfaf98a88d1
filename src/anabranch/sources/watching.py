"""The files of a path, on this machine or in a bucket, as a stream looks at them again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from anabranch.sources.listing import ListedFile, measure
from anabranch.sources.notices import Notices
from anabranch.sources.objects.tree import ObjectTree
from anabranch.sources.tree import FileEntry, Look, Tree
from anabranch.state.uris import is_object


class Watched(Protocol):
    """What a path stands for. `close` it."""

    root: str
    """The folder that names begin at."""
    present: set[str]
    """All names that were there at the last look."""

    def look(self) -> Look:
        """What has changed since the last look; raises SourceError where that cannot be told."""

    def measure(
        self, entries: Iterable[FileEntry], known: Callable[[str], bool]
    ) -> tuple[list[ListedFile], list[FileEntry]]:
        """The files among entries of the last look that are not known by any name, and entries that
        nothing is behind."""

    def close(self) -> None:
        """Lets go of what is held."""


class WatchedFolders(Tree):
    """The folders of this machine."""

    def measure(
        self, entries: Iterable[FileEntry], known: Callable[[str], bool]
    ) -> tuple[list[ListedFile], list[FileEntry]]:
        return measure(entries, known)


def watch(path: str, once: bool, by_name: bool) -> Watched:
    """What a path stands for, if it is only looked at `once` without notices of the system."""
    if is_object(path):
        return ObjectTree(path, by_name)
    return WatchedFolders(path, None if once else Notices())


def list_files(path: str) -> list[ListedFile]:
    """All files of a path by their names; raises SourceError where a folder cannot be looked into."""
    watched = watch(path, True, False)
    files, _ = watched.measure(watched.look().new, lambda name: False)
    return sorted(files, key=lambda file: file.name)
