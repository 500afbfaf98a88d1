"""The folders of a path, looked at again and again: which files came and went since the last look.

A look costs what has changed. A folder whose times are what they were is not listed; of a large one the
system tells what came and went (`notices.py`). Times can be equal although something came, within the steps
in which a file system counts them: so a folder is listed once more a while after its times were first seen.
Now and then all folders are listed, and where that finds names which the times of their folder were silent
about, times are not believed from then on. Where there are links every look is a whole one: what they lead
to may change without a trace in the folder that they are in.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from anabranch.errors import SourceError
from anabranch.sources.folder import Folder, Named, Stamp, kind_of, mark, stamp_of, unmark
from anabranch.sources.notices import Notices
from anabranch.sources.paths import NO_FIT, Fit, Pattern, as_text, name_below, root_of, shown

LARGE = 1_000
"""Names in a folder from which on the system is asked to tell what changes."""
SETTLING = 2.0
"""Seconds after which times of a folder that have not changed are believed: file systems count in steps."""
LIST_EVERY = 60.0
"""Seconds after which all folders are listed, whatever their times say, at least."""
LISTING_SHARE = 0.01
"""The share of all time that this may take."""


class FileEntry(NamedTuple):
    """What a path stands for that is no folder."""

    path: str
    names: tuple[str, ...]
    """What it is known by: its name below the root, and for links that of what they point to."""


@dataclass(frozen=True)
class Look:
    """What a look has shown."""

    new: list[FileEntry] = field(default_factory=list)
    """What was not there at the last look; after a whole one, all that is there."""
    gone: set[str] = field(default_factory=set)
    """The names that were there at the last look and are not."""


class Tree:
    """What a path stands for. `close` it, if it was told to notice changes."""

    def __init__(
        self, path: str, notices: Notices | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._notices = notices
        self._clock = clock
        self._folders: dict[str, Folder] = {}
        self._base: object = None
        self._pattern = Pattern()
        self._linked = False
        self._blind = False
        """Whether the times of folders were found to be silent."""
        self._forced_at = clock() + LIST_EVERY
        self.root = ""
        """The real folder that names begin at."""
        self.present: set[str] = set()
        """All names that were there at the last look."""

    def close(self) -> None:
        if self._notices is not None:
            self._notices.close()

    def look(self) -> Look:
        """What has changed since the last look; raises SourceError where a folder cannot be looked into."""
        folder, self._pattern = root_of(self._path)
        base = (folder, self._pattern, os.path.realpath(folder))
        self.root = base[-1]
        began = self._clock()
        noticed = self._notices.read() if self._notices is not None else {}
        trusted = base == self._base and not self._linked and noticed is not None
        forced = self._blind or began >= self._forced_at
        partial = Look()
        if trusted and self._folders:
            partial, complete = self._look_again(noticed or {}, began, forced)
            if forced:
                lasted = self._clock() - began
                self._forced_at = began + max(LIST_EVERY, lasted / LISTING_SHARE)
            if complete:
                return partial
        self._base = base
        look = self._look_whole(folder, began)
        return Look(look.new, look.gone | (partial.gone - self.present))

    # -- a whole look ------------------------------------------------------------------------------

    def _look_whole(self, path: str, now: float) -> Look:
        before = self.present
        self.present, self._folders, self._linked = set(), {}, False
        entries: list[FileEntry] = []
        self._enter([Folder(path, self.root, "", self._pattern.start)], entries, now)
        return Look(entries, before - self.present)

    def _enter(self, folders: list[Folder], entries: list[FileEntry], now: float) -> None:
        """Looks into folders and those below; linked ones after all others, every real one once."""
        entered = set[tuple[str, Fit]]()
        links: list[Folder] = []
        while folders or links:
            folder = folders.pop() if folders else links.pop()
            if (folder.real, folder.fit) in entered:
                continue
            entered.add((folder.real, folder.fit))
            self._folders[folder.path] = folder
            folder.stamp, folder.settles = stamp_of(folder.path), now + SETTLING
            for name, is_folder, is_link in self._scan(folder):
                fit = self._pattern.follow(folder.fit, name)
                if fit == NO_FIT:
                    continue
                self._linked = self._linked or is_link
                path = os.path.join(folder.path, name) if is_folder or is_link else ""
                if is_folder or (is_link and os.path.isdir(path)):
                    real = os.path.realpath(path) if is_link else os.path.join(folder.real, name)
                    below = f"{folder.name}{as_text(name)}{os.sep}"
                    inner = Folder(path, real, below, fit, folder.linked or is_link)
                    (links if is_link else folders).append(inner)
                elif fit == self._pattern.whole:
                    entries.append(self._entry(folder, name, is_link))

    def _entry(self, folder: Folder, name: str, is_link: bool) -> FileEntry:
        path = os.path.join(folder.path, name)
        names: tuple[str, ...] = (folder.name + as_text(name),)
        if is_link or folder.linked:
            real = os.path.realpath(path) if is_link else os.path.join(folder.real, name)
            names = tuple(dict.fromkeys((*names, name_below(self.root, real))))
        self.present.update(names)
        return FileEntry(path, names)

    # -- a look at what has changed ----------------------------------------------------------------

    def _look_again(
        self, noticed: dict[int, set[str]], now: float, forced: bool
    ) -> tuple[Look, bool]:
        """What has changed, and whether that is all: else only a whole look can tell.

        If it is `forced`, the times of folders are not believed.
        """
        look = Look()
        for folder in list(self._folders.values()):
            if folder.path not in self._folders:
                continue
            stamp = stamp_of(folder.path)
            if stamp is None and folder.name:
                continue  # the folder that it was in tells
            if stamp is None or folder.stamp is None or stamp[:2] != folder.stamp[:2]:
                return look, False
            told = noticed.get(folder.watch) if folder.watch is not None else None
            if told is None:
                if not self._suspect(folder, stamp, now, forced):
                    continue
                told = self._compare(folder, stamp)
            folder.settles = None if stamp == folder.stamp else now + SETTLING
            folder.stamp = stamp
            if not all(self._follow(folder, name, look, now) for name in told):
                return look, False
        return look, True

    def _suspect(self, folder: Folder, stamp: Stamp, now: float, forced: bool) -> bool:
        """Whether names may have come or gone that nothing was told of."""
        unsettled = folder.settles is not None and now >= folder.settles
        doubted = folder.watch is None and (unsettled or forced)
        return doubted or stamp != folder.stamp or self._pattern.literal(folder.fit) is not None

    def _compare(self, folder: Folder, stamp: Stamp) -> set[str]:
        """The names in a folder that came, went, or are those of folders now and were not, or the reverse."""
        listed = {mark(name, is_folder) for name, is_folder, _ in self._list_large(folder)}
        if not listed <= folder.names and folder.settles is None and stamp == folder.stamp:
            # Not if they came after its times were looked at
            self._blind = self._blind or stamp == stamp_of(folder.path)
        return {unmark(name) for name in folder.names ^ listed}

    def _follow(self, folder: Folder, name: str, look: Look, now: float) -> bool:
        """Takes in that a name came or went; False if that changes more than the name."""
        path, full = os.path.join(folder.path, name), folder.name + as_text(name)
        kind = kind_of(path)
        was_file, was_folder = name in folder.names, mark(name, True) in folder.names
        folder.names -= {name, mark(name, True)}
        if kind is not None:
            folder.names.add(mark(name, kind[0]))
        fit = self._pattern.follow(folder.fit, name)
        if fit == NO_FIT:
            return True
        if kind is None:
            self._leave(path, look) if was_folder else self._lose(full, look)
            return True
        is_folder, is_link = kind
        if is_link or (was_file and is_folder) or (was_folder and not is_folder):
            return False
        if is_folder and not was_folder:
            inner = Folder(path, os.path.join(folder.real, name), full + os.sep, fit)
            self._enter([inner], look.new, now)
        elif not (is_folder or was_file) and fit == self._pattern.whole:
            look.new.append(self._entry(folder, name, False))
        return not self._linked

    def _leave(self, path: str, look: Look) -> None:
        """Forgets a folder that is gone, and those below it."""
        below = [one for one in self._folders if one == path or one.startswith(path + os.sep)]
        for folder in map(self._folders.pop, below):
            for name in map(unmark, folder.names):
                self._lose(folder.name + as_text(name), look)

    def _lose(self, name: str, look: Look) -> None:
        if name in self.present:
            self.present.discard(name)
            look.gone.add(name)

    # -- what is in a folder -----------------------------------------------------------------------

    def _scan(self, folder: Folder) -> list[Named]:
        """What is in a folder that is entered."""
        listed = self._list_large(folder)
        folder.names = {mark(name, is_folder) for name, is_folder, _ in listed}
        return listed

    def _list_large(self, folder: Folder) -> list[Named]:
        """What is in a folder; has it watched from now on, if it is large or has become so."""
        listed = self._list(folder)
        if len(listed) >= LARGE and folder.watch is None and self._notices is not None:
            folder.watch = self._notices.watch(folder.path)
            # What came since then is in this list or among the notices
            listed = self._list(folder)
        return listed

    def _list(self, folder: Folder) -> list[Named]:
        literal = self._pattern.literal(folder.fit)
        if literal is not None:
            kinds = ((name, kind_of(os.path.join(folder.path, name))) for name in literal)
            return [(name, *kind) for name, kind in kinds if kind is not None]
        try:
            return [
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in os.scandir(folder.path)
            ]
        except OSError as error:
            self._pass_over(folder, error)
            return []

    def _pass_over(self, folder: Folder, error: OSError) -> None:
        """Raises SourceError if a folder cannot be read, unless it is gone since it was listed."""
        # One that only leads to what is meant may be none of the stream's
        if not isinstance(error, FileNotFoundError | NotADirectoryError) and not (
            self._pattern.is_shallow(folder.fit)
        ):
            raise SourceError(
                f"The folder '{shown(folder.path)}' cannot be read: {error.strerror}."
            ) from error
