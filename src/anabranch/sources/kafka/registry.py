"""A schema registry: who knows the schema of each message by the number that the message begins with.

A message of a registry is a zero byte, the number of its schema in four bytes, and the value. Schemas
never change under their number, so each process asks for one once; of one that is unknown now and then again.
"""

from __future__ import annotations

import base64
import functools
import ipaddress
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch.errors import SettingsError, SourceError
from anabranch.sources.kafka.connection import looked_up
from anabranch.sources.kafka.protobuf import describe

HEADER = 5
"""Bytes before the value of a message."""
TIMEOUT = 10.0
"""Seconds that an answer may take."""
NOT_FOUND, NONE_SUCH = 404, (40401, 40402, 40403)
"""What a registry answers for a subject, a version or a schema that it has not: other 404 are not its own."""
PAUSES = (0.5, 2.0)
"""Seconds after which a schema that is not known is asked for again."""
MISSING_SECONDS, MOST_MISSING = 60.0, 10_000
"""For how long it is then taken for unknown, and how many of those are remembered."""
ROOT = "value.proto"
"""What the file with the type of the messages is called: the registry knows it by its number only."""
REDIRECTS = range(300, 400)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The login is for the registry alone, and would be sent to whatever host a redirect names."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


@dataclass(frozen=True)
class RegisteredSchema:
    """A schema as the registry has it."""

    kind: str
    """AVRO, JSON or PROTOBUF."""
    text: str
    """Of Protobuf the description of its types, with all files that they need."""


