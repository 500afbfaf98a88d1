"""Topics for tests: made, filled, changed and read back by clients of their own."""

from __future__ import annotations

import functools
import itertools
import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec

LONGEST = 120.0
"""Seconds that anything may take on a busy machine."""


@dataclass(frozen=True)
class Topics:
    """The topics of a broker."""

    servers: str

    @functools.cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    def make(
        self, partitions: int = 1, name: str = "", config: Mapping[str, str] | None = None
    ) -> str:
        """A new topic; returns its name once it can be read."""
        name = name or f"t-{uuid.uuid4().hex[:10]}"
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        until = time.monotonic() + LONGEST
        while True:
            try:
                self.admin.create_topics([topic])[name].result()
                break
            except KafkaException as error:
                # One of that name is still being deleted
                code = error.args[0].code()
                if code != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > until:
                    raise
                time.sleep(0.1)
        self._await(name, partitions)
        return name

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result()
        self._await(name, partitions)

    def delete(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result()
        until = time.monotonic() + LONGEST
        while name in self.admin.list_topics(timeout=LONGEST).topics and time.monotonic() < until:
            time.sleep(0.05)

    def expire(self, name: str, partition: int, before: int) -> None:
        """Deletes the messages of a partition before an offset, as retention does."""
        place = TopicPartition(name, partition, before)
        self.admin.delete_records([place])[place].result()

    def _await(self, name: str, partitions: int) -> None:
        until, admin = time.monotonic() + LONGEST, self.admin
        while time.monotonic() < until:
            told = admin.list_topics(name, timeout=LONGEST).topics[name].partitions
            if len(told) == partitions and all(part.leader >= 0 for part in told.values()):
                return
            time.sleep(0.05)
        raise AssertionError(f"topic {name} has not come to {partitions} partitions")

    def send(
        self, name: str, values: Iterable[bytes | None], partition: int = 0, **more: Any
    ) -> None:
        """Messages in their order into one partition."""
        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 20})
        for value in values:
            producer.produce(name, value, partition=partition, **more)
        assert producer.flush(LONGEST) == 0

    def send_rows(self, name: str, rows: Sequence[Mapping[str, Any]], partitions: int = 1) -> None:
        """Rows as JSON, dealt out to the partitions in turn."""
        for number in range(partitions):
            values = (
                json.dumps(row).encode() for row in itertools.islice(rows, number, None, partitions)
            )
            self.send(name, values, number)

    def _settle(self, name: str, partitions: Iterable[int]) -> None:
        """Waits until no transaction is open: one is visible a little after its commit has returned."""
        wanted = {TopicPartition(name, number): OffsetSpec.latest() for number in partitions}

        def ends(level: IsolationLevel) -> list[int]:
            told = self.admin.list_offsets(wanted, isolation_level=level, request_timeout=LONGEST)
            return [told[place].result().offset for place in wanted]

        until = time.monotonic() + LONGEST
        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            assert time.monotonic() < until, f"topic {name} has an open transaction"
            time.sleep(0.02)

    def committed(self, name: str) -> list[Message]:
        """Everything that a reader of committed messages sees, by partition and offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers, "group.id": f"look-{uuid.uuid4().hex}",
                "isolation.level": "read_committed", "auto.offset.reset": "earliest",
                "enable.partition.eof": True, "enable.auto.commit": False, "log_level": 0,
                "fetch.wait.max.ms": 20,
            }
        )  # fmt: skip
        try:
            parts = consumer.list_topics(name, timeout=LONGEST).topics[name].partitions
            self._settle(name, parts)
            consumer.assign([TopicPartition(name, number, 0) for number in parts])
            found: list[Message] = []
            ended: set[int] = set()
            until = time.monotonic() + LONGEST
            while len(ended) < len(parts):
                assert time.monotonic() < until, f"topic {name} does not end: {ended}"
                for message in consumer.consume(10_000, 0.1):
                    error = message.error()
                    if error is None:
                        found.append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The JSON objects that a reader of committed messages sees."""
        return [json.loads(m.value()) for m in self.committed(name) if m.value() is not None]


def as_json(rows: pl.DataFrame) -> list[bytes]:
    return [json.dumps(row).encode() for row in rows.to_dicts()]
