"""Protobuf messages: by a descriptor set, by a registry, and those that are none."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp
from schema_server import Server, framed
from test_source import ALL, of, refused
from topics import Topics

from anabranch.errors import SourceError
from anabranch.sources.kafka.decoding import Form, decode
from anabranch.sources.kafka.protobuf import choose_message, describe, protobuf_schema
from helpers import Stage, source_metrics

KINDS = {"int64": 3, "string": 9, "bytes": 12, "sint64": 18, "message": 11}
FIRST, NESTED, SECOND = b"\0", b"\x04\x00\x02", b"\x02\x02"
"""Behind the number of a schema: the first type, the second one within it, the second of the file."""


def message(name: str, fields: dict[str, str], *within: DescriptorProto) -> DescriptorProto:
    """A type whose fields are numbered in their order; `k` can be missing."""
    made = DescriptorProto(name=name, nested_type=within)
    for number, (field, kind) in enumerate(fields.items(), start=1):
        added = made.field.add(name=field, number=number, label=1)
        added.type = KINDS.get(kind, KINDS["message"])
        if kind not in KINDS:
            added.type_name = kind
        if field == "k":
            made.oneof_decl.add(name="_k")
            added.proto3_optional, added.oneof_index = True, 0
    return made


def proto(*types: DescriptorProto, imports: tuple[str, ...] = ()) -> FileDescriptorProto:
    return FileDescriptorProto(
        name="row.proto", package="shop", syntax="proto3", message_type=types, dependency=imports
    )


ROW = {"time": "int64", "k": "string", "v": "sint64"}
FILE = proto(message("Row", ROW))


def written(
    values: list[dict[str, Any]], file: FileDescriptorProto, name: str = "Row"
) -> list[bytes]:
    """Values as messages of a type."""
    pool = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    kind = GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))
    return [kind(**value).SerializeToString() for value in values]


GOOD = written(ALL.to_dicts(), FILE)


def descriptor_set(folder: Path, *files: FileDescriptorProto) -> str:
    path = folder / "row.desc"
    path.write_bytes(FileDescriptorSet(file=files).SerializeToString())
    return str(path)


def test_by_a_descriptor_set(stage: Stage, topics: Topics, tmp_path: Path) -> None:
    """Bad messages are kept with partition and offset."""
    topic = topics.make(2)
    topics.send(topic, GOOD[:80], 0)
    bad = [b'{"time": 1}', max(GOOD, key=len)[:-1], b"\x12\x02\xff\xff", b"\xff" * 12]
    topics.send(topic, [*GOOD[80:90], *bad, *GOOD[90:]], 1)
    given = {"format": "protobuf", "schema": None, "lateness": 1000}
    options = of(topics, topic, value_schema=descriptor_set(tmp_path, FILE), **given)
    told = stage.refused(SourceError, stage.session(**options))
    assert f"topic '{topic}', partition 1: " in told
    assert "the first is offset 10: failed to decode" in told
    session = stage.session(**options, on_bad="dead-letter")
    run = stage.finish(session, dead_letter=stage.dead)
    assert stage.results() == stage.expected(ALL)
    letters = [
        json.loads(line)
        for file in stage.dead.glob("bad/rows/epoch=*/*.lines.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert sorted((one["partition"], one["offset"]) for one in letters) == [
        (1, 10 + at) for at in range(len(bad))
    ]
    assert source_metrics(run)["badRowsTotal"] == len(bad)


def test_by_a_registry(stage: Stage, topics: Topics, registry: Server) -> None:
    """Each message is read with its schema and type; other types and unknown schemas are bad messages."""
    topic = topics.make()
    old_file = proto(message("Row", {"time": "int64"}))
    new_file = proto(message("Box", {"time": "int64"}, message("Lid", ROW), message("Row", ROW)),
                     message("Row", {**ROW, "more": "bytes"}))  # fmt: skip
    old = registry.register_protobuf(f"{topic}-value", old_file.SerializeToString())
    new = registry.register_protobuf(f"{topic}-value", new_file.SerializeToString())
    avro = registry.register("another", {"type": "record"})
    older = [{"time": 1}, {"time": 2}]
    messages = [framed(new, SECOND + value) for value in GOOD]
    messages[7:7] = [framed(old, FIRST + value) for value in written(older, old_file)]
    bad = [
        framed(new, NESTED + GOOD[0]), framed(new, FIRST + GOOD[0]), framed(99, FIRST + GOOD[0]),
        framed(avro, FIRST), framed(new, b"\x02\x09"), framed(new, b""), framed(new, b"\x01"), b"plain",
    ]  # fmt: skip
    topics.send(topic, [*messages, *bad])
    options = of(
        topics, topic, format="protobuf", schema=None, registry=registry.url,
        value_message="shop.Row", lateness=1000,
    )  # fmt: skip
    told = stage.refused(SourceError, stage.session(**options))
    assert "it is of type shop.Box.Row, not shop.Row" in told
    session = stage.session(**options, on_bad="dead-letter")
    run = stage.finish(session, dead_letter=stage.dead)
    # What an older schema does not have is NULL, which sums pass over
    keyless = pl.DataFrame({"time": [1, 2], "k": None, "v": None}, schema=ALL.schema)
    assert stage.results() == stage.expected(ALL, keyless)
    assert source_metrics(run)["badRowsTotal"] == len(bad)
    assert registry.asked.count(f"/schemas/ids/{old}?format=serialized") == 1


def test_imported_types_and_texts(stage: Stage, topics: Topics, registry: Server) -> None:
    common = FileDescriptorProto(name="default", package="common", syntax="proto3")
    common.message_type.append(message("Point", {"x": "int64"}))
    file = proto(
        message("Row", {"time": ".google.protobuf.Timestamp", "where": ".common.Point"}),
        imports=("google/protobuf/timestamp.proto", "common/point.proto"),
    )
    registry.register_protobuf("common", common.SerializeToString())
    reference = {"name": "common/point.proto", "subject": "common", "version": 1}
    registry.register_protobuf("t-value", file.SerializeToString(), [reference])
    given = {"format": "protobuf", "schema": None, "registry": registry.url}
    _, rows = stage.stream(**of(topics, "t", **given))
    assert rows.node.schema == {"time": pl.Datetime("us"), "where": pl.Struct({"x": pl.Int64})}
    registry.register_protobuf("t-value", file.SerializeToString())
    assert "'common/point.proto' is imported, but not there" in refused(topics, "t", **given)
    registry.texts_only = True
    assert "gives 'subjects/t-value/versions/latest' only as a text" in refused(
        topics, "t", **given
    )
    registry.register("t-value", {"type": "record"})
    assert "is AVRO, not PROTOBUF" in refused(topics, "t", **given)


def test_types_that_are_not_clear(topics: Topics, tmp_path: Path) -> None:
    def told(**more: Any) -> str:
        return refused(topics, "t", **{"format": "protobuf", "schema": None, **more})

    two = descriptor_set(tmp_path, proto(message("Row", ROW), message("Other", ROW)))
    assert "Give value_message=, one of: shop.Row, shop.Other" in told(value_schema=two)
    assert "no message type 'shop.Raw'" in told(value_schema=two, value_message="shop.Raw")
    assert "value_schema 'nowhere' cannot be read" in told(value_schema="nowhere")
    assert "there is no registry=" in told()
    (tmp_path / "text").write_text('syntax = "proto3";')
    assert "is no descriptor set" in told(value_schema=str(tmp_path / "text"))


def test_times_are_those_of_utc() -> None:
    file = proto(
        message("Row", {"at": ".google.protobuf.Timestamp", "k": "string"}),
        imports=("google/protobuf/timestamp.proto",),
    )
    description = describe([("row.proto", file.SerializeToString())])
    name = choose_message("Stream 's'", description, None)
    form = Form("protobuf", protobuf_schema("Stream 's'", description, name), description, name)
    at = Timestamp(seconds=1_772_402_400, nanos=5_000).SerializeToString()
    value = b"\x0a" + bytes([len(at)]) + at + b"\x12\x01x"
    decoded = decode(form, [value, b""], ["at", "k"])
    assert decoded.rows.rows() == [(dt.datetime(2026, 3, 1, 22, 0, 0, 5), "x"), (None, None)]


@pytest.mark.parametrize("count", [0, 3])
def test_columns_of_their_order(count: int) -> None:
    description = describe([("row.proto", FILE.SerializeToString())])
    form = Form("protobuf", protobuf_schema("", description, "shop.Row"), description, "shop.Row")
    decoded = decode(form, GOOD[:count], ["v", "time"])
    assert decoded.rows.columns == ["v", "time"]
    assert decoded.rows.rows() == ALL[:count].select("v", "time").rows()
