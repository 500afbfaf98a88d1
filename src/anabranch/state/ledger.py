"""The ledger: the line of manifests of a checkpoint, which only one run at a time can go on with.

manifests/000000000012.json   an entry, written whole or not at all

Entries are numbered without a gap, and each is put in place only if there is none of its number. A run begins
by *claiming* the checkpoint: its first entry says what the last one said, under a token of its own. From
then on an older run that still lives (its lock was deleted, its machine was thought dead, it was stopped and
goes on) finds the number of its next entry taken: its epoch does not count, and it stops. Nothing is deleted
before a claim, and nothing by a run that has lost it.
"""

from __future__ import annotations

import os
import socket
import uuid

from msgspec.structs import replace

from anabranch.errors import StateError
from anabranch.state.folders import explained
from anabranch.state.manifest import Manifest, decode, encode
from anabranch.state.place import Place

FOLDER, SUFFIX = "manifests", ".json"


class Ledger:
    """The line of manifests as one run sees it: the entries it has read and the one it stands on."""

    def __init__(self, place: Place, fsync: bool) -> None:
        self._place = place
        self._fsync = fsync
        self._token = uuid.uuid4().hex
        self._holder = f"{os.getpid()} on {socket.gethostname()}"
        self._last = -1
        """The number of the entry that this run goes on from."""
        self._files: dict[str, set[str]] = {}
        """The files that each entry needs."""

    def latest(self) -> Manifest | None:
        """The newest entry, from which this run goes on."""
        newest = read_newest(self._place)
        self._last = newest.serial if newest else -1
        return newest

    def claim(self, manifest: Manifest) -> None:
        """Puts the first entry of this run in place, which says what the last one said."""
        self._append(manifest, "The run has not begun")

    def commit(self, manifest: Manifest) -> None:
        """Makes an epoch count: from here on it has happened."""
        self._append(manifest, "The epoch is not counted")

    def _append(self, manifest: Manifest, otherwise: str) -> None:
        """Puts the next entry in place; raises StateError if another run was first."""
        serial = self._last + 1
        name = _name(serial)
        entry = replace(manifest, serial=serial, token=self._token, holder=self._holder)
        try:
            first = self._place.put(name, encode(entry), self._fsync)
        except OSError as error:
            raise StateError(
                f"Cannot write '{self._place}/{name}': {error.strerror or error}. {otherwise}; free "
                "space or mend the folder and start again."
            ) from error
        # The number may have been free again because others have gone far beyond it and cleared it away
        if not first or self._names()[-1] != name:
            if first:
                self._place.remove(name)
            raise self._lost()
        self._last = serial
        self._files[name] = entry.files()

    def leads(self) -> bool:
        """Whether the newest entry is the one that this run stands on."""
        names = self._names()
        return not names or names[-1] == _name(self._last)

    def require_lead(self) -> None:
        """Raises StateError if another run has claimed the checkpoint since."""
        if not self.leads():
            raise self._lost()

    def _lost(self) -> StateError:
        try:
            newest = read_newest(self._place)
            holder = f"process {newest.holder}" if newest else "a process that is gone"
        except StateError:
            holder = "a process that cannot be told"
        return StateError(
            f"Another run has taken over the checkpoint '{self._place}': {holder}. This one "
            f"(process {self._holder}) stops: what it had under way is not counted, and it has deleted "
            "nothing. Only one run at a time can use a checkpoint; leave the file 'lock' in it alone."
        )

    def clear(self, keep: int) -> int:
        """Deletes entries beyond the newest `keep`, and files that only they named."""
        names = self._names()
        if not names or names[-1] != _name(self._last):
            raise self._lost()
        kept = self._named(names[-keep:])
        removed = 0
        for name in names[:-keep]:
            # First the manifest: what exists names nothing that is gone, whenever a crash comes
            files = self._named([name]) - kept
            self._place.remove(name)
            removed += sum(self._place.remove(file) for file in files)
            self._files.pop(name, None)
        return removed

    def sweep(self) -> int:
        """Deletes half-written files, and state and lists of read files that no entry names.

        A crash has left them behind, or an epoch that failed.
        """
        # What is there is listed before the look at the lead: a run that claims the checkpoint after
        # that writes nothing that is in the lists
        unfinished = self._place.unfinished()
        found = [*self._place.names("state", ".arrow"), *self._place.names("sources", ".json")]
        names = self._names()
        if names and names[-1] != _name(self._last):
            return 0
        kept = self._named(names)
        for name in unfinished:
            self._place.remove(name)
        return sum(self._place.remove(name) for name in found if name not in kept)

    def _named(self, names: list[str]) -> set[str]:
        for name in names:
            if name not in self._files:
                self._files[name] = self._read(name).files()
        return set().union(*(self._files[name] for name in names))

    def _read(self, name: str) -> Manifest:
        try:
            with explained(self._place):
                return decode(self._place.read(name), f"{self._place}/{name}")
        except StateError as error:
            raise StateError(
                f"{error} It is not the newest one: it may also be deleted."
            ) from error

    def _names(self) -> list[str]:
        return self._place.names(FOLDER, SUFFIX)


def read_newest(place: Place) -> Manifest | None:
    """The newest entry of a checkpoint; a run may be writing on in the meantime."""
    gone = ""
    while names := _listed(place):
        where = f"{place}/{names[-1]}"
        try:
            newest = decode(place.read(names[-1]), where)
        except FileNotFoundError as error:
            if names[-1] == gone:
                raise StateError(
                    f"The manifest '{where}' is listed but cannot be opened: is it a link to what is not "
                    "there? Restore it from a copy, or start with a new checkpoint folder."
                ) from error
            gone = names[-1]
            continue  # cleared away by the run since it was listed: there is a newer one
        except OSError as error:
            raise StateError(
                f"The manifest '{where}' cannot be read: {error.strerror or error}. Restore it from a "
                "copy, or start with a new checkpoint folder."
            ) from error
        if names[-1] != _name(newest.serial):
            raise StateError(
                f"The manifest '{where}' is number {newest.serial} of its line. Was it renamed or "
                "copied? Give it its name back, or start with a new checkpoint folder."
            )
        return newest
    return None


def _listed(place: Place) -> list[str]:
    with explained(place):
        return place.names(FOLDER, SUFFIX)


def _name(serial: int) -> str:
    return f"{FOLDER}/{serial:012d}{SUFFIX}"
