"""Epochs as Kafka transactions: the messages and the number of the epoch become visible together.

The number is a message in a topic of its own, compacted, under the transactional id as its key. So whoever
starts after a crash knows whether the last epoch is in the topic of the results.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunError
from anabranch.sinks.kafka.messages import Message
from anabranch.sources.kafka.connection import Connection, Troubles
from anabranch.sources.kafka.consumers import CONSUMERS, KafkaPartition
from anabranch.sources.kafka.topic import Away, Denied, NoTopic, Topic

if TYPE_CHECKING:
    from confluent_kafka import KafkaException, Producer

CHUNK = 20_000
"""Messages that are handed to the producer at a time."""
FLUSHED = 128 << 20
"""Bytes after which it is waited until they are sent."""
LEAST_TRANSACTION, MOST_TRANSACTION = 600.0, 900.0
"""Seconds after which brokers end a transaction: an epoch may be large, but they allow no more by default."""
STEP = 5.0
"""Seconds that one call may take; it is called again as long as there is time."""


class Transactions:
    """A producer with a transactional id: whoever opens it last is the only one who can commit."""

    def __init__(
        self, connection: Connection, topic: str, epochs: str, id: str, timeout: float
    ) -> None:
        from confluent_kafka import Producer

        self.id, self.epochs = id, epochs
        self._connection, self._topic, self._timeout = connection, topic, timeout
        self._troubles = Troubles()
        self._longest = transaction_seconds(connection, timeout)
        self._producer: Producer = Producer(
            producer_config(
                connection,
                self._troubles,
                {"transactional.id": id, "transaction.timeout.ms": int(self._longest * 1000)},
            )
        )
        self._begun = 0.0
        self.reached: int | None = None
        """The last epoch that is in the topic, -1 before the first; None if nobody has noted any."""

    def open(self) -> None:
        """Ends what another producer of this id has left open, shuts it out, and learns how far it came."""
        self._make_epochs()
        self._insist(self._producer.init_transactions)
        self.reached = self.noted(self.id)

    def words(self, error: KafkaException) -> str:
        """An error in words, with what the client met before it."""
        return self._troubles.words(error)

    def _make_epochs(self) -> None:
        """Makes the topic of the epoch numbers, if there is none."""
        from confluent_kafka import KafkaError, KafkaException
        from confluent_kafka.admin import AdminClient, NewTopic

        # Small segments, for the newest one is never compacted
        kept = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20), "segment.ms": "3600000"}
        admin = AdminClient(self._connection.config(self._troubles))
        wanted = NewTopic(self.epochs, 1, config=kept)

        def make(seconds: float) -> None:
            admin.create_topics([wanted], request_timeout=seconds)[self.epochs].result()

        try:
            self._insist(make)
        except KafkaException as error:
            # Whoever may not make it may have it made by others; if there is none, that is told next
            if error.args[0].code() not in (
                KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            ):  # fmt: skip
                raise

    def noted(self, id: str) -> int | None:
        """The last epoch under an id, as far as is committed."""
        topic = Topic(self._connection, self.epochs, self._timeout)
        until = time.monotonic() + self._timeout
        while True:
            try:
                first, end = topic.firsts([0])[0], topic.ends([0])[0]
                break
            except (Away, NoTopic, Denied) as error:
                if isinstance(error, Denied) or time.monotonic() > until:
                    raise RunError(
                        f"The topic '{self.epochs}', which keeps the numbers of the epochs that are in "
                        "topics, "
                        f"cannot be read: {error}. Make it, with one partition and cleanup.policy=compact, "
                        "or "
                        "give the right to."
                    ) from error
                time.sleep(0.1)
        found: int | None = None
        # The last offset is the end of a transaction, behind which a broker waits for more: not for long here
        hasty = (*self._connection.options, ("fetch.wait.max.ms", "20"))
        connection = replace(self._connection, options=hasty)
        where = KafkaPartition(id, connection, self.epochs, 0, self._timeout)
        with CONSUMERS.of(where) as kept:
            for messages in kept.read(first, end):
                own = [one.value() for one in messages if one.key() == id.encode()]
                found = int(own[-1]) if own else found
        CONSUMERS.let_go(connection, self.epochs)
        return found

    def commit(self, messages: Sequence[Message], epoch: int) -> None:
        """Makes the messages of an epoch visible, all at once; raises RunError if that is not known."""
        from confluent_kafka import KafkaException

        until = time.monotonic() + self._timeout
        while True:
            try:
                self._attempt(messages, epoch)
                self.reached = epoch
                return
            except KafkaException as error:
                told = error.args[0]
                if told.fatal() or not told.txn_requires_abort() or time.monotonic() > until:
                    # If nobody aborts it, whoever opens it next does
                    if told.txn_requires_abort():
                        with contextlib.suppress(KafkaException):
                            self._producer.abort_transaction(STEP)
                    raise self._refusal(error) from error
                self._insist(self._producer.abort_transaction)

    def _attempt(self, messages: Sequence[Message], epoch: int) -> None:
        self._begun = time.monotonic()
        self._producer.begin_transaction()
        produce(self._producer, self._topic, messages, self._timeout)
        self._producer.produce(self.epochs, str(epoch).encode(), self.id.encode(), partition=0)
        self._insist(self._producer.commit_transaction)

    def _insist(self, call: Callable[[float], Any]) -> None:
        """Calls again what may be called again, until there is no time left."""
        from confluent_kafka import KafkaException

        until = time.monotonic() + self._timeout
        while True:
            try:
                call(STEP)
                return
            except KafkaException as error:
                if not _passing(error) or time.monotonic() > until:
                    raise

    def _refusal(self, error: KafkaException) -> RunError:
        told = error.args[0]
        if (told.fatal() and "FENCED" in told.name()) or "PRODUCER_EPOCH" in told.name():
            # To the client both are the same
            if time.monotonic() - self._begun >= self._longest:
                return RunError(
                    f"the transaction took longer than {self._longest:g} s, after which brokers end it: give "
                    "a larger transaction.timeout.ms in kafka_options, or smaller epochs"
                )
            return RunError(
                f"another run has taken over the topic '{self._topic}' (transactional id '{self.id}')"
            )
        return RunError(self.words(error))

    def close(self) -> None:
        # What waits is of no transaction that was committed
        self._producer.purge()
        self._producer.flush(STEP)


def _passing(error: KafkaException) -> bool:
    from confluent_kafka import KafkaError

    told = error.args[0]
    waiting = (
        KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._WAIT_COORD,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR, KafkaError.CONCURRENT_TRANSACTIONS, KafkaError._ALL_BROKERS_DOWN,
        KafkaError.REQUEST_TIMED_OUT,
    )  # fmt: skip
    if told.fatal() or told.txn_requires_abort():
        return False
    return bool(told.retriable() or told.code() in waiting)


def transaction_seconds(connection: Connection, timeout: float) -> float:
    """How long a transaction may take: what the user gives, else at least as long as a broker may be away."""
    given = dict(connection.options).get("transaction.timeout.ms")
    if given is not None:
        return int(given) / 1000
    return min(max(LEAST_TRANSACTION, timeout), MOST_TRANSACTION)


def producer_config(
    connection: Connection, troubles: Troubles, more: dict[str, Any]
) -> dict[str, Any]:
    """What producers of results have in common."""
    return connection.config(
        troubles,
        **{
            "enable.idempotence": True,
            # Where keys go is then the same as with the clients of the JVM
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1 << 20,
            "delivery.report.only.error": True,
            **more,
        },
    )


def produce(producer: Producer, topic: str, messages: Sequence[Message], timeout: float) -> None:
    """Hands messages over; raises KafkaException for one that is not taken."""
    from confluent_kafka import KafkaException

    size = 0
    for at in range(0, len(messages), CHUNK):
        some = list(messages[at : at + CHUNK])
        if producer.produce_batch(topic, some) != len(some):
            raise KafkaException(next(one["_error"] for one in some if "_error" in one))
        size += sum(len(one["value"] or b"") for one in some)
        if size > FLUSHED or len(producer) > 500_000:
            producer.flush(timeout)
            size = 0
