"""The objects that a URI stands for, looked at again and again: which came and went since the last look.

Taken by name, an object that comes later has a greater name than those before it: a look lists what comes
after the last name that was listed. Whatever came with a smaller name is found by a listing of everything,
now and then, so none is left out. Taken by time, every look lists everything; the longer that takes, the
rarer it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from anabranch.errors import SourceError
from anabranch.sources.listing import ListedFile
from anabranch.sources.paths import NO_FIT, Pattern, is_pattern, object_root
from anabranch.sources.tree import FileEntry, Look
from anabranch.state.uris import bucket_of

if TYPE_CHECKING:
    from anabranch.state.bucket import ListedObject

LIST_EVERY = 60.0
"""Seconds after which everything is listed although objects are taken by name, at least."""
LISTING_SHARE = 0.1
"""The share of all time that listings of everything may take."""


class ObjectTree:
    """What a URI stands for: a folder, an object or a pattern."""

    def __init__(
        self, path: str, by_name: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._by_name = by_name
        self._clock = clock
        self._about: dict[str, ListedFile] = {}
        """What the last look has listed, by name."""
        self._last: str | None = None
        """The greatest key that was listed."""
        self._whole_at = clock()
        self.root = object_root(path)[0]
        """The folder that names begin at."""
        self.present: set[str] = set()
        """All names that are known to have been there at the last look."""

    def close(self) -> None:
        """Nothing is held."""

    def look(self) -> Look:
        """What has changed since the last look; raises SourceError where the store cannot be asked."""
        try:
            began = self._clock()
            if began < self._whole_at:
                return self._look_after() if self._by_name else Look()
            look = self._look_whole()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SourceError(
                f"'{self._path}' cannot be listed: {reason}. Mend that and start again."
            ) from error
        pause = (self._clock() - began) / LISTING_SHARE
        self._whole_at = began + max(LIST_EVERY if self._by_name else 0.0, pause)
        return look

    def measure(
        self, entries: Iterable[FileEntry], known: Callable[[str], bool]
    ) -> tuple[list[ListedFile], list[FileEntry]]:
        """The objects among some entries that are not known; a listing has shown all of them."""
        return [self._about[one.path] for one in entries if not known(one.names[0])], []

    def _look_whole(self) -> Look:
        self._about, present = {}, set[str]()
        found = [*self._listed(None)]
        if not found and not is_pattern(self._path):
            found = [*self._alone()]
        for file in found:
            self._about[file.path] = file
            present.add(file.name)
        new = [FileEntry(file.path, file.names) for file in found]
        gone = self.present - present
        self.present = present
        return Look(new, gone)

    def _look_after(self) -> Look:
        self._about = {file.path: file for file in self._listed(self._last)}
        new = [FileEntry(file.path, file.names) for file in self._about.values()]
        self.present.update(file.name for file in self._about.values())
        return Look(new)

    def _listed(self, after: str | None) -> Iterable[ListedFile]:
        """The objects that fit, after a key if one is given."""
        root, pattern = object_root(self._path)
        bucket, folder = bucket_of(root)
        for one in bucket.list(folder, after):
            self._last = one.key if self._last is None else max(self._last, one.key)
            name = one.key.removeprefix(f"{folder}/") if folder else one.key
            if _fits(pattern, name):
                yield _listed(bucket.uri(one.key), name, one)

    def _alone(self) -> Iterable[ListedFile]:
        """The one object that the URI is of, if it is."""
        bucket, key = bucket_of(self._path)
        one = bucket.head(key) if key else None
        if one is not None:
            yield _listed(self._path, key.rpartition("/")[2], one)


def _listed(path: str, name: str, one: ListedObject) -> ListedFile:
    version = one.version
    return ListedFile(path, (name,), version.modified, version.size, True, 0, version.etag)


def _fits(pattern: Pattern, name: str) -> bool:
    """Whether a name below the root is meant.

    >>> _fits(Pattern(("*.csv",)), "a.csv"), _fits(Pattern(), "day/_a.csv"), _fits(Pattern(), "day/a.csv")
    (True, False, True)
    """
    fit = pattern.start if pattern.parts else pattern.whole
    for part in name.split("/"):
        fit = pattern.follow(fit, part)
        if fit == NO_FIT:
            return False
    return fit == pattern.whole