@dataclass(frozen=True)
class SchemaRegistry:
    """Where the registry is, and where the credential for it, `user:password`, is to be found."""

    url: str
    login: str = ""

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest schema of a subject; None if there is none."""
        return self._schema(_newest(subject))

    def require(self, topic: str) -> None:
        """Raises SourceError if no registry answers; what it knows of the topic does not matter."""
        self._get(_newest(f"{topic}-value"))

    def _schema(self, path: str) -> RegisteredSchema | None:
        told = self._get(path)
        if told is None:
            return None
        kind = told.get("schemaType", "AVRO")
        text = self._types(path) if kind == "PROTOBUF" else told["schema"]
        return RegisteredSchema(kind, text)

    def _types(self, path: str) -> str:
        """The files of Protobuf types, imported ones first: compiled, for there is no compiler here."""
        files: dict[str, bytes] = {}

        def gather(name: str, path: str) -> None:
            told = self._get(f"{path}?format=serialized") or {}
            for other in told.get("references", ()):
                if other["name"] not in files:
                    subject = urllib.parse.quote(other["subject"], safe="")
                    gather(other["name"], f"subjects/{subject}/versions/{other['version']}")
            try:
                files[name] = base64.b64decode(told.get("schema", ""), validate=True)
            except ValueError as error:
                raise SourceError(
                    f"The schema registry at {self.url} gives '{path}' only as a text, not as the descriptor "
                    "of a .proto file (format=serialized), as which messages are read. Use one that does."
                ) from error

        gather(ROOT, path)
        return describe([*files.items()])

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(f"{self.url.rstrip('/')}/{path}")
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json")
        if self.login:
            given = looked_up("the schema registry's login", self.login)
            word = base64.b64encode(given.encode()).decode()
            request.add_header("Authorization", f"Basic {word}")
        try:
            with _OPENER.open(request, timeout=TIMEOUT) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == NOT_FOUND and _code(error) in NONE_SUCH:
                return None
            reason = f"it answered {error.code}"
            if error.code == NOT_FOUND:
                reason += (
                    ", and not as a schema registry does: is the address right, with its path?"
                )
            if error.code in REDIRECTS:
                reason += ", a redirect, which is not followed: give the address that it has"
        except (OSError, ValueError) as error:
            reason = str(getattr(error, "reason", error))
        raise SourceError(
            f"The schema registry at {self.url} could not be asked for '{path}': {reason}. Nothing is lost: "
            "start again when it answers."
        )


def _newest(subject: str) -> str:
    return f"subjects/{urllib.parse.quote(subject, safe='')}/versions/latest"


def _code(error: urllib.error.HTTPError) -> int | None:
    """What a registry says beside the code of HTTP."""
    try:
        told = json.load(error)
    except (OSError, ValueError):
        return None
    return told.get("error_code") if isinstance(told, dict) else None


class _Unknown(Exception):
    """The registry has no schema of this number."""


@functools.lru_cache(maxsize=1024)
def _schema_numbered(registry: SchemaRegistry, number: int) -> RegisteredSchema:
    found = registry._schema(f"schemas/ids/{number}")
    if found is None:
        raise _Unknown
    return found


_missing: dict[tuple[SchemaRegistry, int], float] = {}
"""Numbers that a registry did not know, with the time until which it is not asked again."""


def schema_numbered(registry: SchemaRegistry, number: int) -> RegisteredSchema | None:
    """The schema of a number; None if the registry has none. Raises SourceError if it does not answer."""
    if _missing.get((registry, number), 0.0) > time.monotonic():
        return None
    try:
        return _schema_numbered(registry, number)
    except _Unknown:
        return None


def forget() -> None:
    """Lets go of all that registries have told this process."""
    _schema_numbered.cache_clear()
    _missing.clear()


def numbers_in(values: Sequence[bytes]) -> pl.Series:
    """The schema number of each message; NULL where it does not begin as messages of a registry do."""
    begun = pl.Series(values, dtype=pl.Binary)
    framed = begun.bin.starts_with(b"\0") & (begun.bin.size() >= HEADER)
    heads = begun.filter(framed).bin.slice(1, HEADER - 1)
    numbers = np.frombuffer(b"".join(heads.to_list()), dtype=">u4").astype(np.int64)
    found = np.full(len(values), -1, np.int64)
    found[framed.to_numpy()] = numbers
    return pl.Series(found).replace(-1, None)


def ask_ahead(registry: SchemaRegistry, values: Sequence[bytes]) -> None:
    """Gets the schemas of all these messages; raises SourceError if the registry does not answer.

    One that it does not know is asked for again: a replica of a registry may learn of it after its messages.
    """
    numbers = [
        number
        for number in numbers_in(values).drop_nulls().unique().to_list()
        if _missing.get((registry, number), 0.0) <= time.monotonic()
    ]
    for pause in (0.0, *PAUSES):
        time.sleep(pause if numbers else 0.0)
        numbers = [number for number in numbers if schema_numbered(registry, number) is None]
    if len(_missing) > MOST_MISSING:
        _missing.clear()
    until = time.monotonic() + MISSING_SECONDS
    _missing.update({(registry, number): until for number in numbers})


def bodies(values: Sequence[bytes]) -> list[bytes]:
    """The values of messages of a registry, without the numbers of their schemas."""
    framed = numbers_in(values).is_not_null()
    return [value[HEADER:] for value, one in zip(values, framed, strict=True) if one]


def framed(
    registry: SchemaRegistry, values: Sequence[bytes], kind: str
) -> Iterator[tuple[str, np.ndarray, list[bytes]]]:
    """The messages of each schema: its text, their places, their values; ValueError for others."""
    numbers = numbers_in(values)
    if numbers.null_count():
        raise ValueError("it does not begin with the number of a schema of the registry")
    for number in numbers.unique(maintain_order=True).to_list():
        schema = schema_numbered(registry, number)
        if schema is None:
            raise ValueError(f"the registry has no schema {number}")
        if schema.kind != kind:
            raise ValueError(f"schema {number} of the registry is {schema.kind}, not {kind}")
        places = np.flatnonzero(numbers.to_numpy() == number)
        yield schema.text, places, [values[place][HEADER:] for place in places.tolist()]


def read_registry(what: str, url: str | None, login: str | None) -> SchemaRegistry | None:
    """The registry that a user asks for."""
    if url is None:
        return None
    if not url.startswith(("http://", "https://")) or "@" in url:
        raise SettingsError(
            f"{what}: expected the address of a schema registry, 'https://host:8081', without credentials "
            "in it: they are given as registry_login='env:NAME', where NAME is user:password."
        )
    if login is not None and not login.startswith(("env:", "file:")):
        raise SettingsError(
            f"{what}: registry_login must say where the credential is, 'env:NAME' or 'file:PATH', not what "
            "it is."
        )
    if login is not None and not url.startswith("https://") and not _is_here(url):
        raise SettingsError(
            f"{what}: registry_login would be sent to {url} for all on the way to read: expected an address "
            "that begins with https://, or one of this machine."
        )
    return SchemaRegistry(url, login or "")


def _is_here(url: str) -> bool:
    """Whether an address is of loopback."""
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
