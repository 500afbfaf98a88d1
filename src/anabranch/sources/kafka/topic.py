"""A topic as the driver looks at it: its partitions, and which offsets each of them has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from anabranch.sources.kafka.connection import Connection, Troubles

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

REQUEST = 5.0
"""Seconds that a request may take: whoever asks may ask again."""


class Away(Exception):
    """The broker does not answer, or not yet: asking again may help."""


class NoTopic(Exception):
    """There is no topic of this name."""


class Denied(Exception):
    """The broker does not let us in, or not to this topic."""


class Topic:
    """Asks a cluster about one topic. What it raises is one of the three above."""

    def __init__(self, connection: Connection, name: str, timeout: float) -> None:
        from confluent_kafka.admin import AdminClient

        self.name = name
        self._request = min(REQUEST, timeout)
        self._troubles = Troubles()
        self._admin: AdminClient = AdminClient(connection.config(self._troubles))

    def identity(self) -> tuple[str, tuple[int, ...]]:
        """The id of the topic, which another one of its name does not have, and its partitions."""
        from confluent_kafka import TopicCollection

        asked = self._admin.describe_topics(
            TopicCollection([self.name]), request_timeout=self._request
        )
        told = self._answer(asked[self.name])
        return str(told.topic_id), tuple(sorted(part.id for part in told.partitions))

    def ends(self, partitions: Iterable[int]) -> dict[int, int]:
        """Behind the last message of each partition that no open transaction can still undo."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(partitions, OffsetSpec.latest()))

    def firsts(self, partitions: Iterable[int]) -> dict[int, int]:
        """The first message of each partition that is still there."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(partitions, OffsetSpec.earliest()))

    def since(self, partitions: Iterable[int], time: dt.datetime) -> dict[int, int]:
        """The first message of each partition of this time or later; behind the last if there is none."""
        from confluent_kafka.admin import OffsetSpec

        named = tuple(partitions)
        stamp = int(time.timestamp() * 1000)
        found = self._offsets(dict.fromkeys(named, OffsetSpec.for_timestamp(stamp)))
        ends = self.ends(named)
        return {number: ends[number] if at < 0 else at for number, at in found.items()}

    def _offsets(self, wanted: Mapping[int, Any]) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        if not wanted:
            return {}
        asked = self._admin.list_offsets(
            {TopicPartition(self.name, number): spec for number, spec in wanted.items()},
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._request,
        )
        return {part.partition: int(self._answer(told).offset) for part, told in asked.items()}

    def _answer(self, asked: Future[Any]) -> Any:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return asked.result()
        except KafkaException as error:
            code = error.args[0].code() if error.args else None
            self._admin.poll(0)  # what it has met on the way
            words = self._troubles.words(error)
            if code in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                raise NoTopic(words) from error
            if code in (
                KafkaError.TOPIC_AUTHORIZATION_FAILED,
                KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            ):
                raise Denied(words) from error
            if "_AUTHENTICATION" in words or "_SSL" in words:
                raise Denied(words) from error
            raise Away(words) from error
