"""What the path of a file stream stands for: which names fit it, and how a file is called below its root.

What exists is taken for what it is, whatever its name; only other paths with `*`, `?` or `[` are patterns.
`**` stands for any number of folders, and a folder that fits a pattern is looked into. Names that begin with
`_` or `.` are still being written: folders and patterns pass over them, unless a pattern has them letter by
letter.
"""

from __future__ import annotations

import fnmatch
import functools
import glob
import os
from dataclasses import dataclass
from pathlib import Path

from anabranch.state.uris import is_object

HIDDEN = ("_", ".")
ANY_FOLDERS = "**"
Fit = frozenset[int]
"""How many parts of a pattern the names down to a folder may have fitted; several, behind `**`."""
NO_FIT: Fit = frozenset()


@dataclass(frozen=True)
class Pattern:
    """The parts of a path below its root: names, or patterns of them; without any, all of it fits."""

    parts: tuple[str, ...] = ()
    exact: bool = False
    """Whether its parts are names, whatever signs are in them."""

    @functools.cached_property
    def whole(self) -> Fit:
        """The fit of what fits the whole pattern, and of all that is below that."""
        return frozenset([len(self.parts)])

    @property
    def start(self) -> Fit:
        return frozenset([0])

    def follow(self, fit: Fit, name: str) -> Fit:
        """The fit of a name in a folder.

        >>> pattern = Pattern(("**", "*.csv"))
        >>> pattern.follow(pattern.start, "a.csv") == pattern.whole, pattern.follow(pattern.start, "_a.csv")
        (True, frozenset())
        >>> sorted(pattern.follow(pattern.start, "day"))
        [0]
        """
        hidden = name.startswith(HIDDEN)
        if fit == self.whole:
            return NO_FIT if hidden else fit
        ahead = set[int]()
        for at in fit:
            while self.parts[at] == ANY_FOLDERS and not hidden:
                ahead.add(at)
                at += 1
            if self._matches(self.parts[at], name):
                ahead.add(at + 1)
        return self.whole if len(self.parts) in ahead else frozenset(ahead)

    def literal(self, fit: Fit) -> list[str] | None:
        """The only names that can fit in a folder, if they are known."""
        following = [self.parts[at] for at in sorted(fit) if at < len(self.parts)]
        if len(following) < len(fit) or any(map(self._varies, following)):
            return None
        return following

    def is_shallow(self, fit: Fit) -> bool:
        """Whether a folder of this fit only leads to what is meant, and its depth is known."""
        return fit != self.whole and ANY_FOLDERS not in self.parts[: max(fit) + 1]

    def _varies(self, part: str) -> bool:
        return not self.exact and glob.has_magic(part)

    def _matches(self, part: str, name: str) -> bool:
        if not self._varies(part):
            return name == part
        return not name.startswith(HIDDEN) and fnmatch.fnmatchcase(name, part)


def root_of(path: str) -> tuple[str, Pattern]:
    """The folder that names begin at, and what fits below it."""
    if is_pattern(path):
        root = fixed_part(path)
        parts = Path(path).relative_to(root).parts
        return root, Pattern((*parts, "*") if parts[-1] == ANY_FOLDERS else parts)
    if os.path.isdir(path) or not os.path.lexists(path):
        return path, Pattern()
    return os.path.dirname(path), Pattern((os.path.basename(path),), exact=True)


def object_root(uri: str) -> tuple[str, Pattern]:
    """The same of a URI, by its letters alone.

    >>> object_root("s3://bucket/day/*.csv")
    ('s3://bucket/day', Pattern(parts=('*.csv',), exact=False))
    """
    if not glob.has_magic(uri):
        return uri, Pattern()
    scheme, _, rest = uri.partition("://")
    parts = rest.split("/")
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    below = tuple(parts[first:])
    below = (*below, "*") if below[-1] == ANY_FOLDERS else below
    return f"{scheme}://{'/'.join(parts[:first])}", Pattern(below)


def is_pattern(path: str) -> bool:
    """Whether a path stands for the names that fit it: nothing is called so itself."""
    return glob.has_magic(path) and (is_object(path) or not os.path.lexists(path))


def missing(path: str) -> str | None:
    """What would have to exist for a path to stand for any file, and does not; a bucket has no folders."""
    if is_object(path):
        return None
    needed = fixed_part(path) if is_pattern(path) else path
    return None if os.path.lexists(needed) else needed


def fixed_part(pattern: str) -> str:
    """The folder of a pattern before anything in it may vary."""
    parts = Path(pattern).parts
    first = next(at for at, part in enumerate(parts) if glob.has_magic(part))
    return str(Path(*parts[:first]))


def hidden_part(pattern: str) -> str | None:
    """The part of a pattern that only names match which are passed over, if it has one."""
    parts = Path(pattern).parts
    first = parts.index(ANY_FOLDERS) if ANY_FOLDERS in parts else len(parts)
    varying = (*filter(glob.has_magic, parts[:first]), *parts[first:])
    return next((part for part in varying if part.startswith(HIDDEN)), None)


def name_below(root: str, real: str) -> str:
    """The name of a file below the root; its whole path if it is elsewhere."""
    name = real.removeprefix(os.path.join(root, ""))
    if name.isascii():
        return name
    return os.sep.join(as_text(one) for one in name.split(os.sep))


def path_below(root: str, name: str) -> str:
    """Where a file of a name lies: what `name_below` and `as_text` make of it, read back."""
    if "\0" in name:
        name = os.sep.join(_from_text(one) for one in name.split(os.sep))
    return os.path.join(root, name)


def _from_text(name: str) -> str:
    return os.fsdecode(name[1:].encode("latin-1")) if name.startswith("\0") else name


def as_text(name: str) -> str:
    """A name that JSON can hold: one that is no UTF-8 as its bytes after a zero, which no real name has."""
    try:
        if not name.isascii():
            name.encode()
    except UnicodeEncodeError:
        return "\0" + os.fsencode(name).decode("latin-1")
    return name


def shown(path: str) -> str:
    """A path for messages, also if it is no UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
