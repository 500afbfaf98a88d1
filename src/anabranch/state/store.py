"""The checkpoint folder: manifests, segments, a lock; commits and clears away.

manifests/000000000012.json   one per kept epoch, written whole or not at all
state/<subquery>/…            segment files
lock                          held by the run that uses the folder
"""

from __future__ import annotations

import contextlib
import fcntl
import os

from anabranch.errors import StateError
from anabranch.state.manifest import Manifest, decode, encode
from anabranch.state.place import Place


class Store:
    """Durable state in one place, used by one run at a time (of this machine)."""

    def __init__(self, place: Place, fsync: bool = True) -> None:
        self.place = place
        self.fsync = fsync
        try:
            place.scratch.mkdir(parents=True, exist_ok=True)
            self._lock = open(place.scratch / "lock", "a+")  # noqa: SIM115 - held until close()
        except OSError as error:
            raise StateError(
                f"The checkpoint folder '{place}' cannot be written: {error.strerror}. "
                "Choose another folder or change its permissions."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "unknown"
            self._lock.close()
            raise StateError(
                f"The checkpoint '{place}' is in use by process {owner}. "
                "Stop that run first, or use another checkpoint folder."
            ) from error
        # Who holds the lock is good to know, but not worth failing for when the disk is full
        with contextlib.suppress(OSError):
            self._lock.truncate(0)
            os.write(self._lock.fileno(), str(os.getpid()).encode())

    def close(self) -> None:
        self._lock.close()

    def latest(self) -> Manifest | None:
        """The manifest of the last committed epoch."""
        return read_latest(self.place)

    def commit(self, manifest: Manifest) -> None:
        """Makes an epoch count: from here on it has happened."""
        write_whole(
            self.place, f"manifests/{manifest.epoch:012d}.json", encode(manifest), self.fsync
        )

    def clear(self, keep: int) -> int:
        """Deletes manifests beyond the newest `keep` and segments only they named."""
        names = self._names()
        if len(names) <= keep:
            return 0
        kept = self._files(names[-keep:])
        removed = 0
        for name in names[:-keep]:
            # First the manifest: what exists names nothing that is gone, whenever a crash comes
            files = self._read(name).files() - kept
            self.place.remove(name)
            removed += sum(self.place.remove(file) for file in files)
        return removed

    def sweep(self) -> int:
        """Deletes half-written files and segments no kept manifest names: what a crash left behind."""
        self.place.clean()
        kept = self._files(self._names())
        found = self.place.names("state", ".arrow")
        return sum(self.place.remove(name) for name in found if name not in kept)

    def _files(self, names: list[str]) -> set[str]:
        return set().union(*(self._read(name).files() for name in names))

    def _read(self, name: str) -> Manifest:
        return decode(self.place.read(name), f"{self.place}/{name}")

    def _names(self) -> list[str]:
        return self.place.names("manifests", ".json")


def read_latest(place: Place) -> Manifest | None:
    """The manifest of the last committed epoch; a run may be writing on in the meantime."""
    while names := place.names("manifests", ".json"):
        try:
            return decode(place.read(names[-1]), f"{place}/{names[-1]}")
        except FileNotFoundError:
            continue  # cleared away by the run since it was listed: there is a newer one
    return None


def write_whole(place: Place, name: str, data: bytes, fsync: bool) -> None:
    """Writes a small file so that a reader sees all of it or nothing."""
    try:
        with place.writing(name, fsync) as path:
            path.write_bytes(data)
    except OSError as error:
        raise StateError(
            f"Cannot write '{place}/{name}': {error.strerror or error}. The epoch is not counted; "
            "free space or mend the folder and start again."
        ) from error
