"""A Kafka topic as a stream: each partition is a lane with a time of its own.

    session.stream("calls", kafka="host:9092", topic="calls", format="json", ordered="time")

The driver asks how far the partitions go, tasks read ranges of offsets. What a message becomes is in
`decoding.py`.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.errors import SourceError, suggest
from anabranch.sources.base import EpochLimits, ReadContext, StreamSample
from anabranch.sources.kafka.avro import avro_schema
from anabranch.sources.kafka.connection import Connection, import_client, read_connection
from anabranch.sources.kafka.consumers import CONSUMERS, KafkaPartition
from anabranch.sources.kafka.decoding import FORMATS, VALUE, Form, schema_of
from anabranch.sources.kafka.envelope import KINDS, read_envelope
from anabranch.sources.kafka.piece import KafkaPiece
from anabranch.sources.kafka.protobuf import (
    choose_message,
    protobuf_schema,
    read_description,
    require_protobuf,
)
from anabranch.sources.kafka.reader import KafkaReader
from anabranch.sources.kafka.registry import SchemaRegistry, bodies, read_registry
from anabranch.sources.kafka.start import Start, read_start
from anabranch.sources.kafka.topic import Away, Denied, NoTopic, Topic
from anabranch.sources.make import read_schema

OPTIONS = (
    "format", "start", "on_gap", "message_columns", "kafka_options", "kafka_timeout", "value_schema",
    "value_message", "registry", "registry_login",
)  # fmt: skip
GAPS = ("stop", "go-on")
TIMEOUT = 60.0
"""Seconds that a broker may be away before a run stops."""
PEEKED = 200
"""Messages that are looked at for the columns, and for how large messages are."""
GUESSED_BYTES = 256.0
"""Of a message, as long as there is none."""


@dataclass(frozen=True)
class KafkaSource:
    """The messages of a topic."""

    stream: str
    connection: Connection
    topic: str
    form: Form
    extra: tuple[tuple[str, str], ...] = ()
    start: Start = field(default_factory=Start)
    on_gap: str = "stop"
    timeout: float = TIMEOUT

    @property
    def schema(self) -> pl.Schema:
        return pl.Schema({**self.form.schema, **{name: KINDS[kind] for name, kind in self.extra}})

    def piece(self, partition: int, start: int, end: int, ordinal: int) -> KafkaPiece:
        """Offsets of a partition, for a task."""
        where = KafkaPartition(self.stream, self.connection, self.topic, partition, self.timeout)
        passing = self.on_gap == "go-on"
        return KafkaPiece(where, self.form, self.extra, start, end, ordinal, passing)

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        """Rows of the beginning of each partition."""
        try:
            spans = _spans(self.connection, self.topic, self.timeout)
        except (Away, NoTopic, Denied):
            return None  # what is wrong is said when the run opens it
        taken, lanes, waiting = [], [], sum(end - first for first, end in spans.values())
        for number, (first, end) in spans.items():
            count = min(end - first, max(1, rows // len(spans)))
            if count:
                found = (
                    self.piece(number, first, first + count, 0).read(list(self.schema), True).rows
                )
                assert found is not None
                taken.append(found)
                lanes += [str(number)] * found.height
        CONSUMERS.let_go(self.connection, self.topic)
        if not any(frame.height for frame in taken):
            return None
        return StreamSample(pl.concat(taken), float(min(waiting, limits.rows)), pl.Series(lanes))

    def open(self, context: ReadContext) -> KafkaReader:
        return KafkaReader(self, context)

    @functools.cached_property
    def message_bytes(self) -> float:
        """About how large a message is; what an epoch takes is limited by bytes too."""
        values = peek(self.stream, self.connection, self.topic, self.timeout)
        return max(1.0, sum(map(len, values)) / len(values)) if values else GUESSED_BYTES

    def describe(self) -> str:
        return f"{self.form.format} messages of topic '{self.topic}' at {self.connection.servers}"


def kafka_source(
    stream: str, servers: str, topic: str | None, schema: Mapping[str, str] | pl.Schema | None,
    given: Mapping[str, Any],
) -> KafkaSource:  # fmt: skip
    """A stream over a topic; raises for options that do not exist or do not fit together."""
    what = f"Stream '{stream}'"
    import_client(what)
    for option in given:
        if option not in OPTIONS:
            raise SourceError(
                f"{what}: a Kafka stream has no option '{option}'.{suggest(option, OPTIONS)}"
            )
    if not isinstance(topic, str) or not topic:
        raise SourceError(f"{what}: a Kafka stream needs topic=, the name of the topic.")
    on_gap, timeout = given.get("on_gap", "stop"), given.get("kafka_timeout", TIMEOUT)
    if on_gap not in GAPS:
        raise SourceError(f"{what}: on_gap is {on_gap!r}; expected one of {', '.join(GAPS)}.")
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise SourceError(f"{what}: kafka_timeout is {timeout!r}; expected seconds, more than 0.")
    connection = read_connection(what, servers, given.get("kafka_options"))
    extra = read_envelope(what, given.get("message_columns", ()))
    registry = read_registry(what, given.get("registry"), given.get("registry_login"))
    if registry is not None:
        registry.require(topic)
    columns = read_schema(stream, schema)
    form = _form(what, connection, stream, topic, columns, registry, given)
    for name in extra:
        if name in form.schema:
            raise SourceError(
                f"{what}: messages have a column '{name}' in their values already. Give the other one a "
                "name of "
                f"its own: message_columns={{'{extra[name]}': 'another_name'}}."
            )
    return KafkaSource(
        stream, connection, topic, form, tuple(extra.items()),
        read_start(what, given.get("start", "earliest")), on_gap, float(timeout),
    )  # fmt: skip


def _form(
    what: str, connection: Connection, stream: str, topic: str, schema: pl.Schema | None,
    registry: SchemaRegistry | None, given: Mapping[str, Any],
) -> Form:  # fmt: skip
    """What the values are, asked of the registry or told from the first ones where it is not given."""
    format = given.get("format") or "json"
    if format not in FORMATS:
        raise SourceError(f"{what}: there is no format '{format}'. Existing: {', '.join(FORMATS)}.")
    timeout = float(given.get("kafka_timeout", TIMEOUT))
    if format == "avro":
        written = _written(what, given.get("value_schema"), registry, topic)
        return Form(format, schema or avro_schema(what, written), written, registry=registry)
    if format == "protobuf":
        return _protobuf(what, schema, registry, topic, given)
    if format == "raw":
        return Form(format, schema or pl.Schema({VALUE: pl.String()}))
    if schema is None and format == "csv":
        raise SourceError(
            f"{what}: CSV messages have no names in them: give schema=, the columns in order."
        )
    if schema is None:
        values = peek(stream, connection, topic, timeout)
        if not values:
            raise SourceError(
                f"{what}: the topic '{topic}' has no message to tell the columns from. Give schema=."
            )
        if registry is not None and format == "json":
            values = bodies(values)
            if not values:
                raise SourceError(
                    f"{what}: none of the first messages begins with the number of a schema of the "
                    "registry, so the columns cannot be told. Give schema=, or leave out registry=."
                )
        schema = schema_of(what, format, values)
    return Form(format, schema, registry=registry if format == "json" else None)


def _protobuf(
    what: str, schema: pl.Schema | None, registry: SchemaRegistry | None, topic: str,
    given: Mapping[str, Any],
) -> Form:  # fmt: skip
    """Messages of a type that a descriptor set describes, or the registry."""
    require_protobuf(what)
    path = given.get("value_schema")
    if path is not None and registry is not None:
        raise SourceError(
            f"{what}: give value_schema=, or registry= for messages that begin with the number of their "
            "schema; not both."
        )
    written = (
        read_description(what, path)
        if path is not None
        else _written(what, None, registry, topic, "PROTOBUF")
    )
    message = choose_message(what, written, given.get("value_message"), registry is not None)
    columns = schema or protobuf_schema(what, written, message)
    return Form("protobuf", columns, written, message, registry)


def _written(
    what: str, given: Any, registry: SchemaRegistry | None, topic: str, kind: str = "AVRO"
) -> str:
    """The schema that values are written with: given as JSON, as a file, or the registry's newest."""
    if isinstance(given, Path) or (isinstance(given, str) and not given.lstrip().startswith("{")):
        try:
            return Path(given).read_text()
        except OSError as error:
            raise SourceError(
                f"{what}: value_schema '{given}' cannot be read: {error.strerror}."
            ) from error
    if isinstance(given, str):
        return given
    found = registry.latest(f"{topic}-value") if registry is not None else None
    if found is None:
        where = (
            f"the registry has no subject '{topic}-value'" if registry else "there is no registry="
        )
        raise SourceError(
            f"{what}: the schema of its messages is not known: {where}. Give value_schema=."
        )
    if found.kind != kind:
        raise SourceError(
            f"{what}: the newest schema of '{topic}-value' in the registry is {found.kind}, not {kind}. "
            f"Give format='{found.kind.lower()}'."
        )
    return found.text


