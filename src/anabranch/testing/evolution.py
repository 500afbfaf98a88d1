"""A case whose query set changes on the way: queries come and go, get other names and other conditions.

Every query is followed from the change it came with to the one it leaves with. What it gives must be what
DuckDB gives for the rows that it is said to read: all, those from its change on, or those of a replay.

>>> from anabranch.testing.cases import SeededChooser
>>> sorted(run_evolution(draw_evolution(SeededChooser(4))))
['crash opened', 'new', 'rename', 'rows compared']
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.engine.run import Run
from anabranch.errors import AnabranchError
from anabranch.language.builder import Query
from anabranch.session import Session
from anabranch.settings import Settings
from anabranch.sinks.driver import MemorySink
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.store import read_latest
from anabranch.testing.aggregates import USER_SQL
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.course import PATIENCE, Crash
from anabranch.testing.disturbances import BY_MAP, Meddling, move, pause, pin, rebalance, resume
from anabranch.testing.lookups import register_restless
from anabranch.testing.oracle import Oracle
from anabranch.testing.phases import Evolving, Phase, draw_evolution
from anabranch.testing.sources import EpochSource

KINDS = (*BY_MAP, move, pin, rebalance, pause, pause, resume)
"""What is done by hand."""


@dataclass(eq=False)
class StreamRead:
    """A stream, or a replay of it, as a run reads it."""

    frames: Sequence[pl.DataFrame]
    taken: int
    """How many frames it has given, those that were left out counted."""
    given: list[pl.DataFrame]
    """What it has given in each epoch."""


@dataclass
class Followed:
    """A query from its beginning to its end."""

    readings: Mapping[str, StreamRead]
    """What it reads of each stream."""
    since: int
    """The epoch before which rows only tell the time."""
    versions: list[tuple[int, Query]]
    """What it asks, with the epoch from which on it does."""
    epochs: dict[int, pl.DataFrame] = field(default_factory=dict)
    until: int | None = None
    """The epoch before which it was dropped."""


def run_evolution(drawn: Evolving, base: Path | None = None) -> Counter[str]:
    """Runs all phases and compares; what was done how often."""
    if base is None:
        with tempfile.TemporaryDirectory(prefix="anabranch-evolution-") as folder:
            return run_evolution(drawn, Path(folder))
    course = _Course(drawn, base / "checkpoint")
    for number, phase in enumerate(drawn.phases):
        course.go(phase, last=number == len(drawn.phases) - 1)
    course.judge()
    return course.counts


class Placed(MemorySink):
    """Results in memory that are said to have a place of their own."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place

    def describe(self) -> str:
        return self._place


