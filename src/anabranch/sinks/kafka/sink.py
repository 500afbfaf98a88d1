"""A Kafka topic as a sink: exactly once by transactions, or at least once with the epoch in a header.

Tasks stage Arrow files in the checkpoint; once the epoch is committed the driver sends its rows. What a
transaction holds, and what is known of it after a crash, is in `transactions.py` (decision 20).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from anabranch.errors import RunError, SettingsError, StateError, suggest
from anabranch.sinks.base import WriteContext
from anabranch.sinks.driver import Delivered, DriverWriter
from anabranch.sinks.files import refuse_types
from anabranch.sinks.kafka.messages import to_messages
from anabranch.sinks.kafka.transactions import Transactions, producer_config
from anabranch.sources.kafka.connection import Connection, Troubles, import_client, read_connection
from anabranch.state.manifest import ResultPart

FORMATS = ("json", "arrow")
DELIVERIES = ("exactly-once", "at-least-once")
OPTIONS = (
    "kafka",
    "topic",
    "format",
    "key",
    "delivery",
    "kafka_options",
    "kafka_timeout",
    "epochs_topic",
)
EPOCH_HEADER, RUN_HEADER = "anabranch-epoch", "anabranch-run"
EPOCHS = "anabranch-epochs"
TIMEOUT = 60.0
"""Seconds that a broker may be away before a run stops."""


@dataclass(frozen=True)
class KafkaSink:
    """A topic for the results of one query."""

    connection: Connection
    topic: str
    format: str = "json"
    key: tuple[str, ...] = ()
    delivery: str = "exactly-once"
    timeout: float = TIMEOUT
    epochs: str = EPOCHS
    """The topic that keeps the numbers of the epochs that are in topics."""

    def open(self, context: WriteContext) -> DriverWriter:
        # Of results that replace earlier ones, the columns that tell groups apart
        if context.replaces and not self.key and self.format == "json":
            return replace(self, key=context.keys or ()).opened(context)
        return self.opened(context)

    def opened(self, context: WriteContext) -> DriverWriter:
        """A writer that sends messages with this key."""
        from confluent_kafka import KafkaException

        self._refuse(context)
        delivery = _AtLeastOnce(self, context)
        try:
            self._require_topic(delivery, context.query)
        except KafkaException as error:
            delivery.producer.poll(0)  # what it has met on the way
            raise self.unopened(context.query, delivery.troubles.words(error)) from error
        if self.delivery == "at-least-once":
            return DriverWriter(delivery, context)
        return KafkaWriter(_ExactlyOnce(self, context), context)

    def unopened(self, query: str, reason: str) -> RunError:
        return RunError(
            f"{self._of(query)} cannot be opened: {reason}. Is the cluster running, and are kafka_options "
            "and the rights of their owner right? Nothing is lost."
        )

    def _of(self, query: str) -> str:
        return f"The sink of '{query}', topic '{self.topic}' at {self.connection.servers},"

    def _refuse(self, context: WriteContext) -> None:
        what = f"The sink of '{context.query}'"
        for column in self.key:
            if column not in context.schema:
                raise SettingsError(
                    f"{what}: the key column '{column}' is not in the results."
                    f"{suggest(column, context.schema)}"
                )
        if context.marked and not self.key:
            raise SettingsError(
                f"{what}: groups can leave these results, which a topic tells by their key: use "
                "format='json'."
            )
        missing = sorted({*(context.keys or ())} - {*self.key}) if context.replaces else []
        if missing and self.key:
            raise SettingsError(
                f"{what}: a row replaces the one with its key, but '{missing[0]}', by which the query "
                "groups too, "
                "is not in the key: groups would replace each other. Add it, or leave key out."
            )
        refuse_types(what, self.format, context.schema, "format='arrow'")

    def _require_topic(self, delivery: _AtLeastOnce, query: str) -> None:
        found = delivery.producer.list_topics(self.topic, timeout=self.timeout).topics[self.topic]
        if found.error is not None:
            raise SettingsError(
                f"{self._of(query)} cannot be opened: {found.error.str()}. Make the topic first, with as "
                "many partitions as its readers need."
            )

    def describe(self) -> str:
        return f"topic '{self.topic}' at {self.connection.servers} ({self.format}, {self.delivery})"


class _AtLeastOnce(Delivered):
    """Sends each epoch with its number in a header; after a crash the last one may come again."""

    receiver: ClassVar[str] = "The Kafka sink"

    def __init__(self, sink: KafkaSink, context: WriteContext) -> None:
        from confluent_kafka import Producer

        self.sink, self.context, self.troubles = sink, context, Troubles()
        self.producer = Producer(
            producer_config(
                sink.connection, self.troubles, {"message.timeout.ms": int(sink.timeout * 1000)}
            )
        )

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        headers = {EPOCH_HEADER: str(epoch), RUN_HEADER: self.context.run}
        failed: list[str] = []

        def told(error: Any, message: Any) -> None:
            failed.append(error.str())

        for message in to_messages(rows, self.sink.format, self.sink.key, self.context.marked):
            arguments = {**message, "headers": headers, "on_delivery": told}
            while True:
                try:
                    self.producer.produce(self.sink.topic, **arguments)
                    break
                except BufferError:
                    self.producer.poll(0.1)
        left = self.producer.flush(self.sink.timeout + 10)
        if failed or left:
            reason = failed[0] if failed else f"{left} message(s) were not taken in time"
            raise RunError(f"the topic '{self.sink.topic}' did not take the results: {reason}")


class _ExactlyOnce(Delivered):
    """Sends each epoch as one transaction."""

    receiver: ClassVar[str] = "The Kafka sink"

    def __init__(self, sink: KafkaSink, context: WriteContext) -> None:
        self.sink, self.context = sink, context
        self._transactions: dict[str, Transactions] = {}
        """Those that are open, by the name of the query that they are for: one at most."""

    def id(self, query: str) -> str:
        """The transactional id of the query under this name."""
        return f"anabranch-{self.context.run}-{query}"

    def transactions(self, query: str) -> Transactions:
        """The transactions of the query under this name, from now on."""
        from confluent_kafka import KafkaException

        if query not in self._transactions:
            self.closed()
            opened = Transactions(
                self.sink.connection, self.sink.topic, self.sink.epochs, self.id(query), self.sink.timeout
            )  # fmt: skip
            try:
                opened.open()
            except KafkaException as error:
                raise self.sink.unopened(query, opened.words(error)) from error
            self._transactions[query] = opened
        return self._transactions[query]

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        (transactions,) = self._transactions.values()
        messages = to_messages(rows, self.sink.format, self.sink.key, self.context.marked)
        transactions.commit(messages, epoch)

    def closed(self) -> None:
        while self._transactions:
            self._transactions.popitem()[1].close()


@dataclass
class KafkaWriter(DriverWriter):
    """Hands every epoch over once: the topic can be asked which ones it has.

    Until the run has recovered, the name that counts is the one that the query had in the last epoch: under
    it that epoch was sent, or is. No transactional id is opened before it is needed, for another query may
    have the name by now: whoever opens an id shuts out who has it open.
    """

    sink: _ExactlyOnce

    @property
    def repeats(self) -> bool:
        return False

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        transactions = self.sink.transactions(self._query)
        if transactions.reached is None:
            raise StateError(
                f"The results of query '{self._query}' in epoch {epoch} are committed, but whether they "
                f"are in the topic '{self.sink.sink.topic}' cannot be told: the topic "
                f"'{self.sink.sink.epochs}' has no number under '{transactions.id}'. Was it deleted, or "
                "is this another cluster? Look in the topic of the results, and write there under this key "
                f"{epoch} if it has them, else {epoch - 1}; or start once with the sink that the query had."
            )
        if epoch <= transactions.reached:
            self._spent.extend(self._names(parts, epoch, attempt))
            return
        super().publish(parts, epoch, attempt)

    def recover(self, epoch: int) -> None:
        formerly = self._query
        super().recover(epoch)
        transactions = self.sink.transactions(self._query)
        self._refuse_older(transactions.reached, epoch)
        if formerly != self._query:
            # Only read: the query that is called so now may have it open
            self._refuse_older(transactions.noted(self.sink.id(formerly)), epoch)
        if transactions.reached is None:
            try:
                transactions.commit([], epoch)
            except RunError as error:
                raise RunError(
                    f"The sink of '{self.context.query}' could not note epoch {epoch} in the topic "
                    f"'{transactions.epochs}': {error}. Its owner needs the right to read and write there."
                ) from error

    def _refuse_older(self, reached: int | None, epoch: int) -> None:
        if reached is not None and reached > epoch:
            raise StateError(
                f"The topic '{self.sink.sink.topic}' has the results of query '{self._query}' up to epoch "
                f"{reached}, but the checkpoint has only come to {epoch}: it is an older copy. Use the "
                "checkpoint that wrote them, or a new one and another topic."
            )


def kafka_sink(what: str, given: Mapping[str, Any]) -> KafkaSink:
    """The sink that a user asks for."""
    import_client(what)
    for option in given:
        if option not in OPTIONS:
            raise SettingsError(
                f"{what}: a Kafka sink has no option '{option}'.{suggest(option, OPTIONS)}"
            )
    connection = read_connection(what, given.get("kafka"), given.get("kafka_options"))
    topic, key = given.get("topic"), given.get("key", ())
    if not isinstance(topic, str) or not topic:
        raise SettingsError(f"{what}: a Kafka sink needs topic, the name of the topic.")
    columns = tuple(one.strip() for one in key.split(",")) if isinstance(key, str) else tuple(key)
    chosen: dict[str, str] = {}
    for option, choices in (("format", FORMATS), ("delivery", DELIVERIES)):
        value = given.get(option) or choices[0]
        if value not in choices:
            raise SettingsError(
                f"{what}: {option} is {value!r}; expected one of {', '.join(choices)}."
            )
        chosen[option] = value
    if chosen["format"] == "arrow" and columns:
        raise SettingsError(
            f"{what}: an Arrow message has many rows, so it cannot have a key: use json."
        )
    timeout = given.get("kafka_timeout", TIMEOUT)
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not timeout > 0:
        raise SettingsError(f"{what}: kafka_timeout is {timeout!r}; expected seconds, more than 0.")
    return KafkaSink(
        connection,
        topic,
        chosen["format"],
        columns,
        chosen["delivery"],
        float(timeout),
        given.get("epochs_topic") or EPOCHS,
    )
