"""A place in a bucket of an S3-compatible object store, where only one of several can put an entry.

Where the store is and how to be let in is said by the usual environment variables (AWS_ENDPOINT_URL,
AWS_ACCESS_KEY_ID, …), not by the URI, which stands in messages and names of files. Objects appear whole, and
are put if absent by the store itself (`If-None-Match: *`).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import S3Store

from anabranch.errors import StateError
from anabranch.state.checksum import CHUNK
from anabranch.state.place import S3_SCHEME
from anabranch.state.remote_place import RemotePlace, cache_of

TRIES = 5
"""How often an entry is put that the store has refused without having one of its name."""
_PROVEN: set[str] = set()
"""Where this process has seen that a second put is refused."""


@dataclass(frozen=True)
class S3Place(RemotePlace):
    """The objects of a bucket whose keys begin with a prefix."""

    store: S3Store = field(kw_only=True, compare=False, repr=False)
    bucket: str = ""
    prefix: str = ""
    endpoint: str = ""

    @property
    def address(self) -> str:
        return f"{self.uri} at {self.endpoint}" if self.endpoint else self.uri

    def read(self, name: str) -> bytes:
        data = self._existing(name)
        if data is None:
            raise FileNotFoundError(errno.ENOENT, "there is no such object", f"{self.uri}/{name}")
        return data

    def _existing(self, name: str) -> bytes | None:
        """The contents of an object; None if there is none."""
        with self._told(name):
            try:
                return bytes(obstore.get(self.store, self._key(name)).bytes())
            except FileNotFoundError:
                return None

    def _fetch(self, name: str, target: Path) -> None:
        with self._told(name), open(target, "wb") as copy:
            try:
                for chunk in obstore.get(self.store, self._key(name)).stream(min_chunk_size=CHUNK):
                    copy.write(chunk)
            except FileNotFoundError as error:
                where = f"{self.uri}/{name}"
                raise FileNotFoundError(errno.ENOENT, "there is no such object", where) from error

    def has(self, name: str) -> bool:
        with self._told(name):
            try:
                obstore.head(self.store, self._key(name))
            except FileNotFoundError:
                return False
            return True

    def _send(self, path: Path, name: str, fsync: bool) -> None:
        with self._told(name):
            obstore.put(self.store, self._key(name), path)

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
            with self._told(name):
                try:
                    obstore.put(self.store, self._key(name), data, mode="create")
                except (AlreadyExistsError, PreconditionError):
                    return FileExistsError(
                        errno.EEXIST, "there is such an object", f"{self.uri}/{name}"
                    )
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

    def names(self, folder: str, suffix: str) -> list[str]:
        with self._told(folder):
            listed = [
                entry["path"].removeprefix(self._key(""))
                for entries in obstore.list(self.store, f"{self._key(folder)}/")
                for entry in entries
            ]
        return sorted(name for name in listed if name.endswith(suffix))

    def _delete(self, name: str) -> bool:
        """Deletes an object; the store does not tell whether there was one."""
        with self._told(name):
            try:
                obstore.delete(self.store, self._key(name))
            except FileNotFoundError:
                return False
        return True

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    @contextlib.contextmanager
    def _told(self, name: str) -> Iterator[None]:
        """Turns what the store says into an OSError of one line that names the object."""
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and error.errno:
                raise
            reason = str(error).split("\n", 1)[0]
            # A listing that was refused comes as an error without a kind
            if any(code in reason for code in ("401 Unauthorized", "403 Forbidden")):
                keys = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                given = bool(os.environ.get("AWS_ACCESS_KEY_ID"))
                reason = f"{keys} {'do not let this user in' if given else 'are not set'}: {reason}"
            if isinstance(error, FileNotFoundError) or "NoSuchBucket" in str(error):
                # Not as it came: that would be taken for an object that was cleared away
                reason = f"is there a bucket '{self.bucket}'? {reason}"
            raise OSError(errno.EIO, reason, f"{self.uri}/{name}") from error


def s3_place(uri: str, private: bool) -> S3Place:
    """The place of s3://bucket/folder; raises StateError if it is not one, or cannot be reached."""
    bucket, _, prefix = uri.removeprefix(S3_SCHEME).partition("/")
    prefix = prefix.strip("/")
    if not bucket or set(uri) & set("?#@") or "//" in prefix:
        raise StateError(
            f"The checkpoint is '{uri}'; expected s3://bucket/folder. The server, the region and the keys "
            "are taken from AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    variables = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    endpoint = next((os.environ[name] for name in variables if os.environ.get(name)), "")
    try:
        store = S3Store(
            bucket,
            conditional_put="etag",
            # Whoever writes http:// has said so
            client_options={"allow_http": endpoint.startswith("http://")},
        )
    except BaseError as error:
        reason = str(error).split("\n", 1)[0]
        raise StateError(f"The checkpoint '{uri}' cannot be reached: {reason}.") from error
    plain = f"{S3_SCHEME}{bucket}/{prefix}".rstrip("/")
    return S3Place(
        cache_of(f"{plain} at {endpoint}"), private, plain, bucket, prefix, endpoint, store=store
    )
