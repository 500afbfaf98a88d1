"""The names of the files that one stream has read, as the checkpoint keeps them.

The newest names stand in the manifest, older ones in log files beside it, which it names with their
checksums: an epoch writes what it added. When the newest ones have become many they become a log, together
with the logs that are no longer than that; so there are few logs, and a name is written again only as often
as what is remembered has doubled. A name is remembered as long as the path stands for a file of that name,
and for the next `KEPT` files after that one was taken away.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.state.place import Place
from anabranch.state.store import read_sealed, write_sealed

RECENT = 100
"""Names kept in the manifest before they move to a log file."""
KEPT = 100_000
"""The files that are read before the name of one that was taken away is forgotten."""


@dataclass(frozen=True)
class Log:
    """A file of names that were read."""

    file: str
    checksum: int
    names: list[str]
    gone: dict[str, int]
    """Those that the path no longer stood for, with how many files were read when that was seen."""


@dataclass(frozen=True)
class SeenAfter:
    """What is remembered once an epoch has read more files."""

    logs: tuple[Log, ...] = ()
    recent: tuple[str, ...] = ()
    files: int = 0
    """How many files were read, those forgotten too."""
    forgotten: int = 0
    """How many names were forgotten."""
    dropped: frozenset[str] = field(default_factory=frozenset)
    """Those that this epoch forgets."""

    def offset(self) -> dict[str, Any]:
        """The part of the stream's offset that says it."""
        return {
            "logs": [(log.file, log.checksum) for log in self.logs],
            "recent": list(self.recent),
            "files": self.files,
            "forgotten": self.forgotten,
        }


class Seen:
    """What one run knows of the files that its stream has read."""

    def __init__(self, stream: str, place: Place, offset: dict[str, Any]) -> None:
        self._stream = stream
        self._place = place
        self._gone: dict[str, int] = {}
        """Names that the path no longer stands for, as in the logs."""
        self._found = set[str]()
        """Names that it stands for again, though a log says otherwise."""
        logs = [self._read(file, checksum) for file, checksum in offset.get("logs", ())]
        recent = tuple(offset.get("recent", ()))
        self._now = SeenAfter(
            tuple(logs), recent, offset.get("files", 0), offset.get("forgotten", 0)
        )  # fmt: skip
        self.names = {*recent}.union(*(log.names for log in logs))

    def _read(self, file: str, checksum: int) -> Log:
        what = "The list of files already read"
        contents = read_sealed(self._place, file, what, checksum)
        self._gone.update(contents["gone"])
        return Log(file, checksum, contents["files"], contents["gone"])

    def lose(self, names: Iterable[str]) -> None:
        """Notes that the path no longer stands for files of these names."""
        for name in self.names.intersection(names):
            self._gone.setdefault(name, self._now.files)

    def find(self, names: set[str]) -> None:
        """Notes that it does."""
        if self._gone:
            again = self._gone.keys() & names
            for name in again:
                del self._gone[name]
            self._found.update(name for log in self._now.logs for name in again & log.gone.keys())

    def advance(self, names: Sequence[str], files: int, ordinal: int) -> SeenAfter:
        """What is to be remembered once so many files of these names are read; writes a log if it is time."""
        now = self._now
        read, recent, logs = now.files + files, [*now.recent, *names], [*now.logs]
        if len(recent) <= RECENT and not self._found:
            return SeenAfter(now.logs, tuple(recent), read, now.forgotten)
        while logs and (len(logs[-1].names) <= len(recent) or self._found):
            recent = [*logs.pop().names, *recent]
        dropped = frozenset(
            name for name in recent if name in self._gone and read - self._gone[name] > KEPT
        )
        kept = [name for name in recent if name not in dropped]
        gone = {name: self._gone[name] for name in kept if name in self._gone}
        # Another run that was taken for dead may write one with this ordinal, too
        file = f"sources/{self._stream}-{ordinal:012d}-{uuid.uuid4().hex[:8]}.json"
        checksum = write_sealed(self._place, file, {"files": kept, "gone": gone}, fsync=True)
        logs.append(Log(file, checksum, kept, gone))
        return SeenAfter(tuple(logs), (), read, now.forgotten + len(dropped), dropped)

    def commit(self, step: SeenAfter, names: Iterable[str]) -> None:
        """What was advanced to is safe in the checkpoint."""
        if step.logs != self._now.logs:
            self._found.clear()  # that of a poll, after which nothing was looked at
        self._now = step
        self.names.update(names)
        self.names -= step.dropped
        for name in step.dropped:
            self._gone.pop(name, None)
