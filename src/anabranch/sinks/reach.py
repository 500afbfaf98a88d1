"""Which files that a run will write a stream would read: by patterns of names, and through links.

A listing goes down from the stream's path: what a pattern matches, whatever is below a folder, linked folders
too. So a file is read if one of the folders that it goes through is above the file, and the names from there
on fit. What the names will be is not known in full, so they are patterns too (`epoch=*`, `part-*.parquet`).
"""

from __future__ import annotations

import functools
import glob
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from anabranch.sources.paths import ANY_FOLDERS, HIDDEN, fixed_part, is_pattern, object_root
from anabranch.state.uris import is_object

STAR = "*"


def reaches(path: str, folder: Path, names: Sequence[str]) -> bool:
    """Whether a stream of this path would read a file of such names below a folder."""
    real = real_path(folder)
    for entered, rest in _entered(path):
        above = real_path(entered)
        if real.is_relative_to(above):
            below = (*map(glob.escape, real.relative_to(above).parts), *names)
        elif above.is_relative_to(real):
            inside = [glob.escape(name) for name in above.relative_to(real).parts]
            if len(inside) > len(names) or not all(map(_fits, inside, names)):
                continue
            below = tuple(names[len(inside) :])
        else:
            continue
        if _read(rest, below):
            return True
    return False


def real_path(path: Path | str) -> Path:
    """A path as it can be compared: that of a bucket has no links, and `Path` makes its slashes one."""
    plain = str(path)
    if is_object(plain.replace(":/", "://", 1)):
        return Path(plain)
    return Path(os.path.realpath(plain))


def _entered(path: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each folder that a listing goes through, with what is left of the pattern there."""
    if is_object(path):
        root, pattern = object_root(path)
        yield root, pattern.parts
        return
    if not is_pattern(path):
        yield path, ()
        yield from ((folder, ()) for folder in _folders(path))
        return
    root = fixed_part(path)
    parts = Path(path).relative_to(root).parts
    shallow = parts[: parts.index(ANY_FOLDERS)] if ANY_FOLDERS in parts else parts
    yield root, parts
    for at in range(len(shallow) + 1):
        for match in glob.glob(os.path.join(glob.escape(root), *shallow[:at])):
            names = Path(match).relative_to(root).parts
            if os.path.isdir(match) and not any(map(_passed_over, shallow, names)):
                yield match, parts[at:]
                if at == len(shallow):
                    yield from ((folder, parts[at:]) for folder in _folders(match))


def _folders(folder: str) -> Iterator[str]:
    """The folders below, those that links lead to among them, each once."""
    entered: set[str] = set()
    for current, inner, _ in os.walk(folder, followlinks=True):
        visible = [name for name in inner if not name.startswith(HIDDEN)]
        real = {name: os.path.realpath(os.path.join(current, name)) for name in visible}
        inner[:] = [name for name in visible if real[name] not in entered]
        entered.update(real.values())
        yield current


def _read(rest: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a listing that has this left of its pattern comes to a file of such names."""
    if not rest:
        return not any(name.startswith(HIDDEN) for name in names)
    if rest[0] == ANY_FOLDERS:
        deeper = bool(names) and not names[0].startswith(HIDDEN) and _read(rest, names[1:])
        return deeper or _read(rest[1:] or ("*",), names)
    if not names or _passed_over(rest[0], names[0]) or not _fits(rest[0], names[0]):
        return False
    return _read(rest[1:], names[1:])


def _passed_over(pattern: str, name: str) -> bool:
    """Whether a name is hidden, and not asked for by itself."""
    return glob.has_magic(pattern) and name.startswith(HIDDEN)


def _fits(pattern: str, other: str) -> bool:
    """Whether there is a name that both patterns match.

    >>> _fits("*.parquet", "part-*.parquet"), _fits("*.csv", "part-*.parquet")
    (True, False)
    """
    left, right = _tokens(pattern), _tokens(other)

    @functools.cache
    def meet(at: int, beside: int) -> bool:
        if at == len(left) and beside == len(right):
            return True
        if at < len(left) and left[at] == STAR:
            return meet(at + 1, beside) or (beside < len(right) and meet(at, beside + 1))
        if beside < len(right) and right[beside] == STAR:
            return meet(at, beside + 1) or (at < len(left) and meet(at + 1, beside))
        if at == len(left) or beside == len(right):
            return False
        return _same(left[at], right[beside]) and meet(at + 1, beside + 1)

    return meet(0, 0)


def _tokens(pattern: str) -> list[str]:
    """A pattern letter by letter: `*`, sets, and letters by themselves."""
    return re.findall(r"\[!?\]?[^]]*\]|.", pattern, re.DOTALL)


def _same(one: str, other: str) -> bool:
    """Whether one letter fits both of two tokens."""
    letters = {token for token in (one, other) if len(token) == 1 and token != "?"}
    if letters:
        return all(fnmatchcase(letter, token) for letter in letters for token in (one, other))
    wide = {token for token in (one, other) if token != "?"}
    # Of two sets, letters that are usual in names decide; of one, or none, there is always a letter
    usual = map(chr, range(33, 127))
    return len(wide) < 2 or any(fnmatchcase(c, one) and fnmatchcase(c, other) for c in usual)
