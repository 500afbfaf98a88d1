"""Protobuf messages as columns: those of a chunk are decoded into an Arrow batch at once, by ptars.

A description of types is a JSON text, `[[name, base64 of its descriptor], …]`, of .proto files with those
that they import: it travels with a piece as the schema of Avro does. Files of `google/protobuf` need not
be in it. What is asked of a registry is in `registry.py`.
"""

from __future__ import annotations

import base64
import functools
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from anabranch.errors import SettingsError, SourceError, suggest
from anabranch.sources.formats import polars_schema

BUILT_IN = ("any", "api", "duration", "empty", "field_mask", "struct", "timestamp", "type", "wrappers",
            "descriptor", "source_context")  # fmt: skip
"""Files of `google/protobuf` that come with the library."""
VARINT_BYTES = 5
"""Bytes that a number of up to 32 bits has at most."""


def read_protobuf(values: list[bytes], description: str, message: str) -> pa.Table:
    """One row for each message of this type; raises ValueError if one of them is none."""
    return pa.Table.from_batches([_decoder(description, message).list_to_record_batch(values)])


def protobuf_schema(what: str, description: str, message: str) -> pl.Schema:
    """The columns of messages of this type."""
    try:
        return pl.Schema(polars_schema(_decoder(description, message).schema()))
    except (ValueError, TypeError) as error:
        raise SourceError(f"{what}: messages of type {message} cannot be read: {error}.") from error


def read_description(what: str, path: str | Path) -> str:
    """The types in a descriptor set, which `protoc --include_imports --descriptor_set_out` makes."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.message import DecodeError

    try:
        files = FileDescriptorSet.FromString(Path(path).read_bytes()).file
    except OSError as error:
        raise SourceError(
            f"{what}: value_schema '{path}' cannot be read: {error.strerror}."
        ) from error
    except DecodeError:
        files = []
    if not files:
        raise SourceError(
            f"{what}: value_schema '{path}' is no descriptor set. Make it with protoc --include_imports "
            "--descriptor_set_out=FILE."
        )
    return describe([(file.name, file.SerializeToString()) for file in files])


def describe(files: list[tuple[str, bytes]]) -> str:
    """A description of these descriptors of .proto files, the last of which has the types."""
    return json.dumps([[name, base64.b64encode(file).decode()] for name, file in files])


def choose_message(what: str, description: str, wanted: str | None, first: bool = False) -> str:
    """The full name of the type of messages: the one that is wanted, or else the only one, or the first."""
    try:
        file = _types(description)
    except (ValueError, TypeError, KeyError) as error:
        raise SourceError(f"{what}: its Protobuf types cannot be read: {_words(error)}.") from error
    names = [str(kind.full_name) for kind in file.message_types_by_name.values()]
    if wanted is not None:
        try:
            return str(file.pool.FindMessageTypeByName(wanted).full_name)
        except KeyError:
            raise SourceError(
                f"{what}: there is no message type '{wanted}' in its Protobuf types."
                f"{suggest(wanted, names)}"
            ) from None
    if not names or (len(names) > 1 and not first):
        raise SourceError(
            f"{what}: which type its messages have is not clear. Give value_message=, one of: "
            f"{', '.join(names) or 'none in this file'}."
        )
    return names[0]


def of_types(
    bodies: list[bytes], description: str
) -> Iterator[tuple[str, np.ndarray, list[bytes]]]:
    """The messages of each type: its name, their places, their values; ValueError for others.

    Behind the number of the schema stands the place of the type in its file: how many steps, then each of
    them; a single zero is the first type. Messages of one type begin alike, so they are taken together.
    """
    column, rest = pl.Series(bodies, dtype=pl.Binary), np.arange(len(bodies))
    while rest.size:
        path, length = _path(bodies[int(rest[0])])
        begins = column[rest].bin.starts_with(bodies[int(rest[0])][:length]).to_numpy()
        places, rest = rest[begins], rest[~begins]
        values = column[places].bin.slice(length).to_list()
        yield _type_at(description, path), places, values


def _path(body: bytes) -> tuple[tuple[int, ...], int]:
    """The steps to a type that a value begins with, and how many bytes they take."""
    count, at = _varint(body, 0)
    steps = []
    for _ in range(count):
        step, at = _varint(body, at)
        steps.append(step)
    return tuple(steps) or (0,), at


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A zigzag number, and where it ends."""
    number = 0
    for place, byte in enumerate(body[at : at + VARINT_BYTES]):
        number |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            if number & 1:
                break
            return number >> 1, at + place + 1
    raise ValueError("it does not say which type of its schema it has")


@functools.lru_cache(maxsize=256)
def _type_at(description: str, path: tuple[int, ...]) -> str:
    """The name of the type at a place in its file."""
    kinds, name = list(_types(description).message_types_by_name.values()), ""
    for step in path:
        if step >= len(kinds):
            raise ValueError(f"its schema has no type at place {', '.join(map(str, path))}")
        name, kinds = str(kinds[step].full_name), list(kinds[step].nested_types)
    return name


@functools.lru_cache(maxsize=64)
def _decoder(description: str, message: str) -> Any:
    from ptars import HandlerPool, PtarsConfig

    # Times without a zone are those of UTC, as everywhere here
    config = PtarsConfig(
        timestamp_unit="us", duration_unit="us", timestamp_tz=None, enum_repr="string"
    )
    kind = _types(description).pool.FindMessageTypeByName(message)
    return HandlerPool([kind.file], config).get_for_message(kind)


@functools.lru_cache(maxsize=64)
def _types(description: str) -> Any:
    """The last file of a description; raises ValueError, TypeError or KeyError for what is none."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError

    pool, files = DescriptorPool(), {}
    for name, text in json.loads(description):
        try:
            files[name] = FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        except DecodeError as error:
            raise ValueError(f"'{name}' is no descriptor of a .proto file") from error
        # A registry may keep a file under another name than those who import it know
        files[name].name = name
    added: set[str] = set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        file = files.get(name) or _built_in(name)
        for imported in file.dependency:
            add(imported)
        pool.AddSerializedFile(file.SerializeToString())

    for name in files:
        add(name)
    return pool.FindFileByName(list(files)[-1])


def _built_in(name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    folder, _, file = name.rpartition("/")
    if folder != "google/protobuf" or file.removesuffix(".proto") not in BUILT_IN:
        raise ValueError(f"'{name}' is imported, but not there")
    module = importlib.import_module(f"google.protobuf.{file.removesuffix('.proto')}_pb2")
    return FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)


def _words(error: BaseException) -> str:
    return " ".join(str(error.args[0] if error.args else error).split())


def require_protobuf(what: str) -> None:
    """Raises SettingsError if the libraries are not installed."""
    try:
        import ptars  # noqa: F401
    except ImportError as error:
        raise SettingsError(
            f"{what}: Protobuf messages need the Kafka extra: pip install 'anabranch[kafka]'."
        ) from error
