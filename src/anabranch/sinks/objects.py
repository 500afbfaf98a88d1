"""Results in a bucket: Parquet, Arrow, CSV or JSON lines, one folder per epoch, published without a rename.

    s3://bucket/flows/_run.json
    s3://bucket/flows/_waiting/epoch=000000000012-4be1a07c/part-site-0001-flows@1-0.parquet
    s3://bucket/flows/epoch=000000000012/part-site-0001-flows@1-0.parquet
    s3://bucket/flows/epoch=000000000012/_SUCCESS

Tasks put their parts where nobody looks. Once the epoch is committed the store copies them, and `_SUCCESS`,
which names them, comes last: an epoch that has it is whole and never changes. `whole_epochs` gives the parts
of such epochs. A folder belongs to one run, which is noted in it; of two runs that begin there one succeeds.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.errors import RunError, SettingsError, StateError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.claim import Owner
from anabranch.sinks.files import refuse_format, refuse_types
from anabranch.sinks.staging import Staging, hidden_epoch, visible_epoch
from anabranch.state.manifest import ResultPart
from anabranch.state.object_place import ObjectPlace, object_place
from anabranch.state.uris import split_uri

OWNER = "_run.json"
WAITING = "_waiting"
SUCCESS = "_SUCCESS"


@dataclass(frozen=True)
class ObjectSink:
    """A folder of result objects in a bucket."""

    folder: str
    """Its URI."""
    format: str = "parquet"

    def __post_init__(self) -> None:
        refuse_format(self.format)
        try:
            scheme, bucket, key = split_uri(self.folder)
            if "*" in key or not key:
                raise ValueError(f"expected {scheme}://bucket/folder")
        except ValueError as error:
            raise SettingsError(
                f"The folder of a sink is '{self.folder}', which cannot be used: {error}."
            ) from error
        object.__setattr__(self, "folder", f"{scheme}://{bucket}/{key}")

    def open(self, context: WriteContext) -> ObjectWriter:
        what = f"The sink of '{context.query}'"
        refuse_types(what, self.format, context.schema)
        try:
            place = object_place(self.folder, context.private)
            _claim(place, what, context)
        except OSError as error:
            raise SettingsError(
                f"{what} cannot be written to '{self.folder}': {error.strerror or error}."
            ) from error
        return ObjectWriter(place, context.query, self.format, context.private)

    def describe(self) -> str:
        return f"{self.folder} ({self.format})"


def _claim(place: ObjectPlace, what: str, context: WriteContext) -> None:
    """Takes a folder for a run; raises StateError if it is another's."""
    owner = Owner.of(context.run, context.checkpoint, context.temporary)
    data = _owner_text(owner)
    with contextlib.suppress(FileNotFoundError):
        # Mostly it is there, and is ours
        if _owner(place).run == owner.run:
            return
    if place.put(OWNER, data, True):
        return
    other = _owner(place)
    if other.run == owner.run:
        return
    if other.tag == owner.tag and not place.names("", "", after="epoch="):
        # A start of the same checkpoint that ended before its first results
        place.bucket.put(f"{place.prefix}/{OWNER}", data)
        return
    raise StateError(
        f"{what} is the folder '{place}', which belongs to {other}. Use another folder or the checkpoint of "
        f"that run; if that run is of no more use, delete all objects of the folder, '{OWNER}' too."
    )


def _owner_text(owner: Owner) -> bytes:
    record = {"run": owner.run, "at": owner.tag, "checkpoint": owner.checkpoint}
    return json.dumps(record).encode()


def _owner(place: ObjectPlace) -> Owner:
    record: dict[str, Any] = json.loads(place.read(OWNER))
    return Owner(record["run"], record["at"], record["checkpoint"])


