"""A bucket of an object store: list, read, put, copy and delete, with errors that name the object.

The library tries again by itself, with waits that grow, where a store answers that it cannot now or a
connection breaks; what is told here has failed for good. Objects appear whole.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import ObjectStore, S3Store, from_url

from anabranch.state.checksum import CHUNK
from anabranch.state.uris import KINDS

LISTED_AT_ONCE = 1000
RETRIES: Any = {"max_retries": 10, "retry_timeout": timedelta(minutes=3)}
"""How often, and for how long, the library tries again; waits grow from a tenth of a second to 15."""
PATIENCE: Any = {"read_timeout": timedelta(seconds=30), "timeout": timedelta(minutes=10)}
"""How long a store may be silent, and how long one answer may take: a large object takes its time."""
WAITS = (0.1, 0.4, 1.6)
"""Seconds before the same is asked again of which half an answer came."""
CUT_OFF = "body error"
REFUSED = ("401 Unauthorized", "403 Forbidden")
_SECRETS = ("KEY", "SECRET", "TOKEN", "PASSWORD")


class ObjectChanged(OSError):
    """The object is another one than it was."""


class ObjectVersion(NamedTuple):
    """What tells an object from another one of its key."""

    size: int
    modified: int
    """When it was put, in nanoseconds."""
    etag: str | None
    """By what the store tells it; not every store does."""

    def differs(self, other: ObjectVersion) -> bool:
        """Whether they are two; times are told in seconds here and in parts of them there."""
        if self.etag is not None and other.etag is not None:
            return self.etag != other.etag
        second = 1_000_000_000
        return (self.size, self.modified // second) != (other.size, other.modified // second)


@dataclass(frozen=True)
class ListedObject:
    """An object as a listing shows it."""

    key: str
    version: ObjectVersion


@dataclass(frozen=True)
class Bucket:
    """A bucket that this process can reach."""

    scheme: str
    name: str
    store: ObjectStore = field(compare=False, repr=False)
    endpoint: str = ""

    def uri(self, key: str) -> str:
        return f"{self.scheme}://{self.name}/{key}".rstrip("/")

    def list(self, folder: str, after: str | None = None) -> Sequence[ListedObject]:
        """The objects below a folder in the order of their keys, those after a key alone if one is given."""
        below = f"{folder}/" if folder else None

        def listed() -> Sequence[ListedObject]:
            found = obstore.list(self.store, below, offset=after, chunk_size=LISTED_AT_ONCE)
            return [_listed(entry) for entries in found for entry in entries]

        with self.told(folder):
            return whole_answer(listed)

    def head(self, key: str) -> ListedObject | None:
        """What is known of an object; None if there is none."""
        with self.told(key):
            try:
                return _listed(obstore.head(self.store, key))
            except FileNotFoundError:
                return None

    def read(self, key: str) -> bytes:
        """The contents of an object; raises FileNotFoundError."""
        with self.told(key), self._found(key):
            return whole_answer(lambda: bytes(obstore.get(self.store, key).bytes()))

    def fetch(
        self, key: str, target: IO[bytes], span: tuple[int, int] | None = None,
        version: ObjectVersion | None = None,
    ) -> None:  # fmt: skip
        """Writes an object, or a span of its bytes, to where a file stands.

        Raises FileNotFoundError, and ObjectChanged if the object is of another version than was given.
        """
        options: Any = {"if_match": version.etag} if version and version.etag else {}
        if span is not None:
            options["range"] = span
        start = target.tell()

        def write() -> None:
            target.seek(start)
            got = obstore.get(self.store, key, options=options)
            if version is not None and version.differs(_listed(got.meta).version):
                raise ObjectChanged(errno.ESTALE, "it was changed", self.uri(key))
            for chunk in got.stream(min_chunk_size=CHUNK):
                target.write(chunk)

        with self.told(key), self._found(key):
            try:
                whole_answer(write)
            except PreconditionError as error:
                raise ObjectChanged(errno.ESTALE, "it was changed", self.uri(key)) from error

    def put(self, key: str, data: bytes | Path) -> None:
        with self.told(key):
            whole_answer(lambda: obstore.put(self.store, key, data))

    def create(self, key: str, data: bytes) -> None:
        """Puts an object if there is none of this key; raises FileExistsError."""
        with self.told(key):
            try:
                obstore.put(self.store, key, data, mode="create")
            except (AlreadyExistsError, PreconditionError) as error:
                raise FileExistsError(
                    errno.EEXIST, "there is such an object", self.uri(key)
                ) from error

    def copy(self, key: str, target: str) -> None:
        """Copies an object within the store; raises FileNotFoundError."""
        with self.told(key), self._found(key):
            whole_answer(lambda: obstore.copy(self.store, key, target))

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects, many in one request; those that are not there are no matter."""
        with self.told(keys[0] if keys else ""), contextlib.suppress(FileNotFoundError):
            if keys:
                paths = keys[0] if len(keys) == 1 else [*keys]
                whole_answer(lambda: obstore.delete(self.store, paths))

    @contextlib.contextmanager
    def _found(self, key: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            raise FileNotFoundError(
                errno.ENOENT, "there is no such object", self.uri(key)
            ) from error

    @contextlib.contextmanager
    def told(self, key: str) -> Iterator[None]:
        """Turns what the store says into an OSError of one line that names the object."""
        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and error.errno and not _no_bucket(error):
                raise
            reason = plain_words(str(error))
            # A listing that was refused comes as an error without a kind
            if any(code in reason for code in REFUSED):
                keys = KINDS[self.scheme].keys
                verb = ("does", "is") if len(keys) == 1 else ("do", "are")
                given = bool(os.environ.get(keys[0]))
                problem = f"{verb[0]} not let this user in" if given else f"{verb[1]} not set"
                reason = f"{' and '.join(keys)} {problem}: {reason}"
            if isinstance(error, FileNotFoundError) or "NoSuchBucket" in str(error):
                # Not as it came: that would be taken for an object that was cleared away
                reason = f"is there a bucket '{self.name}'? {reason}"
            raise OSError(errno.EIO, reason, self.uri(key)) from error


Answer = TypeVar("Answer")


def whole_answer(ask: Callable[[], Answer]) -> Answer:
    """What a store answers; asked again, which must do no harm, if only half of the answer comes.

    The library tries again by itself until an answer begins.
    """
    for wait in WAITS:
        try:
            return ask()
        except BaseError as error:
            if CUT_OFF not in str(error).split("\n", 1)[0]:
                raise
        time.sleep(wait)
    return ask()


def _no_bucket(error: BaseException) -> bool:
    """Whether what is not there is the bucket, as the store has said in so many words."""
    return "NoSuchBucket" in f"{error}{error.__cause__}"


def plain_words(text: str) -> str:
    """The first line of what a store says, without what it repeats of the request, and without secrets."""
    line = text.split("\n", 1)[0].split("<?xml", 1)[0].split("<Error>", 1)[0].rstrip(" :")
    for name, value in os.environ.items():
        if len(value) > 3 and any(word in name for word in _SECRETS):
            line = line.replace(value, "…")
    return line


def _listed(entry: Any) -> ListedObject:
    modified = int(entry["last_modified"].timestamp() * 1000) * 1_000_000
    return ListedObject(entry["path"], ObjectVersion(entry["size"], modified, entry["e_tag"]))


def open_bucket(scheme: str, name: str) -> Bucket:
    """The bucket of this name as the environment says now; ValueError if that is no use."""
    given = {k: v for k, v in os.environ.items() if k.startswith(("AWS_", "GOOGLE_", "AZURE_"))}
    return _opened(scheme, name, os.getpid(), tuple(sorted(given.items())))


@functools.lru_cache(maxsize=16)
def _opened(scheme: str, name: str, process: int, variables: tuple[tuple[str, str], ...]) -> Bucket:
    """Kept, for a store has its connections; not over a fork, which has none of them."""
    given = dict(variables)
    endpoint = ""
    try:
        if scheme == "s3":
            endpoint = given.get("AWS_ENDPOINT_URL_S3") or given.get("AWS_ENDPOINT_URL", "")
            # Whoever writes http:// has said so
            client: Any = {**PATIENCE, "allow_http": endpoint.startswith("http://")}
            store: ObjectStore = S3Store(
                name, conditional_put="etag", client_options=client, retry_config=RETRIES
            )
        else:
            store = from_url(f"{scheme}://{name}", client_options=PATIENCE, retry_config=RETRIES)
    except BaseError as error:
        raise ValueError(plain_words(str(error))) from error
    return Bucket(scheme, name, store, endpoint)
