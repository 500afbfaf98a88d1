"""Which files a path stands for, and what each is known by: a folder, a file, or a glob pattern.

What exists is taken for what it is, whatever its name; only other paths with `*`, `?` or `[` are patterns.
`**` stands for any number of folders, and a folder that fits a pattern is looked into. Names that begin with
`_` or `.` are still being written: folders and patterns pass over them. A file is known by its name below the
root of the path, so that the folder may be moved or reached through a link; a link is known by what it points
to as well, so that nothing is read twice under two names.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import SourceError

HIDDEN = ("_", ".")
ANY_FOLDERS = "**"
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

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def version(self) -> Version:
        return self.size, self.modified, self.changed

    def renewed(self) -> ListedFile:
        """The file as it is now; as it was, if it cannot be looked at: whoever reads it says why."""
        try:
            entry = os.stat(self.path)
        except OSError:
            return self
        return _listed(self.path, self.names, entry)


@dataclass(frozen=True)
class Listing:
    """The files that a path stands for at one moment, in the order of their names."""

    root: str
    """The real folder that names begin at."""
    files: list[ListedFile]


def list_files(path: str) -> Listing:
    """All files of a path; raises SourceError where a folder cannot be looked into."""
    if is_pattern(path):
        root = fixed_part(path)
        # Not `glob` for `**`: it follows links in circles, and shows what is in a folder beside the folder
        shallow, deep = _cut_at_any_folders(path)
        matches = [match for match in glob.glob(shallow) if not _is_hidden_match(shallow, match)]
        found = [
            (file, real)
            for match in matches
            for file, real in _below(match)
            if not deep or _fits(deep, Path(file).relative_to(match).parts)
        ]
    else:
        root = path if os.path.isdir(path) or not os.path.lexists(path) else os.path.dirname(path)
        found = list(_below(path))
    return _listing(root, found)


def _below(path: str) -> Iterator[tuple[str, str]]:
    """A file itself, or all files of a folder; each with its real path."""
    if os.path.isdir(path):
        yield from _walk(path)
    elif os.path.lexists(path):
        yield path, os.path.realpath(path)


def _walk(folder: str) -> Iterator[tuple[str, str]]:
    """The files of a folder; linked folders after all others, and every real folder once."""
    entered: set[str] = set()
    folders, links = [(folder, os.path.realpath(folder))], list[tuple[str, str]]()
    while folders or links:
        current, real = folders.pop() if folders else links.pop()
        if real in entered:
            continue
        entered.add(real)
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError as error:
            raise SourceError(
                f"The folder '{shown(current)}' cannot be read: {error.strerror}."
            ) from error
        for entry in entries:
            if entry.name.startswith(HIDDEN):
                continue
            inner = os.path.join(real, entry.name)
            if entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, inner))
            elif not entry.is_symlink():
                yield entry.path, inner
            elif os.path.isdir(entry.path):
                links.append((entry.path, os.path.realpath(entry.path)))
            else:
                yield entry.path, os.path.realpath(entry.path)


def _listing(folder: str, found: list[tuple[str, str]]) -> Listing:
    root = os.path.realpath(folder)
    files: dict[str, ListedFile] = {}
    named = [(_name(folder, path), _name(root, real), path) for path, real in found]
    # Links last: of a file and a link to it, the file counts
    for name, target, path in sorted(named, key=lambda names: (names[0] != names[1], names[0])):
        if target in files:
            continue
        try:
            entry = os.stat(path)
        except FileNotFoundError:
            continue  # gone since it was listed, or a link to what is not there yet
        except OSError:
            entry = os.lstat(path)  # what is wrong with it is said when it is read
        names = (name,) if name == target else (name, target)
        files[target] = _listed(path, names, entry)
    return Listing(root, sorted(files.values(), key=lambda file: file.name))


def _listed(path: str, names: tuple[str, ...], entry: os.stat_result) -> ListedFile:
    size, modified, changed = version_of(entry)
    return ListedFile(path, names, modified, size, stat.S_ISREG(entry.st_mode), changed)


def version_of(entry: os.stat_result) -> Version:
    """What differs as soon as a file is written to or another one is put in its place."""
    return entry.st_size, entry.st_mtime_ns, entry.st_ctime_ns


def _name(root: str, real: str) -> str:
    """The name of a file below the root; its whole path if it is elsewhere."""
    name = real.removeprefix(os.path.join(root, ""))
    if name.isascii():
        return name
    return os.sep.join(_as_text(one) for one in name.split(os.sep))


def _as_text(name: str) -> str:
    """A name that JSON can hold: one that is no UTF-8 as its bytes after a zero, which no real name has."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return "\0" + os.fsencode(name).decode("latin-1")
    return name


def shown(path: str) -> str:
    """A path for messages, also if it is no UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def is_pattern(path: str) -> bool:
    """Whether a path stands for the names that fit it: nothing is called so itself."""
    return glob.has_magic(path) and not os.path.lexists(path)


def missing(path: str) -> str | None:
    """What would have to exist for a path to stand for any file, and does not."""
    needed = fixed_part(path) if is_pattern(path) else path
    return None if os.path.lexists(needed) else needed


def _cut_at_any_folders(pattern: str) -> tuple[str, tuple[str, ...]]:
    """A pattern up to its first `**`, and the parts from there on."""
    parts = Path(pattern).parts
    first = parts.index(ANY_FOLDERS) if ANY_FOLDERS in parts else len(parts)
    return str(Path(*parts[:first])), parts[first:]


def _fits(parts: tuple[str, ...], names: tuple[str, ...]) -> bool:
    """Whether a file of these names, or a folder that it is in, fits the parts of a pattern."""
    if parts and parts[-1] == ANY_FOLDERS:
        parts = (*parts, "*")
    reached = {0}  # how many parts the names so far may have fitted
    for name in names:
        ahead = set[int]()
        for at in reached:
            while at < len(parts) and parts[at] == ANY_FOLDERS:
                ahead.add(at)
                at += 1
            if at < len(parts) and fnmatch.fnmatchcase(name, parts[at]):
                ahead.add(at + 1)
        if len(parts) in ahead:
            return True
        reached = ahead
    return False


def fixed_part(pattern: str) -> str:
    """The folder of a pattern before anything in it may vary."""
    parts = Path(pattern).parts
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:first]))


def hidden_part(pattern: str) -> str | None:
    """The part of a pattern that only names match which are passed over, if it has one."""
    shallow, deep = _cut_at_any_folders(pattern)
    varying = (*(part for part in Path(shallow).parts if glob.has_magic(part)), *deep)
    return next((part for part in varying if part.startswith(HIDDEN)), None)


def _is_hidden_match(pattern: str, match: str) -> bool:
    pairs = zip(Path(pattern).parts, Path(match).parts, strict=False)
    return any(glob.has_magic(part) and name.startswith(HIDDEN) for part, name in pairs)
