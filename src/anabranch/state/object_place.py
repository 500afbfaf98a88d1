"""A place in a bucket of an object store, where only one of several can put an entry.

Where the store is and how to be let in is said by the environment (`uris.py`). Objects appear whole, and are
put if absent by the store itself (`If-None-Match: *`).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.errors import StateError
from anabranch.state.bucket import Bucket
from anabranch.state.remote_place import RemotePlace, cache_of
from anabranch.state.uris import bucket_of

TRIES = 5
"""How often an entry is put that the store has refused without having one of its name."""
_PROVEN: set[str] = set()
"""Where this process has seen that a second put is refused."""


@dataclass(frozen=True)
class ObjectPlace(RemotePlace):
    """The objects of a bucket whose keys begin with a prefix."""

    bucket: Bucket = field(kw_only=True)
    prefix: str = ""

    @property
    def address(self) -> str:
        return f"{self.uri} at {self.bucket.endpoint}" if self.bucket.endpoint else self.uri

    def read(self, name: str) -> bytes:
        return self.bucket.read(self._key(name))

    def _existing(self, name: str) -> bytes | None:
        """The contents of an object; None if there is none."""
        try:
            return self.read(name)
        except FileNotFoundError:
            return None

    def _fetch(self, name: str, target: Path) -> None:
        with open(target, "wb") as copy:
            self.bucket.fetch(self._key(name), copy)

    def has(self, name: str) -> bool:
        return self.bucket.head(self._key(name)) is not None

    def _send(self, path: Path, name: str, fsync: bool) -> None:
        self.bucket.put(self._key(name), path)

    def put(self, name: str, data: bytes, fsync: bool) -> bool:
        """Puts an object in place if there is none of this name; of all who try one succeeds.

        An answer may get lost on its way, and the next try then meets what the first has put: entries
        differ from run to run, so one that is the same was put by this call.
        """
        for _ in range(TRIES):
            failure = self._create(name, data)
            if failure is None:
                self._prove(name, data)
                return True
            try:
                existing = self._existing(name)
            except OSError as error:
                raise StateError(
                    f"The store did not answer when '{self.uri}/{name}' was put ({failure.strerror}), and "
                    "does not say whether it is there: the next start finds out whether it counts. Start "
                    "again when the store answers."
                ) from error
            if existing is not None:
                return existing == data
            if not isinstance(failure, FileExistsError):
                raise failure
        reason = f"the store has refused it {TRIES} times without having an object of this name"
        raise OSError(errno.EIO, reason, f"{self.uri}/{name}")

    def _create(self, name: str, data: bytes) -> OSError | None:
        """One conditional put; what stood in its way, which may be a put that has succeeded."""
        try:
            self.bucket.create(self._key(name), data)
        except OSError as error:
            return error
        return None

    def _prove(self, name: str, data: bytes) -> None:
        """Raises StateError where the store would let a second run overwrite an entry."""
        if self.address in _PROVEN:
            return
        refused = self._create(name, data)
        if refused is None:
            raise StateError(
                f"The store of '{self.uri}' does not refuse a put of an object that is there "
                "(If-None-Match: *), so it cannot keep two runs apart. Expected a store with conditional "
                "puts: Amazon S3, or another that has them. Choose one, or a checkpoint folder."
            )
        if isinstance(refused, FileExistsError):
            _PROVEN.add(self.address)

    def names(self, folder: str, suffix: str, after: str | None = None) -> list[str]:
        """The objects below a folder; those after a name alone, without a look at the others."""
        last = None if after is None else self._key(after)
        listed = (one.key for one in self.bucket.list(self._key(folder).rstrip("/"), last))
        names = (key.removeprefix(self._key("")) for key in listed)
        return sorted(name for name in names if name.endswith(suffix))

    def copy(self, name: str, target: str) -> None:
        """Makes an object appear under a second name, without a way through this machine."""
        self.bucket.copy(self._key(name), self._key(target))

    def remove_all(self, names: Sequence[str]) -> int:
        """Deletes objects, many in one request."""
        for name in names:
            self.renew(name)
        self.bucket.delete([self._key(name) for name in names])
        return len(names)

    def _delete(self, name: str) -> bool:
        """Deletes an object; the store does not tell whether there was one."""
        self.bucket.delete([self._key(name)])
        return True

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name


def object_place(uri: str, private: bool) -> ObjectPlace:
    """The place of s3://bucket/folder; raises StateError if it is not one, or cannot be reached."""
    try:
        bucket, prefix = bucket_of(uri)
    except ValueError as error:
        raise StateError(f"The place is '{uri}', which cannot be used: {error}.") from error
    plain = bucket.uri(prefix)
    cache = cache_of(f"{plain} at {bucket.endpoint}")
    return ObjectPlace(cache, private, plain, prefix, bucket=bucket)