def peek(stream: str, connection: Connection, topic: str, timeout: float) -> list[bytes]:
    """Some of the first values of a topic; raises SourceError if it cannot be looked at."""
    what = f"Stream '{stream}'"
    spans = _first_spans(what, connection, topic, timeout)
    values: list[bytes] = []
    for number, (first, end) in spans.items():
        where = KafkaPartition(stream, connection, topic, number, timeout)
        with CONSUMERS.of(where) as kept:
            for messages in kept.read(first, min(end, first + PEEKED)):
                values += [m.value() for m in messages if m.value() is not None]
        if len(values) >= PEEKED:
            break
    # A run reads in other processes, and from elsewhere
    CONSUMERS.let_go(connection, topic)
    return values


def _first_spans(
    what: str, connection: Connection, topic: str, timeout: float
) -> dict[int, tuple[int, int]]:
    until = time.monotonic() + timeout
    while True:
        try:
            return _spans(connection, topic, timeout)
        except Denied as error:
            reason = f"does not let us in: {error}. Look at kafka_options"
        except NoTopic:
            reason = f"has no topic '{topic}'. Mend the name, or give schema= to wait for it"
        except Away as error:
            if time.monotonic() < until:
                continue
            reason = f"does not answer: {error}. Is it running, and is the address right?"
        raise SourceError(
            f"{what}: the Kafka cluster at {connection.servers} {reason.rstrip('.')}."
        )


def _spans(connection: Connection, topic: str, timeout: float) -> dict[int, tuple[int, int]]:
    """The offsets of the partitions that have some."""
    asked = Topic(connection, topic, timeout)
    _, numbers = asked.identity()
    firsts, ends = asked.firsts(numbers), asked.ends(numbers)
    return {n: (firsts[n], ends[n]) for n in numbers if ends[n] > firsts[n]}
