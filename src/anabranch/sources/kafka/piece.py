"""A range of offsets of one partition: what a split task is told to read of a topic."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING

import polars as pl

from anabranch.errors import SourceError
from anabranch.sources.base import Bad, Reading
from anabranch.sources.kafka.consumers import CONSUMERS, Gap, KafkaPartition, Kept
from anabranch.sources.kafka.decoding import Form, decode
from anabranch.sources.kafka.envelope import KINDS, envelope
from anabranch.sources.salvage import FAULTS, sift

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

_value = methodcaller("value")


@dataclass(frozen=True)
class KafkaPiece:
    """Messages `start` to before `end` of a partition."""

    partition: KafkaPartition
    form: Form
    extra: tuple[tuple[str, str], ...]
    """Columns that messages have beside their values, with what they are."""
    start: int
    end: int
    ordinal: int
    passing_gaps: bool
    """Whether what the broker has lost meanwhile is gone without."""

    @property
    def weight(self) -> int:
        return self.end - self.start

    @property
    def label(self) -> str:
        where = self.partition
        return f"topic '{where.topic}', partition {where.number}, offsets {self.start} to {self.end - 1}"

    @property
    def remedy(self) -> str:
        return (
            "What is in a topic cannot be mended: give the stream the form that its messages have"
        )

    @property
    def lane(self) -> str:
        return str(self.partition.number)

    def read(self, columns: Sequence[str], salvage: bool) -> Reading:
        empty = pl.DataFrame(schema=self._schema(columns))
        frames, bad = [empty], _BadMessages(self)
        with CONSUMERS.of(self.partition) as kept:
            for messages in self._messages(kept):
                frames.append(self._decode(messages, columns, bad))
                if bad.count and not salvage:
                    break  # the first one is enough to stop at
        return Reading(pl.concat(frames), bad.told())

    def _schema(self, columns: Sequence[str]) -> dict[str, pl.DataType]:
        extra = {name: KINDS[kind] for name, kind in self.extra}
        return {name: extra.get(name) or self.form.schema[name] for name in columns}

    def _messages(self, kept: Kept) -> Iterator[list[Message]]:
        try:
            yield from kept.read(self.start, self.end)
        except Gap as error:
            first = earliest(kept, self.partition)
            if not self.passing_gaps:
                raise SourceError(
                    f"{self.partition}: offsets {self.start} to {min(first, self.end) - 1} were deleted "
                    "before they "
                    "were read. Nothing of this epoch is counted; start again with on_gap='go-on' to go on "
                    "without them, and keep messages longer."
                ) from error
            if first < self.end:
                yield from kept.read(max(first, self.start), self.end)

    def _decode(
        self, messages: list[Message], columns: Sequence[str], bad: _BadMessages
    ) -> pl.DataFrame:
        if self.form.format != "raw":
            # What says that a key is gone has no value, and so is no row
            messages = [message for message in messages if message.value() is not None]
        extra = {name: kind for name, kind in self.extra if name in columns}
        own = [name for name in columns if name not in extra]
        beside, messages = self._envelopes(messages, extra, bad)
        decoded = decode(self.form, list(map(_value, messages)), own)
        for place, reason in decoded.bad:
            bad.add(messages[place], reason)
        if not extra:
            return decoded.rows
        return pl.concat([decoded.rows, beside[decoded.origins]], how="horizontal").select(columns)

    def _envelopes(
        self, messages: list[Message], extra: dict[str, str], bad: _BadMessages
    ) -> tuple[pl.DataFrame, list[Message]]:
        """What stands beside the values, and the messages of which all of it can be told."""
        if not extra:
            return pl.DataFrame(), messages
        try:
            return envelope(messages, extra), messages
        except FAULTS:
            good, misfits = sift(lambda a, b: envelope(messages[a:b], extra), len(messages))
        for place, reason in misfits:
            bad.add(messages[place], reason)
        wrong = {place for place, _ in misfits}
        kept = [message for place, message in enumerate(messages) if place not in wrong]
        return (pl.concat(good) if good else pl.DataFrame()), kept


def earliest(kept: Kept, partition: KafkaPartition) -> int:
    """The first offset that the broker still has."""
    from confluent_kafka import TopicPartition

    first, _ = kept.consumer.get_watermark_offsets(
        TopicPartition(partition.topic, partition.number), timeout=partition.timeout, cached=False
    )
    return int(first)


class _BadMessages:
    """Messages of a piece that are no rows."""

    def __init__(self, piece: KafkaPiece) -> None:
        self._piece = piece
        self.count = 0
        self._first = ""
        self._lines: list[str] = []

    def add(self, message: Message, reason: str) -> None:
        self.count += 1
        self._first = self._first or f"offset {message.offset()}: {reason}"
        letter = {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "reason": reason,
            "key": _text(message.key()),
            "value": _text(message.value()),
        }
        self._lines.append(json.dumps(letter))

    def told(self) -> list[Bad]:
        if not self.count:
            return []
        where = self._piece.partition
        reason = f"{where}: {self.count} bad message(s), the first is {self._first}"
        file = f"{where.topic}-{where.number}-{self._piece.start}"
        return [Bad(where.stream, file, reason, tuple(self._lines), self.count)]


def _text(value: bytes | None) -> str | None:
    """Bytes as a text; in base64 if they are none."""
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(value).decode()}"