@dataclass
class ObjectWriter:
    """A result folder in a bucket that one run writes to."""

    place: ObjectPlace
    query: str
    format: str
    private: bool
    _spent: list[str] = field(default_factory=list)
    """What waited and was published."""

    @property
    def repeats(self) -> bool:
        return False

    def staging(self, epoch: int, attempt: str) -> Staging:
        prefix = f"{_waiting(epoch, attempt)}/"
        return Staging(self.place.uri, prefix, self.format, True, self.private)

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        waiting, target = _waiting(epoch, attempt), visible_epoch(epoch)
        try:
            self._copy(parts, waiting, target)
        except FileNotFoundError as error:
            # Published, and cleared away, by a run that has taken over or been taken over, or before a crash
            if not self.place.has(f"{target}/{SUCCESS}"):
                raise StateError(
                    f"The results of query '{self.query}' in epoch {epoch} are committed, but the sink has "
                    f"them neither waiting in '{self.place}/{waiting}' nor in '{self.place}/{target}'. Start "
                    "with the folder that has them, or once with the sink that the query had; to do without "
                    f"them, put an empty object '{target}/{SUCCESS}'."
                ) from error
        except OSError as error:
            raise RunError(
                f"The results of query '{self.query}' in epoch {epoch} are committed but could not be "
                f"published in '{self.place}/{target}': {error.strerror or error}. The next start does that."
            ) from error
        self._spent.extend(f"{waiting}/{part.name}" for part in parts)

    def _copy(self, parts: Sequence[ResultPart], waiting: str, target: str) -> None:
        for part in parts:
            self.place.copy(f"{waiting}/{part.name}", f"{target}/{part.name}")
        record = [{"name": part.name, "rows": part.rows, "bytes": part.bytes} for part in parts]
        key = f"{self.place.prefix}/{target}/{SUCCESS}"
        self.place.bucket.put(key, json.dumps({"parts": record}).encode())

    def clear(self) -> None:
        self.place.remove_all(self._spent)
        self._spent.clear()

    def discard(self, epoch: int, attempt: str) -> None:
        # If that fails, the next start does it; the error that brought us here says more
        with contextlib.suppress(OSError):
            self.place.remove_all(self.place.names(_waiting(epoch, attempt), ""))

    def recover(self, epoch: int) -> None:
        # `~` comes after whatever a part may begin with
        later = [
            name
            for name in self.place.names("", "", after=f"{visible_epoch(max(epoch, 0))}/~")
            if name.startswith("epoch=")
        ]
        if epoch < 0:
            later = [
                name for name in self.place.names("", "", "epoch=") if name.startswith("epoch=")
            ]
        if later:
            reached = f"has come to epoch {epoch}" if epoch >= 0 else "is new"
            raise StateError(
                f"The folder '{self.place}' already has '{later[0]}', but the checkpoint {reached}: that is "
                "from another run, or the checkpoint is an older copy. Use another folder or the checkpoint "
                "that wrote it, or remove it and what comes after it."
            )
        self.place.remove_all(self.place.names(WAITING, ""))

    def close(self) -> None:
        """Nothing is held: the ledger says which of two drivers of one run may go on."""


def _waiting(epoch: int, attempt: str) -> str:
    return f"{WAITING}/{hidden_epoch(epoch, attempt)[1:]}"


def whole_epochs(folder: str, after: int = -1) -> dict[int, list[str]]:
    """The URIs of the parts of every whole epoch in a result folder, after an epoch if one is given.

    parts = whole_epochs("s3://bucket/flows")
    polars.read_parquet([part for epoch in parts.values() for part in epoch])
    """
    place = object_place(folder, True)
    last = "epoch=" if after < 0 else f"{visible_epoch(after)}/~"
    marks = (name for name in place.names("", SUCCESS, after=last) if name.startswith("epoch="))
    found: dict[int, list[str]] = {}
    for mark in marks:
        name = mark.partition("/")[0]
        text = place.read(mark)
        parts = json.loads(text)["parts"] if text else []
        found[int(name.partition("=")[2])] = [
            f"{place.uri}/{name}/{part['name']}" for part in parts
        ]
    return found
