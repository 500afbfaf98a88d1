"""What one run has taken of a file stream, and which files wait.

Should the stream's folder be another one than before, it must be the same one moved: the file that was read
last is in it as it was. Else files already read could not be told from new ones, and the change is refused.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from anabranch.errors import SourceError, StateError
from anabranch.sources.base import EpochLimits, Offer, ReadContext
from anabranch.sources.growing import FOLLOW, Tails
from anabranch.sources.listing import ListedFile
from anabranch.sources.paths import missing
from anabranch.sources.pieces import FilePiece
from anabranch.sources.seen import Seen, SeenAfter
from anabranch.sources.tree import FileEntry
from anabranch.sources.watching import watch

if TYPE_CHECKING:
    from anabranch.sources.files import FileSource

OFFSET = ("root", "last", "logs", "recent", "files", "forgotten", "tails")
"""The parts of an offset. Who adds one adds a version of the manifests."""


class FileReader:
    """The files under the path of a source, for one run."""

    def __init__(self, source: FileSource, context: ReadContext) -> None:
        self._source = source
        self._offset: dict[str, Any] = context.known_offset(source.stream, OFFSET) or {}
        self._seen = Seen(source.stream, context.place, self._offset)
        self._tails = Tails(
            source.stream, source.path, source.growing, source.format, source.form,
            self._offset.get("tails", ()), context.available_now,
        )  # fmt: skip
        self._waiting: dict[str, ListedFile] = {}
        """The files that are not read yet, by each of their names."""
        self._order: list[tuple[int, str]] = []
        """Their first names in the order in which they are to be taken."""
        self._lanes: Counter[str] = Counter()
        """How many of them are in each lane."""
        self._absent: list[FileEntry] = []
        """Names that nothing was behind when it was looked for."""
        self._taking: tuple[list[ListedFile], SeenAfter] = [], SeenAfter()
        self._waits_for: str | None = None
        """What does not exist, once it was told."""
        self._root = self._known_root = ""
        """The folder of the last look, and the last one that is known to be the stream's."""
        absent = missing(source.path)
        if absent is not None and context.available_now:
            raise SourceError(
                f"Stream '{source.stream}': '{absent}' does not exist, so there is nothing to read. Was it "
                'moved? Mend the path, make the folder, or use trigger="continuous" to wait for it.'
            )
        self._frozen = context.available_now
        self._tree = watch(source.path, self._frozen, source.order == "name")
        try:
            # Another folder, or none, is told right away
            self._look()
        except BaseException:
            self._tree.close()
            raise
        self._clean_leftovers()
        self._seen.lose(self._seen.names - self._tree.present)

    def _clean_leftovers(self) -> None:
        """Takes away what was read before a crash came, or before the stream was asked to clean."""
        if self._source.cleaning is not None:
            for name in sorted(self._seen.names & self._tree.present):
                path = os.path.join(self._root, name)
                self._source.cleaning.clean(self._source.stream, path, name)

    def _look(self) -> None:
        """Takes in which files came and went."""
        look = self._tree.look()
        if self._tree.root != self._root:
            self._drop({place[1] for place in self._order})
        entries = [*look.new, *(one for one in self._absent if one.names[0] in self._tree.present)]
        if entries and self._tree.root != self._known_root:
            self._require_moved(self._tree.root, entries)
            self._known_root = self._tree.root
        self._root = self._tree.root
        self._seen.lose(look.gone)
        self._seen.find({name for entry in look.new for name in entry.names})
        self._drop({self._waiting[name].name for name in look.gone & self._waiting.keys()})
        files, self._absent = self._tree.measure(
            entries, lambda name: name in self._seen.names or name in self._waiting
        )
        self._wait_for(files)
        self._warn_of_waiting()

    def _wait_for(self, new: Sequence[ListedFile]) -> None:
        """Takes in new files, and what files that are followed have got."""
        for file in self._tails.look(self._root, new, self._waiting):
            self._waiting.update(dict.fromkeys(file.names, file))
            self._order.append(self._source.place(file))
            if self._source.lanes:
                self._lanes[self._source.lane_of(file)] += 1
        self._order.sort()

    def _drop(self, names: set[str]) -> None:
        """No longer waits for the files of these first names."""
        if not names:
            return
        self._order = [place for place in self._order if place[1] not in names]
        for file in [self._waiting[name] for name in names]:
            for name in file.names:
                del self._waiting[name]
            if self._source.lanes:
                lane = self._source.lane_of(file)
                self._lanes[lane] -= 1
                if not self._lanes[lane]:
                    del self._lanes[lane]

    def _warn_of_waiting(self) -> None:
        absent = None if self._tree.present else missing(self._source.path)
        if absent is not None and self._waits_for is None:
            warnings.warn(
                f"Stream '{self._source.stream}': '{absent}' does not exist; the run waits for it.",
                stacklevel=2,
            )
        self._waits_for = absent

    def _require_moved(self, root: str, entries: list[FileEntry]) -> None:
        """Raises StateError if the stream's folder is another one than before."""
        before = self._offset.get("root", root)
        if root == before:
            return
        name, size, modified = self._offset["last"]
        for entry in entries:
            if name in entry.names:
                files, _ = self._tree.measure([entry], lambda _: False)
                if any(file.version[:2] == (size, modified) for file in files):
                    return
        raise StateError(
            f"Stream '{self._source.stream}' was read from '{before}' and now is to be read from "
            f"'{root}', where the last file it has read, '{name}', is not to be found as it was. "
            "So files that were read could not be told from new ones: give the path that it had, "
            "or use a new checkpoint folder."
        )

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        if not self._frozen:
            self._look()
        taken, pieces = self._take(
            [name for _, name in self._order[: limits.files]], limits, ordinal
        )
        if not taken:
            return None
        names = self._first_read(taken)
        step = self._seen.advance(names, len(taken), ordinal)
        self._taking = taken, step
        last = taken[-1]
        offset = {
            "root": self._root, "last": [last.name, last.size, last.modified], **step.offset(),
            "tails": self._tails.after(taken),
        }  # fmt: skip
        return Offer(
            pieces, offset, ordinal + len(taken), len(self._order) - len(taken),
            frozenset(self._lanes) if self._source.lanes else None,
            {"filesRead": step.files, "filesForgotten": step.forgotten},
        )  # fmt: skip

    def _take(
        self, names: Sequence[str], limits: EpochLimits, ordinal: int
    ) -> tuple[list[ListedFile], tuple[FilePiece, ...]]:
        """As many of these files as an epoch may have, and their pieces."""
        pieces: list[FilePiece] = []
        taken: list[ListedFile] = []
        size = rows = 0
        for name in names:
            file = self._waiting[name]
            if self._source.growing != FOLLOW:
                # It may have waited for hours; what counts is the file that is cut into pieces
                file = file.renewed()
            cut, count = self._source.cut(file, ordinal + len(taken), limits.pieces)
            if taken and (size + file.size > limits.bytes or rows + count > limits.rows):
                break
            pieces += cut
            taken.append(file)
            size, rows = size + file.size, rows + count
        return taken, tuple(pieces)

    @staticmethod
    def _first_read(taken: Sequence[ListedFile]) -> list[str]:
        """The names of those files of which nothing was read before."""
        return [name for file in taken if not file.taken for name in file.names]

    def look_ahead(self, limits: EpochLimits, ordinal: int, taken: Offer | None) -> Offer | None:
        first = len(self._taking[0]) if taken is not None else 0
        names = [name for _, name in self._order[first : first + limits.files]]
        files, pieces = self._take(names, limits, ordinal)
        if not files:
            return None
        lanes = None
        if self._source.lanes:
            gone = Counter(self._source.lane_of(file) for file in self._taking[0][:first])
            lanes = frozenset(self._lanes - gone)
        return Offer(pieces, None, ordinal + len(files), lanes=lanes)

    def finished(self) -> bool:
        return self._frozen and not self._order

    def committed(self, offset: Any) -> None:
        taken, step = self._taking
        self._seen.commit(step, self._first_read(taken))
        self._tails.commit(offset["tails"])
        self._offset, self._taking = offset, ([], step)
        self._drop({file.name for file in taken})
        if self._frozen and self._source.growing == FOLLOW:
            self._wait_for([])  # of a long file that is followed only a part was taken
        if self._source.cleaning is not None:
            for file in taken:
                # Another one in its place is not the one that was read
                if file.renewed().version == file.version:
                    self._source.cleaning.clean(self._source.stream, file.path, file.name)

    def stop(self) -> None:
        self._tree.close()
