"""The ledger: the line of manifests of a checkpoint, which only one run at a time can go on with.

manifests/000000000012.json   an entry, written whole or not at all

Entries are numbered without a gap, and each is put in place only if there is none of its number. A run begins
by *claiming* the checkpoint: its first entry says what the last one said, under a token of its own. From
then on an older run that still lives (its lock was deleted, its machine was thought dead, it was stopped and
goes on) finds the number of its next entry taken: its epoch does not count, and it stops. Nothing is deleted
before a claim, and nothing by a run that has lost it.

Most entries say only what an epoch has changed. A whole manifest stands before them as often as keeps what
there is to read about as long as two of them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid

from msgspec.structs import replace

from anabranch.errors import StateError
from anabranch.state.entry import difference, encode
from anabranch.state.line import FOLDER, SUFFIX, entry_name, read_line, read_newest
from anabranch.state.manifest import Manifest
from anabranch.state.place import Place
from anabranch.state.shelf import ShelfChange

MOST_DELTAS = 64
"""Entries in a row that say only what has changed."""


class Ledger:
    """The line of manifests as one run sees it: what it has read of it and the entry it stands on."""

    def __init__(self, place: Place, fsync: bool, keep: int = 1) -> None:
        self._place = place
        self._fsync = fsync
        self._keep = keep
        """How many of the newest epochs can be gone on from."""
        self._token = uuid.uuid4().hex
        self._holder = f"{os.getpid()} on {socket.gethostname()}"
        self._last: Manifest | None = None
        """The entry that this run goes on from."""
        self._wholes: list[int] = []
        """The numbers of the entries that are whole manifests."""
        self._dropped: dict[int, set[str]] = {}
        """The files that each entry needs no longer, and the one before it did."""
        self._whole_bytes = self._delta_bytes = 0

    def latest(self) -> Manifest | None:
        """The newest entry, from which this run goes on."""
        self._last, self._wholes, self._dropped = None, [], {}
        needed: set[str] = set()
        for read in read_line(self._place):
            if isinstance(read.manifest, StateError):
                raise read.manifest
            self._last = read.manifest
            if read.whole:
                self._wholes.append(read.manifest.serial)
            before, needed = needed, read.manifest.files()
            self._dropped[read.manifest.serial] = before - needed
        return self._last

    def claim(self, manifest: Manifest) -> None:
        """Puts the first entry of this run in place, which says what the last one said."""
        self._append(manifest, None, "The run has not begun")

    def commit(self, manifest: Manifest, shelves: dict[str, ShelfChange] | None = None) -> None:
        """Makes an epoch count: from here on it has happened.

        `shelves` is what has become of them since the entry before, if that was an epoch of this run.
        """
        self._append(manifest, shelves, "The epoch is not counted")

    def _append(
        self, manifest: Manifest, shelves: dict[str, ShelfChange] | None, otherwise: str
    ) -> None:
        """Puts the next entry in place; raises StateError if another run was first."""
        before = self._last
        serial = before.serial + 1 if before else 0
        name = entry_name(serial)
        oldest = max(before.oldest if before else 0, serial - self._keep + 1)
        after = replace(
            manifest, serial=serial, token=self._token, holder=self._holder, oldest=oldest
        )
        delta = None
        if shelves is not None and before is not None and self._delta_bytes < self._whole_bytes:
            delta = difference(before, after, shelves)
        data, there = encode(delta or after), False
        try:
            first = self._place.put(name, data, self._fsync)
        except OSError as error:
            with contextlib.suppress(OSError):
                there = self._place.has(name)
            if there:
                otherwise = (
                    "It is there, but may not be on the disk; the next start tells what counts"
                )
            raise StateError(
                f"Cannot write '{self._place}/{name}': {error.strerror or error}. {otherwise}; free "
                "space or mend the folder and start again."
            ) from error
        if not first or self._names()[-1] != name:
            if first:
                self._take_back(serial)
            raise self._lost()
        self._last = after
        self._dropped[serial] = _dropped(before, after, shelves) if before else set()
        if delta is None:
            self._wholes.append(serial)
            # After a claim comes a whole one: sinks, and with them records, may have come and gone
            self._whole_bytes = len(data) if shelves is not None else 0
            self._delta_bytes = 0
        else:
            self._delta_bytes += max(len(data), -(-self._whole_bytes // MOST_DELTAS))

    def _take_back(self, serial: int) -> None:
        """Removes an entry of this run whose number was free only because it had been cleared away.

        If another run has claimed the checkpoint just after it was put, that run builds on it: it stays.
        """
        with contextlib.suppress(StateError):
            newest = read_newest(self._place)
            if newest is not None and serial < newest.oldest:
                self._place.remove(entry_name(serial))

    def leads(self) -> bool:
        """Whether the newest entry is the one that this run stands on."""
        names = self._names()
        return not names or (self._last is not None and names[-1] == entry_name(self._last.serial))

    def require_lead(self) -> None:
        """Raises StateError if another run has claimed the checkpoint since."""
        if not self.leads():
            raise self._lost()

    def lost(self) -> StateError | None:
        """What there is to say if the newest entry is another run's; None if it is this one's.

        It may be one that this run has put in place and could not flush: then nobody has taken over.
        """
        if self.leads():
            return None
        with contextlib.suppress(StateError):
            newest = read_newest(self._place)
            if newest is not None and newest.token == self._token:
                return None
        return self._lost()

    def _lost(self) -> StateError:
        try:
            newest = read_newest(self._place)
            holder = f"process {newest.holder}" if newest else "a process that is gone"
        except StateError:
            holder = "a process that cannot be told"
        return StateError(
            f"Another run has taken over the checkpoint '{self._place}': {holder}. This one "
            f"(process {self._holder}) stops: what it had under way counts only if that one has seen it, and "
            "it has deleted nothing. Only one run at a time can use a checkpoint; leave the file 'lock' in "
            "it alone."
        )

    def clear(self) -> int:
        """Deletes entries that nothing kept builds on, and files that no kept one needs."""
        if self._last is None:
            return 0
        self.require_lead()
        oldest = self._last.oldest
        beginning = max((serial for serial in self._wholes if serial <= oldest), default=0)
        past = [serial for serial in self._dropped if serial <= oldest]
        removed = self._place.remove_all(
            [file for serial in past for file in self._dropped.pop(serial)]
        )
        self._place.remove_all([name for name in self._names() if name < entry_name(beginning)])
        self._wholes = [serial for serial in self._wholes if serial >= beginning]
        return removed

    def sweep(self) -> int:
        """Deletes half-written files, and state and lists of read files that no kept entry needs.

        A crash has left them behind, or an epoch that failed.
        """
        # What is there is listed before the look at the lead: a run that claims the checkpoint after
        # that writes nothing that is in the lists
        unfinished = self._place.unfinished()
        found = [*self._place.names("state", ".arrow"), *self._place.names("sources", ".json")]
        if not self.leads():
            return 0
        needed = set().union(
            self._last.files() if self._last else set(),
            *(files for serial, files in self._dropped.items() if self._is_kept(serial - 1)),
        )
        self._place.remove_all(unfinished)
        return self._place.remove_all([name for name in found if name not in needed])

    def _is_kept(self, serial: int) -> bool:
        return self._last is not None and serial >= self._last.oldest

    def _names(self) -> list[str]:
        return self._place.names(FOLDER, SUFFIX)


def _dropped(before: Manifest, after: Manifest, shelves: dict[str, ShelfChange] | None) -> set[str]:
    """The files that a manifest does not need, and the one before it did."""
    if shelves is None:
        return before.files() - after.files()
    gone = {file for change in shelves.values() for file, _ in change.gone}
    live = {file for file in gone if any(file in r.shelf for r in after.subqueries.values())}
    return (gone - live) | (before.other_files() - after.other_files())
