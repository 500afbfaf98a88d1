"""Consumers kept in a process: each reads one partition, and goes on where it stopped.

They fetch ahead meanwhile. They belong to no consumer group and commit nothing: how far a stream has come
is in the manifest alone. Only messages of committed transactions are read.
"""

from __future__ import annotations

import bisect
import contextlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from anabranch.errors import SourceError
from anabranch.sources.kafka.connection import Connection, Troubles

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

MOST_KEPT = 64
"""Consumers that a process keeps open; those used longest ago go first."""
CHUNK = 50_000
"""Messages that are taken over at a time."""
WAIT = 0.05
"""Seconds that are waited for a chunk to be full. The end of a transaction takes an offset without a message,
so the last chunk of a range may never be."""
_offset = methodcaller("offset")
_error = methodcaller("error")


@dataclass(frozen=True)
class KafkaPartition:
    """A partition of a topic, and how long its broker may stay silent while it is read."""

    stream: str
    connection: Connection
    topic: str
    number: int
    timeout: float
    """Seconds without an answer after which reading is given up."""

    def __str__(self) -> str:
        return f"Stream '{self.stream}', topic '{self.topic}', partition {self.number}"


class Gap(SourceError):
    """Offsets that the broker no longer has."""


@dataclass
class Kept:
    """A consumer of one partition, where it stands, and what it got beyond what was asked for."""

    partition: KafkaPartition
    consumer: Consumer
    troubles: Troubles
    read_to: int = -1
    """The offset up to which was asked for; what comes next begins there."""
    at: int = -1
    """Where it stands: there, or further, past offsets without messages."""
    left: list[Message] = field(default_factory=list)

    def read(self, start: int, end: int) -> Iterator[list[Message]]:
        """The messages with offsets from `start` to before `end`, in chunks; raises SourceError, or Gap."""
        from confluent_kafka import TopicPartition

        where = self.partition
        at, heard = max(start, self.at), time.monotonic()
        if not self.read_to <= start <= self.at:
            self.left, at = [], start
            self.consumer.assign([TopicPartition(where.topic, where.number, start)])
        self.read_to = self.at = -1  # whoever comes after a failure begins anew
        while at < end:
            found = self.left or self.consumer.consume(min(end - at, CHUNK), WAIT)
            self.left = []
            reached = at
            if any(map(_error, found)):
                reached = max(reached, *self._events(found))
                found = [message for message in found if message.error() is None]
            if found:
                if found[-1].offset() >= end:
                    cut = bisect.bisect_left(found, end, key=_offset)
                    found, self.left = found[:cut], found[cut:]
                reached = max(reached, end if self.left else found[-1].offset() + 1)
            if reached > at:
                at, heard = reached, time.monotonic()
            elif time.monotonic() - heard > where.timeout:
                raise SourceError(
                    f"{where}: the broker at {where.connection.servers} has not answered for "
                    f"{where.timeout:g} s ({self.troubles.words(TimeoutError('timed out'))}). The offsets "
                    "are in the checkpoint: start again when it is back, and nothing is lost."
                )
            if found:
                yield found
        self.read_to, self.at = end, at

    def _events(self, found: list[Message]) -> Iterator[int]:
        """What came beside messages: how far the partition has been read to its end."""
        from confluent_kafka import KafkaError

        yield 0
        for message in found:
            error = message.error()
            if error is None:
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                yield message.offset()
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise Gap(f"{self.partition}: {error.str()}")
            elif error.fatal() or error.code() in _hopeless():
                raise SourceError(f"{self.partition}: {error.str()}.")
            # Everything else mends itself, or time runs out


def _hopeless() -> tuple[int, ...]:
    from confluent_kafka import KafkaError

    return (
        KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION,
        KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION,
    )  # fmt: skip


def open_consumer(connection: Connection, troubles: Troubles, **more: Any) -> Consumer:
    """A consumer of its own, in no group."""
    from confluent_kafka import Consumer

    return Consumer(
        connection.config(
            troubles,
            **{
                "group.id": "anabranch",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "isolation.level": "read_committed",
                # Once its queue was full the library would wait a second by default
                "fetch.queue.backoff.ms": 5,
                **more,
            },
        )
    )


class _Consumers:
    """The consumers of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[KafkaPartition, Kept] = OrderedDict()
        self._lost: OrderedDict[KafkaPartition, Kept] = OrderedDict()
        """Those of a process that this one was forked from."""
        self._process = os.getpid()

    @contextlib.contextmanager
    def of(self, partition: KafkaPartition) -> Iterator[Kept]:
        """The consumer of a partition, for this caller alone meanwhile."""
        kept = self._take(partition)
        try:
            yield kept
        finally:
            self._put_back(kept)

    def _take(self, partition: KafkaPartition) -> Kept:
        with self._lock:
            if self._process != os.getpid():
                # Threads and sockets do not survive a fork, and closing what has none hangs
                self._lost = self._kept
                self._kept, self._process = OrderedDict(), os.getpid()
            kept = self._kept.pop(partition, None)
        if kept is not None:
            return kept
        troubles = Troubles()
        return Kept(partition, open_consumer(partition.connection, troubles), troubles)

    def _put_back(self, kept: Kept) -> None:
        with self._lock:
            spare = self._kept.pop(kept.partition, None)
            self._kept[kept.partition] = kept
            old = self._kept.popitem(last=False)[1] if len(self._kept) > MOST_KEPT else None
        for one in (spare, old):
            if one is not None:
                one.consumer.close()

    def let_go(self, connection: Connection, topic: str) -> None:
        """Closes the consumers of a topic."""
        with self._lock:
            gone = [p for p in self._kept if (p.connection, p.topic) == (connection, topic)]
            closed = [self._kept.pop(partition) for partition in gone]
        for one in closed:
            one.consumer.close()


CONSUMERS = _Consumers()