class _Course:
    def __init__(self, drawn: Evolving, checkpoint: Path) -> None:
        self.drawn, self.case, self.checkpoint = drawn, drawn.case, checkpoint
        usual = {"fsync": False, "allow_unbounded_state": True, "skew_buffer": "none"}
        self.settings = Settings(
            **drawn.case.suited({**usual, "poll_interval_seconds": 0.0, **drawn.settings})
        )
        self.epoch = 0
        self.readings: dict[str, StreamRead] = {}
        """By the name of the stream or replay."""
        self.live: dict[str, Followed] = {}
        self.ended: list[Followed] = []
        self.counts: Counter[str] = Counter()

    def manifest(self) -> Manifest:
        manifest = read_latest(place(str(self.checkpoint)))
        assert manifest
        return manifest

    def committed(self) -> int:
        """The last epoch, -1 before the first."""
        stored = read_latest(place(str(self.checkpoint)))
        return stored.epoch if stored else -1

    def session(self, phase: Phase) -> Session:
        session = Session.in_process(phase.sites, self.settings)
        for name, frames in self.case.frames.items():
            lateness = self.case.clock.length(self.case.lateness[name])
            session.stream(
                name, EpochSource(frames[: phase.frames]), ordered="time", lateness=lateness,
                late=self.case.late_rule(name),
            )  # fmt: skip
        register_restless(session, self.case.tables)
        for name, query in phase.queries.items():
            session.query(name, query)
        return session

    def go(self, phase: Phase, last: bool) -> None:
        """Runs a phase, a second time if it is to crash in its first epoch."""
        sinks = {name: Placed(phase.places[name]) for name in phase.queries}
        self.first = self.committed() + 1
        if phase.crash:
            run = self.start(phase, sinks, last, phase.crash)
            self.follow(phase, run)
            self.counts[f"crash {phase.crash}"] += 1
            sinks_again = {name: Placed(phase.places[name]) for name in phase.queries}
            again = self.start(phase, sinks_again, last)
            assert not again.evolution, "a change that counts is no change for the next start"
            for name, sink in sinks_again.items():
                sinks[name].epochs |= sink.epochs
        else:
            self.follow(phase, self.start(phase, sinks, last))
        self.advance(phase)
        for name, sink in sinks.items():
            self.live[name].epochs |= sink.epochs

    def start(
        self, phase: Phase, sinks: Mapping[str, MemorySink], last: bool, crash: str = ""
    ) -> Run:
        attached: list[Run] = []
        ready = threading.Event()

        def hook(step: str, epoch: int) -> None:
            ready.wait(PATIENCE)
            if step == "begin" and phase.meddling is not None:
                draw = random.Random(f"{phase.meddling} {epoch}")
                for disturb in draw.sample(KINDS, 2):
                    self.counts[disturb.__name__] += disturb(Meddling(attached[0], draw))
            if step == crash:
                raise Crash(step)
            if step == "after-publish" and phase.stop == epoch - self.first + 1:
                self.counts["rows wait at the end"] += bool(self.manifest().held)
                attached[0].stop()

        run = self.session(phase).start(
            sinks=sinks, checkpoint=self.checkpoint, at_end="close" if last else "keep",
            changed="keep-same", backfill=phase.backfill, on_step=hook,
        )  # fmt: skip
        attached.append(run)
        ready.set()
        if crash == "opened":
            run.stop()
        try:
            assert run.await_termination(PATIENCE), "the run hangs"
        except AnabranchError as error:
            if not isinstance(error.__cause__, Crash):
                raise
        return run

    def follow(self, phase: Phase, run: Run) -> None:
        """Notes what has become of each query, as the run says it, which must be what was done."""
        before, self.live = self.live, {}
        begin: list[tuple[str, dict[str, str]]] = []
        told = run.evolution.described() if run.evolution else None
        if told is not None:
            renamed = {new: old for new, old in phase.formerly.items() if new != old}
            assert told["renamed"] == renamed, (told, phase.done)
        for name, query in phase.queries.items():
            old = before.pop(phase.formerly.get(name, ""), None)
            fresh = old is None or (told is not None and name in told["changed"])
            if old is not None and fresh:
                assert phase.done[name].startswith("adjust")
                self.finish(old)
            if old is None or fresh:
                replays = told["begin"][name]["replays"] if told else {}
                begin.append((name, {one: replays.get(one, one) for one in query.node.streams}))
                continue
            if phase.done[name].startswith("adjust"):
                old.versions.append((self.epoch, query))
            self.live[name] = old
        for gone in before.values():
            self.finish(gone)
        kept = [one for followed in self.live.values() for one in followed.readings.values()]
        anew: dict[str, StreamRead] = {}
        for name, reads in begin:
            readings = {}
            for stream, effective in reads.items():
                known = self.readings.get(effective)
                if known is None or (phase.backfill and known not in kept):
                    known = anew.setdefault(
                        effective, self.begun(stream, effective, phase.backfill)
                    )
                readings[stream] = known
            self.live[name] = Followed(readings, self.epoch, [(self.epoch, phase.queries[name])])
        self.readings |= anew
        self.counts.update(phase.done.values())

    def finish(self, followed: Followed) -> None:
        followed.until = self.epoch
        self.ended.append(followed)

    def begun(self, stream: str, effective: str, backfill: bool) -> StreamRead:
        """A reading from the beginning, or a replay from where its stream is."""
        frames = self.case.frames[stream]
        taken = self.readings[stream].taken if effective != stream and not backfill else 0
        return StreamRead(frames, taken, [frames[0].clear()] * self.epoch)

    def advance(self, phase: Phase) -> None:
        """Works out which frames the epochs of a phase have read of each stream and replay."""
        alive = [one for followed in self.live.values() for one in followed.readings.values()]
        # A stream that nobody reads is forgotten
        self.readings = {name: one for name, one in self.readings.items() if one in alive}
        left = [list(one.frames[one.taken : phase.frames]) for one in self.readings.values()]
        epochs = max(map(len, left))
        if phase.stop is not None:
            left = [given[: phase.stop] for given in left]
            epochs = min(epochs, phase.stop)
        for reading, given in zip(self.readings.values(), left, strict=True):
            empty = reading.frames[0].clear()
            reading.given += [*given, *[empty] * (epochs - len(given))]
            reading.taken += len(given)
        self.epoch += epochs

    def judge(self) -> None:
        """Compares all that can be told exactly with the oracle."""
        meddled = any(phase.meddling is not None for phase in self.drawn.phases)
        one_clock = len(self.case.frames) == 1 and not meddled
        for followed in [*self.ended, *self.live.values()]:
            query = followed.versions[0][1]
            if query.node.updates and meddled:
                continue  # which epoch a group changes in depends on what waits
            if query.node.updates and len(followed.versions) == 1:
                # Each epoch gives its own, whatever the watermark is
                for epoch in range(followed.until or self.epoch):
                    self.stretch(followed, query, epoch, epoch + 1)
            elif followed.until is None and len(followed.versions) == 1:
                oracle = self.oracle(followed, query)
                expected = oracle.expected("q")
                self.same(oracle, followed.epochs.values(), expected, query.node.schema)
            elif one_clock:
                self.by_version(followed)

    def by_version(self, followed: Followed) -> None:
        end = followed.until if followed.until is not None else self.epoch + 1
        ends = [*(begin for begin, _ in followed.versions[1:]), end]
        for (begin, query), until in zip(followed.versions, ends, strict=True):
            self.stretch(followed, query, begin, until)

    def stretch(self, followed: Followed, query: Query, begin: int, until: int) -> None:
        """Compares what a query gave in some epochs."""
        oracle = self.oracle(followed, query)
        wanted = [rows for at, rows in oracle.by_epoch("q").items() if begin <= at < until]
        got = [rows for at, rows in followed.epochs.items() if begin <= at < until]
        nothing = oracle.expected("q").clear()
        self.same(oracle, got, pl.concat([nothing, *wanted]), query.node.schema)

    def same(self, oracle: Oracle, got: Any, expected: pl.DataFrame, schema: pl.Schema) -> None:
        parts: Sequence[pl.DataFrame] = [rows for rows in got if rows.width]
        self.counts["rows compared"] += expected.height
        if not parts and not expected.height:
            return
        rows = pl.concat(parts) if parts else pl.DataFrame(schema=schema)
        assert_same_rows(rows, expected, quantiles=oracle.quantiles("q"), where="A query")

    def oracle(self, followed: Followed, query: Query) -> Oracle:
        frames = {stream: reading.given for stream, reading in followed.readings.items()}
        factor = self.case.clock.factor
        lateness = {name: late * factor for name, late in self.case.lateness.items()}
        return Oracle(
            {"q": query}, frames, lateness, user=USER_SQL, since=followed.since,
            tables=self.case.tables,
        )  # fmt: skip


__all__ = ["Evolving", "Phase", "draw_evolution", "run_evolution"]
