"""Streams that keep quiet: some offer nothing in an epoch of the others, or all of them nothing for a while.

Frame k of every stream still belongs to the same epoch, so the oracle need not know: to it, a quiet stream
has an empty frame there.

>>> rounds, frames = FrameCount({0: 1}), [pl.DataFrame({"time": [1]})] * 2
>>> loud, quiet = QuietReader(frames, 0, rounds), QuietReader(frames, 0, rounds, frozenset([0]))
>>> limits = EpochLimits(1, 1, 1, pieces=1)
>>> [loud.poll(limits, 0), quiet.poll(limits, 0)]                 # all are silent once
[None, None]
>>> loud.poll(limits, 0).offset, quiet.poll(limits, 0)
(1, None)
>>> loud.committed(1)
>>> quiet.poll(limits, 1).offset
2
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from anabranch.sources.base import EpochLimits, Offer, ReadContext
from anabranch.testing.cases import Case
from anabranch.testing.chooser import Chooser
from anabranch.testing.sources import EpochReader, EpochSource


@dataclass
class FrameCount:
    """How many frames the streams of a run have been through: that of the one that has come furthest."""

    silences: Mapping[int, int] = field(default_factory=dict)
    """How often all streams say nothing before a frame."""
    fired: Counter[str] = field(default_factory=Counter)
    done: int = 0

    def reach(self, offset: int) -> None:
        self.done = max(self.done, offset)


@dataclass
class QuietSource(EpochSource):
    """Frames in memory, one for each epoch, with none offered for those in `quiet`.

    In every epoch some other stream with the same rounds must offer something, if only an empty frame. Every
    run has rounds of its own, told by its checkpoint.
    """

    rounds: dict[str, FrameCount] = field(default_factory=dict)
    quiet: frozenset[int] = frozenset()
    silences: Mapping[int, int] = field(default_factory=dict)
    fired: Counter[str] = field(default_factory=Counter)

    def open(self, context: ReadContext) -> QuietReader:
        rounds = self.rounds.setdefault(str(context.place), FrameCount(self.silences, self.fired))
        rounds.reach(int(context.offset or 0))
        return QuietReader(self.frames, rounds.done, rounds, self.quiet, lanes=self.lanes)


@dataclass
class QuietReader(EpochReader):
    """What one run has taken of it."""

    rounds: FrameCount = field(default_factory=FrameCount)
    quiet: frozenset[int] = frozenset()
    _polls: int = 0

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        if self.finished():
            return None
        self._polls += 1
        if self._polls <= self.rounds.silences.get(self.taken, 0):
            self.rounds.fired["silence"] += 1
            return None
        if self.taken in self.quiet:
            self.rounds.fired["quiet stream"] += 1
            return None
        return super().poll(limits, ordinal)

    def finished(self) -> bool:
        if self.taken != self.rounds.done:
            self.taken, self._polls = self.rounds.done, 0
        return super().finished()

    def committed(self, offset: Any) -> None:
        self.rounds.reach(int(offset))


def draw_quiet(chooser: Chooser, case: Case) -> tuple[Case, dict[str, frozenset[int]]]:
    """The case with some frames of one stream put off to the next epoch, and which those are."""
    # A stream that no query reads offers nothing to anyone
    read = sorted(set[str]().union(*(query.node.streams for query in case.queries.values())))
    name = chooser.choice(read)
    others = max((len(case.frames[other]) for other in read if other != name), default=0)
    frames = list(case.frames[name])
    last = min(len(frames) - 1, others)
    quiet = [at for at in range(last) if chooser.flag(0.3)]
    for at in quiet:
        frames[at + 1] = pl.concat([frames[at], frames[at + 1]])
        frames[at] = frames[at].clear()
    return case.with_frames(name, frames), {name: frozenset(quiet)}
