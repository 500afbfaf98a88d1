"""Which files of a stream one run has taken, and what the checkpoint says of them.

The newest names stand in the manifest, older ones in log files beside it, which it names with their
checksums, so that an epoch writes only what it added. Names are those below the stream's folder. Should that
be another folder than before, it must be the same one moved: the file that was read last is in it as it was.
Else files already read could not be told from new ones, and the change is refused.
"""

from __future__ import annotations

import uuid
import warnings
from typing import TYPE_CHECKING, Any

from anabranch.errors import SourceError, StateError
from anabranch.sources.base import EpochLimits, Offer, ReadContext
from anabranch.sources.listing import ListedFile, missing
from anabranch.sources.pieces import FilePiece
from anabranch.state.store import read_sealed, write_sealed

if TYPE_CHECKING:
    from anabranch.sources.files import FileSource

RECENT = 1000
"""Names kept in the manifest before they move to a log file."""


class FileReader:
    """The files under the path of a source, for one run."""

    def __init__(self, source: FileSource, context: ReadContext) -> None:
        self._source = source
        self._place = context.place
        self._offset: dict[str, Any] = context.offset or {"logs": [], "recent": []}
        self._seen = {name for log in self._offset["logs"] for name in self._read_log(*log)}
        self._seen.update(self._offset["recent"])
        self._taking: list[ListedFile] = []
        self._waits_for: str | None = None
        """What does not exist, once it was told."""
        absent = missing(source.path)
        if absent is not None and context.available_now:
            raise SourceError(
                f"Stream '{source.stream}': '{absent}' does not exist, so there is nothing to read. Was it "
                'moved? Mend the path, make the folder, or use trigger="continuous" to wait for it.'
            )
        # Another folder, or none, is told right away
        files = self._list()
        self._frozen = files if context.available_now else None

    def _read_log(self, name: str, checksum: int) -> list[str]:
        what = "The list of files already read"
        return list(read_sealed(self._place, name, what, checksum)["files"])

    def _list(self) -> list[ListedFile]:
        """The files there are, in the order in which they are to be taken."""
        root, files = self._source.listed()
        before = self._offset.get("root", root)
        if files and root != before:
            name, size, modified = self._offset["last"]
            if not any(
                name in file.names and (file.size, file.modified) == (size, modified)
                for file in files
            ):
                raise StateError(
                    f"Stream '{self._source.stream}' was read from '{before}' and now is to be read from "
                    f"'{root}', where the last file it has read, '{name}', is not to be found as it was. "
                    "So files that were read could not be told from new ones: give the path that it had, "
                    "or use a new checkpoint folder."
                )
        self._root = root
        absent = None if files else missing(self._source.path)
        if absent is not None and self._waits_for is None:
            warnings.warn(
                f"Stream '{self._source.stream}': '{absent}' does not exist; the run waits for it.",
                stacklevel=2,
            )
        self._waits_for = absent
        return files

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        listed = self._frozen if self._frozen is not None else self._list()
        waiting = [file for file in listed if self._seen.isdisjoint(file.names)]
        pieces: list[FilePiece] = []
        taken: list[ListedFile] = []
        size = rows = 0
        for listed_file in waiting[: limits.files]:
            # A listing that is frozen may be hours old; what counts is the file that is cut into pieces
            file = listed_file.renewed()
            cut, count = self._source.cut(file, ordinal + len(taken), limits.pieces)
            if taken and (size + file.size > limits.bytes or rows + count > limits.rows):
                break
            pieces += cut
            taken.append(file)
            size, rows = size + file.size, rows + count
        if not taken:
            return None
        return Offer(
            tuple(pieces), self._advance(taken, ordinal), ordinal + len(taken),
            len(waiting) - len(taken),
        )  # fmt: skip

    def finished(self) -> bool:
        frozen = self._frozen
        return frozen is not None and not any(self._seen.isdisjoint(file.names) for file in frozen)

    def committed(self, offset: Any) -> None:
        self._offset = offset
        self._seen.update(name for file in self._taking for name in file.names)

    def stop(self) -> None:
        pass

    def _advance(self, taken: list[ListedFile], ordinal: int) -> dict[str, Any]:
        """The offset once these files are taken; a full list of names moves to a log file."""
        logs = list(self._offset["logs"])
        recent = [*self._offset["recent"], *(name for file in taken for name in file.names)]
        if len(recent) > RECENT:
            # Another run that was taken for dead may write one with this ordinal, too
            log = f"sources/{self._source.stream}-{ordinal:012d}-{uuid.uuid4().hex[:8]}.json"
            logs.append((log, write_sealed(self._place, log, {"files": recent}, fsync=True)))
            recent = []
        self._taking = taken
        last = taken[-1]
        return {
            "root": self._root,
            "last": [last.name, last.size, last.modified],
            "logs": logs,
            "recent": recent,
        }
