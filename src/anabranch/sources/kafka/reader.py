"""What one run has taken of a topic, and what of it waits: ranges of offsets of each partition."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from anabranch.errors import SourceError, StateError
from anabranch.sources.base import EpochLimits, Offer, ReadContext
from anabranch.sources.kafka.consumers import CONSUMERS
from anabranch.sources.kafka.piece import KafkaPiece
from anabranch.sources.kafka.topic import Away, Denied, NoTopic, Topic

if TYPE_CHECKING:
    from anabranch.sources.kafka.source import KafkaSource

LOOK_AGAIN = 1.0
"""Seconds after which partitions, and what is still kept of them, are looked at again."""
MIN_PIECE = 20_000
"""Messages below which the range of a partition is not cut for several tasks."""

OFFSET = ("topic", "id", "offsets", "lost")
"""The parts of an offset. Who adds one adds a version of the manifests."""


class KafkaReader:
    """A topic, for one run. Its offset names the topic, its id and where to go on in each partition."""

    def __init__(self, source: KafkaSource, context: ReadContext) -> None:
        self._source = source
        self._topic = Topic(source.connection, source.topic, source.timeout)
        self._frozen = context.available_now
        offset = context.known_offset(source.stream, OFFSET) or {}
        if offset and offset["topic"] != source.topic:
            raise StateError(
                f"Stream '{source.stream}' was read from the topic '{offset['topic']}' and now is to be "
                "read from "
                f"'{source.topic}': its offsets mean nothing there. Give the topic that it had, or use a new "
                "checkpoint folder."
            )
        self._id: str | None = offset.get("id")
        self._at: dict[int, int] = {int(k): at for k, at in offset.get("offsets", {}).items()}
        """The next offset to read of each partition."""
        self._lost: int = offset.get("lost", 0)
        self._begun = bool(offset)
        self._partitions: tuple[int, ...] = ()
        self._ends: dict[int, int] = {}
        """Behind the last message; with `available_now` as it was at the start."""
        self._had: set[int] = set()
        """The partitions that have, or have had, messages."""
        self._looked = -LOOK_AGAIN
        self._away_since: float | None = None
        self._told_of = ""
        self._await_first_look()

    def _await_first_look(self) -> None:
        """The first look, which a run does not begin without."""
        until = time.monotonic() + self._source.timeout
        while not self._look():
            if time.monotonic() > until:
                raise SourceError(self._told_of)
            time.sleep(0.1)

    def _look(self) -> bool:
        """Takes in which partitions there are and how far they go; False if nobody answers now."""
        try:
            if time.monotonic() - self._looked >= LOOK_AGAIN:
                self._look_around()
                self._looked = time.monotonic()
            if not self._frozen or not self._ends:
                self._ends = self._topic.ends(self._partitions)
        except (Away, NoTopic) as error:
            self._wait(error)
            return False
        except Denied as error:
            raise SourceError(
                f"Stream '{self._source.stream}': the Kafka cluster at {self._source.connection.servers} "
                "does not "
                f"let us read the topic '{self._source.topic}': {error}. Look at kafka_options, at the "
                "credentials they point to and at the rights of their owner."
            ) from error
        self._away_since, self._told_of = None, ""
        self._refuse_cut()
        return True

    def _look_around(self) -> None:
        identity, partitions = self._topic.identity()
        if self._id not in (None, identity):
            self._meet_gap(
                f"the topic '{self._source.topic}' was deleted and made anew: its offsets of before mean "
                "nothing "
                "now, and what was not read is lost",
                dict.fromkeys(partitions, 0),
                anew=True,
            )
        self._id = identity
        firsts = self._topic.firsts(partitions)
        new = [number for number in partitions if number not in self._at]
        if not self._begun:
            self._at.update(self._source.start.offsets(self._topic, new, self._where))
        else:
            # Whatever a partition has had since it was made is new
            self._at.update({number: firsts[number] for number in new})
        self._begun = True
        self._had |= {number for number in partitions if self._at[number] > firsts[number]}
        self._partitions = partitions
        for number, first in firsts.items():
            if self._at[number] < first:
                self._meet_gap(
                    f"partition {number} of topic '{self._source.topic}' has nothing before offset {first} "
                    "any "
                    f"more, but the stream has come to {self._at[number]}: {first - self._at[number]} "
                    "offset(s) were deleted before they were read",
                    {number: first},
                )

    def _refuse_cut(self) -> None:
        for number, end in self._ends.items():
            if end < self._at[number] and not self._frozen:
                self._meet_gap(
                    f"partition {number} of topic '{self._source.topic}' ends at offset {end}, but the "
                    "stream has "
                    f"come to {self._at[number]}: its end was lost, as when a broker loses its disk",
                    {number: end},
                )

    def _meet_gap(self, words: str, onward: Mapping[int, int], anew: bool = False) -> None:
        if self._source.on_gap == "stop":
            raise SourceError(
                f"Stream '{self._source.stream}': {words}. Give on_gap='go-on' to go on with what is "
                "there, or "
                "use a new checkpoint folder."
            )
        warnings.warn(f"Stream '{self._source.stream}': {words}. It goes on.", stacklevel=2)
        for number, at in onward.items():
            self._lost += max(0, at - self._at.get(number, at))
        if anew:
            self._at.clear()
        self._at.update(onward)

    @property
    def _where(self) -> str:
        return f"Stream '{self._source.stream}', topic '{self._source.topic}'"

    def _wait(self, error: Exception) -> None:
        """Notes that the topic cannot be looked at; raises SourceError if that takes too long."""
        source, now = self._source, time.monotonic()
        if isinstance(error, NoTopic):
            what = (
                f"Stream '{source.stream}': there is no topic '{source.topic}' on the Kafka cluster at "
                f"{source.connection.servers}. Was it deleted, or is its name another?"
            )
            if self._begun and source.on_gap == "stop":
                raise SourceError(f"{what} Give on_gap='go-on' to wait until it is made anew.")
        else:
            what = (
                f"Stream '{source.stream}': the Kafka cluster at {source.connection.servers} does not "
                "answer: "
                f"{error}. Nothing is lost: the offsets are in the checkpoint."
            )
        if not self._told_of:
            self._away_since = now
            if self._begun:
                warnings.warn(f"{what} The run waits for it.", stacklevel=2)
        self._told_of = what
        gone = isinstance(error, NoTopic) and self._begun
        if self._away_since is not None and now - self._away_since > source.timeout and not gone:
            raise SourceError(f"{what} It was waited for {source.timeout:g} s.")

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        if not self._look():
            return None
        waiting = {
            number: end - self._at[number]
            for number, end in self._ends.items()
            if end > self._at[number]
        }
        total = sum(waiting.values())
        if not total:
            return None
        fitting = max(1, int(limits.bytes / self._source.message_bytes))
        most = min(total, limits.rows, fitting)
        # In proportion: lanes that wait for each other come to their ends together
        share = {number: -(-count * most // total) for number, count in waiting.items()}
        pieces: list[KafkaPiece] = []
        for number, count in sorted(share.items()):
            start = self._at[number]
            wanted = max(1, min(limits.pieces // len(share), count // MIN_PIECE))
            cuts = [start + count * part // wanted for part in range(wanted + 1)]
            pieces += [
                self._source.piece(number, cuts[part], cuts[part + 1], ordinal + len(pieces) + part)
                for part in range(wanted)
            ]
        onward = {**self._at, **{number: self._at[number] + share[number] for number in share}}
        self._had |= share.keys()
        return Offer(
            tuple(pieces),
            self._offset(onward),
            ordinal + len(pieces),
            total - sum(share.values()),
            frozenset(map(str, self._had)),
            {"offsetsLost": self._lost} if self._lost else {},
        )

    def _offset(self, at: Mapping[int, int]) -> dict[str, Any]:
        return {
            "topic": self._source.topic,
            "id": self._id,
            "offsets": {str(number): offset for number, offset in sorted(at.items())},
            "lost": self._lost,
        }

    def finished(self) -> bool:
        return self._frozen and all(self._at[number] >= end for number, end in self._ends.items())

    def committed(self, offset: Any) -> None:
        self._at.update({int(number): at for number, at in offset["offsets"].items()})

    def stop(self) -> None:
        CONSUMERS.let_go(self._source.connection, self._source.topic)
