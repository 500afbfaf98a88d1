"""The checkpoint folder: a lock, the ledger of manifests, the segments they name.

manifests/000000000012.json   the ledger
state/<subquery>/…            segment files
sources/…                     what streams have read, where that is much
lock                          held by the run that uses the folder

The lock tells a second run at once that it is one too many. Where it fails (deleted, on another machine),
the ledger keeps the runs apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import zlib
from typing import Any

from anabranch.errors import StateError
from anabranch.state.checksum import Damaged, seal, unseal
from anabranch.state.folders import make_file, make_folder
from anabranch.state.ledger import Ledger
from anabranch.state.line import read_newest
from anabranch.state.manifest import Manifest
from anabranch.state.place import Place


class Store:
    """Durable state in one place, used by one run at a time."""

    def __init__(self, place: Place, fsync: bool = True, keep: int = 1) -> None:
        self.place = place
        self.ledger = Ledger(place, fsync, keep)
        try:
            make_folder(place.scratch, place.private, fsync)
            make_folder(place.lock.parent, place.private, fsync)
            if not place.lock.exists():
                make_file(place.lock, place.private)
            self._lock = open(place.lock, "a+")  # noqa: SIM115 - held until close()
        except OSError as error:
            raise StateError(
                f"The checkpoint folder '{place}' cannot be written: {error.strerror} "
                f"('{error.filename or place}'). "
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


def read_latest(place: Place) -> Manifest | None:
    """The manifest of the last committed epoch, or None if there is none yet."""
    newest = read_newest(place)
    return newest if newest and newest.epoch >= 0 else None


def write_sealed(place: Place, name: str, contents: dict[str, Any], fsync: bool) -> int:
    """Writes a small JSON file with its checksum so that a reader sees all of it or nothing.

    Its checksum, for whoever names the file: one that was copied over it is whole, too.
    """
    data = seal(json.dumps(contents).encode())
    try:
        with place.writing(name, fsync) as path:
            path.write_bytes(data)
    except OSError as error:
        raise StateError(
            f"Cannot write '{place}/{name}': {error.strerror or error}. The epoch is not counted; "
            "free space or mend the folder and start again."
        ) from error
    return zlib.crc32(data)


def read_sealed(place: Place, name: str, what: str, checksum: int | None = None) -> dict[str, Any]:
    """What `write_sealed` wrote; StateError if it is gone, damaged or, by its checksum, another file."""
    try:
        data = place.read(name)
        contents = dict(json.loads(unseal(data)))
        if checksum not in (None, zlib.crc32(data)):
            raise Damaged("it is whole, but not the file that the manifest names")
        return contents
    except (OSError, ValueError, Damaged) as error:
        raise StateError(
            f"{what}, '{place}/{name}', cannot be read: {error}. Restore it from a copy, or start with "
            "a new checkpoint folder."
        ) from error
