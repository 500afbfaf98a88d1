"""Runs a case the hard way: maps that change every epoch, stops and crashes in between, other numbers
of sites after a restart. Whatever happens on the way, the results of every epoch must be the oracle's.

>>> from anabranch.testing.cases import SeededChooser, draw_case
>>> chooser = SeededChooser(1)
>>> case = draw_case(chooser)
>>> outcome = check(case, draw_trial(chooser, case.epochs))
"""

from __future__ import annotations

import random
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anabranch.engine.epoch import Burden
from anabranch.engine.run import Run
from anabranch.errors import RunError
from anabranch.routing.partition_map import PartitionMap
from anabranch.session import Session
from anabranch.settings import Settings
from anabranch.sinks.driver import MemorySink
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.store import read_latest
from anabranch.testing.aggregates import USER_SQL
from anabranch.testing.cases import Case
from anabranch.testing.chooser import Chooser
from anabranch.testing.oracle import Oracle
from anabranch.testing.sources import EpochSource

SessionMaker = Callable[[int, Settings], Session]

STEPS = ("begin", "before-tasks", "before-commit", "after-commit", "after-publish")
SITES = (1, 2, 7)


@dataclass(frozen=True)
class Leg:
    """A stretch of a trial in one session: on so many sites, until an epoch.

    `step` is "stop" for an orderly end after that epoch, a step of the epoch for a crash there, or
    "end" to run as far as the input goes.
    """

    sites: int
    step: str = "end"
    epoch: int = 0


@dataclass(frozen=True)
class Scene:
    """A run at one step of an epoch, as a watcher sees it."""

    run: Run
    step: str
    epoch: int
    folder: Path
    """Its checkpoint."""
    outcome: Outcome


Watcher = Callable[[Scene], None]


@dataclass(frozen=True)
class Trial:
    """How a case is to be run."""

    legs: Sequence[Leg] = (Leg(2),)
    settings: Mapping[str, Any] = field(default_factory=dict)
    moves: int | None = None
    """The seed of the partition maps, a new one each epoch; None to leave them."""
    close: bool = True
    """Whether all windows are closed in the end."""
    by_epoch: bool = True
    """Whether the results of every epoch are compared, or all together: rows that wait come later."""
    burdens: Callable[[int], Mapping[int, Burden]] | None = None
    """What weighs on the sites, see `faults.py`."""
    watchers: Sequence[Watcher] = ()
    """Called at every step of every epoch, before a leg ends there: to meddle with the run or check it."""


@dataclass
class Outcome:
    """What a trial gave: the rows of every epoch, and what was seen on the way."""

    sinks: dict[str, MemorySink] = field(default_factory=dict)
    progress: list[dict[str, Any]] = field(default_factory=list)
    manifests: list[Manifest] = field(default_factory=list)
    """One for each epoch that was committed, in order."""
    moved: int = 0
    """Slots that changed their site."""
    crashes: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)
    """The decisions of all legs."""

    def tiers(self) -> set[int]:
        """The tiers of all segments there ever were; above 0 are those that compaction wrote."""
        records = (r for manifest in self.manifests for r in manifest.subqueries.values())
        return {ref.tier for record in records for ref in record.segments}

    def combining(self) -> set[str]:
        """The subqueries whose input was sub-aggregated before the exchange."""
        return {name for told in self.progress for name in told["customMetrics"]["combining"]}


class Crash(Exception):
    """Raised on purpose, to end a leg."""


def draw_trial(chooser: Chooser, epochs: int, sites: Sequence[int] = SITES) -> Trial:
    """Random sites, settings, moves and restarts."""
    legs: list[Leg] = []
    for _ in range(chooser.choice([0, 0, 1, 2])):
        step = chooser.choice(["stop", "end", *STEPS])
        legs.append(Leg(chooser.choice(sites), step, chooser.integer(0, epochs)))
    legs.append(Leg(chooser.choice(sites)))
    settings = {
        "partitions_per_site": chooser.choice([1, 2, 3, 8]),
        "compaction_fan": chooser.choice([2, 2, 3, 8]),
        "compaction_floor_rows": chooser.choice([1, 0, 50_000]),
        "compaction_share": chooser.choice([2.0, 0.0]),
        "combine_reduction": chooser.choice([0.1, 2.0, 1000.0]),
        "keep_manifests": chooser.choice([1, 2]),
        "strategy": chooser.choice(["subquery", "subquery", "query", "operator"]),
        "central": chooser.flag(0.15),
    }
    moves = chooser.integer(0, 2**31) if chooser.flag(0.8) else None
    return Trial(tuple(legs), settings, moves, close=not chooser.flag(0.1))


