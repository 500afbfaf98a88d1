"""The checkpoint folder: manifests, segments, a lock; commits and clears away.

manifests/000000000012.json   one per kept epoch, written whole or not at all
state/<subquery>/…            segment files
lock                          held by the run that uses the folder
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from anabranch.errors import StateError
from anabranch.state.manifest import Manifest, decode, encode
from anabranch.state.segment import sync


class Store:
    """Durable state under one folder, used by one run at a time."""

    def __init__(self, root: Path, fsync: bool = True) -> None:
        self.root = root
        self.fsync = fsync
        self._manifests = root / "manifests"
        try:
            self._manifests.mkdir(parents=True, exist_ok=True)
            (root / "state").mkdir(exist_ok=True)
            self._lock = open(root / "lock", "a+")  # noqa: SIM115 - held until close()
        except OSError as error:
            raise StateError(
                f"The checkpoint folder '{root}' cannot be written: {error.strerror}. "
                "Choose another folder or change its permissions."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "unknown"
            self._lock.close()
            raise StateError(
                f"The checkpoint '{root}' is in use by process {owner}. "
                "Stop that run first, or use another checkpoint folder."
            ) from error
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()

    def close(self) -> None:
        self._lock.close()

    def latest(self) -> Manifest | None:
        """The manifest of the last committed epoch."""
        names = self._names()
        if not names:
            return None
        path = self._manifests / names[-1]
        return decode(path.read_bytes(), str(path))

    def commit(self, manifest: Manifest) -> None:
        """Makes an epoch count: from here on it has happened."""
        path = self._manifests / f"{manifest.epoch:012d}.json"
        write_whole(path, encode(manifest), self.fsync)

    def clear(self, keep: int) -> int:
        """Deletes manifests beyond the newest `keep` and segments only they named."""
        names = self._names()
        if len(names) <= keep:
            return 0
        kept: set[str] = set()
        for name in names[-keep:]:
            kept |= decode((self._manifests / name).read_bytes(), name).files()
        removed = 0
        for name in names[:-keep]:
            path = self._manifests / name
            for file in decode(path.read_bytes(), name).files() - kept:
                removed += _remove(self.root / file)
            path.unlink(missing_ok=True)
        return removed

    def sweep(self) -> int:
        """Deletes every segment file no kept manifest names: what a crash left behind."""
        kept: set[str] = set()
        for name in self._names():
            kept |= decode((self._manifests / name).read_bytes(), name).files()
        found = (path for path in (self.root / "state").rglob("*.arrow"))
        return sum(_remove(path) for path in found if str(path.relative_to(self.root)) not in kept)

    def _names(self) -> list[str]:
        return sorted(path.name for path in self._manifests.glob("*.json"))


def write_whole(path: Path, data: bytes, fsync: bool) -> None:
    """Writes a file so that a reader sees all of it or nothing."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(data)
            if fsync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if fsync:
            sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise StateError(
            f"Cannot write '{path}': {error.strerror or error}. The epoch is not counted; "
            "free space or mend the folder and start again."
        ) from error


def _remove(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        return 1
    return 0
