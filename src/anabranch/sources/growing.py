"""Files that change after they were read: refused, followed, or left alone, as the stream says.

How far the newest files were read stands in the offset of the stream, and these are looked at again at
every poll. A text that is followed is read as it grows, whole lines only; its file has to keep its name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from anabranch.errors import SourceError
from anabranch.sources.cutting import whole_lines
from anabranch.sources.form import FileForm
from anabranch.sources.listing import ListedFile
from anabranch.sources.paths import path_below, shown
from anabranch.state.uris import is_object

STOP, FOLLOW, IGNORE = RULES = ("stop", "follow", "ignore")
LOOKED_AT = {STOP: 16, FOLLOW: 1_000, IGNORE: 0}
"""The newest files that are looked at again; older ones are taken to be done."""


class Tail(NamedTuple):
    """How far a file was read, and which one it was."""

    taken: int
    inode: int


class Tails:
    """How far the newest files of a stream were read, for one run."""

    def __init__(
        self, stream: str, path: str, rule: str, format: str, form: FileForm,
        known: Iterable[tuple[str, int, int]], once: bool,
    ) -> None:  # fmt: skip
        self._stream = stream
        self._rule = IGNORE if is_object(path) else rule
        self._format = format
        self._form = form
        self._known = {name: Tail(taken, inode) for name, taken, inode in known}
        self._begun: dict[str, ListedFile] = {}
        """Files that are followed and have no whole line yet."""
        self._sizes: dict[str, int] = {}
        """How long files were that had no whole line more."""
        self._first: dict[str, int] | None = {} if once else None
        """If only what was there at first is read: how long files were then."""

    def look(
        self, root: str, new: Sequence[ListedFile], waiting: Container[str]
    ) -> list[ListedFile]:
        """The files that have something to read; raises SourceError for those that must not have changed."""
        if self._rule == FOLLOW:
            self._begun.update((file.name, file) for file in new)
        grown: list[ListedFile] = []
        for name, tail in list(self._known.items()):
            now = ListedFile.at(path_below(root, name), (name,))
            if now is None:
                self._refuse_renamed(name, tail, new)
                del self._known[name]
            elif name not in waiting:
                self._refuse_changed(now, tail)
                grown += self._whole_lines(now, tail.taken)
        if self._rule != FOLLOW:
            return list(new)
        for file in list(self._begun.values()):
            now = ListedFile.at(file.path, file.names)
            if now is None:
                del self._begun[file.name]
            else:
                grown += self._whole_lines(now, 0)
        return grown

    def _whole_lines(self, file: ListedFile, taken: int) -> list[ListedFile]:
        """A file that is followed, up to the end of its last whole line; nothing if there is none."""
        if self._first is not None:
            file = replace(file, size=self._first.setdefault(file.name, file.size))
        if self._rule != FOLLOW or file.size in (taken, self._sizes.get(file.name)):
            return []
        try:
            end = whole_lines(file.path, self._format, self._form, taken, file.size)
        except FileNotFoundError:
            return []  # the next look finds it gone
        except (OSError, ValueError) as error:
            raise SourceError(
                f"Stream '{self._stream}': the file '{shown(file.path)}' cannot be followed: {error}."
            ) from error
        if end is None:
            self._sizes[file.name] = file.size
            return []
        self._begun.pop(file.name, None)
        return [replace(file, size=end, taken=taken)]

    def _refuse_changed(self, now: ListedFile, tail: Tail) -> None:
        where = f"Stream '{self._stream}': the file '{shown(now.path)}'"
        if self._rule == STOP and now.size != tail.taken:
            raise SourceError(
                f"{where} had {tail.taken} bytes when it was read and has {now.size} now. Files must be "
                "complete when they appear: put new rows into files of their own. Texts that grow line by "
                "line are read with growing='follow'; growing='ignore' leaves changed files alone."
            )
        if self._rule == FOLLOW and (now.size < tail.taken or now.inode != tail.inode):
            raise SourceError(
                f"{where} is another one than that of which {tail.taken} bytes were read, or was cut short. "
                "A file that is followed may only grow: begin a new one under a new name instead."
            )

    def _refuse_renamed(self, name: str, tail: Tail, new: Sequence[ListedFile]) -> None:
        for file in new:
            if self._rule == FOLLOW and file.inode == tail.inode and file.size >= tail.taken:
                before = shown(path_below("", name))
                raise SourceError(
                    f"Stream '{self._stream}': the file '{shown(file.path)}' was called '{before}' when "
                    f"{tail.taken} bytes of it were read, and would be read again. A file that is followed "
                    "keeps its name: begin a new one under a new name instead, and move this one back."
                )

    def after(self, taken: Sequence[ListedFile]) -> list[tuple[str, int, int]]:
        """What is to be remembered once these files are read as far as they are said to go."""
        known = dict(self._known)
        for file in taken:
            known.pop(file.name, None)
            known[file.name] = Tail(file.size, file.inode)
        newest = islice(reversed(known.items()), LOOKED_AT[self._rule])
        return [(name, *tail) for name, tail in newest][::-1]

    def commit(self, known: Iterable[tuple[str, int, int]]) -> None:
        """What was asked to be remembered is safe in the checkpoint."""
        self._known = {name: Tail(taken, inode) for name, taken, inode in known}


def read_rule(stream: str, rule: object, format: str, path: str, cleaned: bool) -> str:
    """What is to become of files that grow; raises SourceError for what there is not."""
    if not isinstance(rule, str) or rule not in RULES:
        raise SourceError(
            f"Stream '{stream}': growing is {rule!r:.100}; expected one of {', '.join(RULES)}."
        )
    if rule == FOLLOW and (format not in ("csv", "json") or is_object(path)):
        raise SourceError(
            f"Stream '{stream}': growing='follow' is for CSV and JSON files of a file system; "
            f"'{path}' has {format} files."
        )
    if rule == FOLLOW and cleaned:
        raise SourceError(
            f"Stream '{stream}': files that are followed cannot be cleaned away, for they are never known to "
            "be done. Leave out clean_source, or growing='follow'."
        )
    return rule
