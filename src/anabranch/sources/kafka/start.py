"""Where a stream begins in a topic that it has never read: at an end, at offsets, or at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.errors import SourceError
from anabranch.sources.kafka.topic import Topic

WORDS = ("earliest", "latest")


@dataclass(frozen=True)
class Start:
    """One of the three: a word, an offset for every partition, or a time."""

    word: str = "earliest"
    at: tuple[tuple[int, int], ...] = ()
    time: dt.datetime | None = None

    def offsets(self, topic: Topic, partitions: Iterable[int], where: str) -> dict[int, int]:
        """The first offset to read of each partition; raises SourceError if one is not told."""
        numbers = tuple(partitions)
        if self.at:
            given = dict(self.at)
            for number in numbers:
                if number not in given:
                    raise SourceError(
                        f"{where}: start= has no offset for partition {number}. Give one for each of "
                        f"{', '.join(map(str, numbers))}."
                    )
            for number, end in topic.ends(numbers).items():
                if given[number] > end:
                    raise SourceError(
                        f"{where}: start= is offset {given[number]} for partition {number}, which has only "
                        f"come to {end}."
                    )
            return {number: given[number] for number in numbers}
        if self.time is not None:
            return topic.since(numbers, self.time)
        return topic.firsts(numbers) if self.word == "earliest" else topic.ends(numbers)


def read_start(what: str, given: Any) -> Start:
    """Where to begin, from what a user may give for it."""
    if isinstance(given, str) and given in WORDS:
        return Start(given)
    if isinstance(given, Mapping) and given:
        try:
            pairs = tuple(sorted((int(number), int(at)) for number, at in given.items()))
        except (TypeError, ValueError):
            pairs = ()
        if pairs and all(number >= 0 and at >= 0 for number, at in pairs):
            return Start(at=pairs)
    if isinstance(given, str):
        try:
            given = dt.datetime.fromisoformat(given)
        except ValueError:
            given = None
    if isinstance(given, dt.datetime):
        return Start(time=given if given.tzinfo else given.replace(tzinfo=dt.UTC))
    raise SourceError(
        f"{what}: start= takes 'earliest', 'latest', a time as '2026-03-01T22:00:00Z', or an offset for each "
        "partition as {0: 1200, 1: 990}."
    )