def check(
    case: Case,
    trial: Trial,
    make_session: SessionMaker | None = None,
    outcome: Outcome | None = None,
) -> Outcome:
    """Runs the case and compares the results of every epoch, and the late rows, with the oracle's.

    What is seen on the way goes to `outcome`, if one is given: it is there even when the trial fails.
    """
    outcome = run_trial(case, trial, make_session or Session.in_process, outcome)
    lateness = {name: late * case.clock.factor for name, late in case.lateness.items()}
    oracle = Oracle(case.queries, case.frames, lateness, ended=trial.close, user=USER_SQL)
    for query, sink in outcome.sinks.items():
        oracle.check(query, sink.epochs if trial.by_epoch else _rows(case, query, sink))
    late = {name: record.late for name, record in outcome.manifests[-1].streams.items()}
    assert late == oracle.late, f"late rows: got {late}, expected {oracle.late}"
    return outcome


def _rows(case: Case, query: str, sink: MemorySink) -> pl.DataFrame:
    rows = sink.rows()
    return rows if rows.width else pl.DataFrame(schema=case.queries[query].node.schema)


def run_trial(
    case: Case, trial: Trial, make_session: SessionMaker, outcome: Outcome | None = None
) -> Outcome:
    """Runs a case through all legs of a trial, from one checkpoint."""
    # What waits for a slow site comes in a later epoch: right, but not what is compared here
    usual = {"fsync": False, "allow_unbounded_state": True, "skew_buffer": "none"}
    settings = Settings(**{**usual, **trial.settings})
    outcome = outcome or Outcome()
    outcome.sinks = {query: MemorySink() for query in case.queries}
    moves = None if trial.moves is None else random.Random(trial.moves)
    with tempfile.TemporaryDirectory(prefix="anabranch-trial-") as folder:
        for number, leg in enumerate(trial.legs):
            session = make_session(leg.sites, settings)
            register(session, case)
            hook = _Hook(leg, Path(folder), moves, outcome, trial.watchers)
            last = number == len(trial.legs) - 1
            run = session.start(
                sinks=outcome.sinks,
                checkpoint=folder,
                at_end="close" if last and trial.close else "keep",
                on_step=hook,
                burdens=trial.burdens,
            )
            hook.attach(run)
            try:
                run.await_termination()
            except RunError as error:
                if not isinstance(error.__cause__, Crash):
                    raise
                outcome.crashes += 1
            finally:
                outcome.history += run.history()
            outcome.progress += run.recent_progress
    return outcome


def register(session: Session, case: Case) -> None:
    """Gives a session the streams and queries of a case."""
    for name, frames in case.frames.items():
        lateness = case.clock.length(case.lateness[name])
        session.stream(name, EpochSource(frames), ordered="time", lateness=lateness)
    for name, query in case.queries.items():
        session.query(name, query)


@dataclass
class _Hook:
    """Moves partitions at the beginning of each epoch, and ends the leg where it is to end."""

    leg: Leg
    folder: Path
    moves: random.Random | None
    outcome: Outcome
    watchers: Sequence[Watcher] = ()
    _run: Run | None = None
    _attached: threading.Event = field(default_factory=threading.Event)
    _before: dict[str, PartitionMap] = field(default_factory=dict)

    def attach(self, run: Run) -> None:
        self._run = run
        self._attached.set()

    def __call__(self, step: str, epoch: int) -> None:
        self._attached.wait()
        assert self._run
        if step == "begin" and self.moves:
            for subquery in self._run.plan.homes:
                self._move(self._run, subquery, self.moves)
        if step == "after-commit":
            latest = read_latest(place(str(self.folder)))
            assert latest
            assert latest.epoch == epoch
            self.outcome.manifests.append(latest)
        for watch in self.watchers:
            watch(Scene(self._run, step, epoch, self.folder, self.outcome))
        if epoch == self.leg.epoch:
            if self.leg.step == "stop" and step == "after-publish":
                self._run.stop()
            elif self.leg.step == step:
                raise Crash(f"at {step} of epoch {epoch}")

    def _move(self, run: Run, subquery: str, moves: random.Random) -> None:
        sites = self.leg.sites
        known = run.partition_map(subquery)
        slots = known.slots
        # Often all on one site, or on a few; cut anywhere
        few = [moves.randrange(sites) for _ in range(moves.choice([1, 2, sites]))]
        cuts = moves.sample(range(1, slots), min(slots - 1, moves.choice([0, 1, 7, 40])))
        owners = tuple(moves.choice(few) for _ in range(len(cuts) + 1))
        after = PartitionMap(owners, (0, *sorted(cuts)), slots, known.cells)
        run.repartition(subquery, after)
        every = np.arange(slots)
        before = self._before.get(subquery, after)
        if before.slots == slots:
            self.outcome.moved += int((before.site_of(every) != after.site_of(every)).sum())
        self._before[subquery] = after
