"""Runs a trial: its legs one after another, in a session each, from one checkpoint."""

from __future__ import annotations

import random
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from anabranch.engine.run import Run
from anabranch.errors import AnabranchError
from anabranch.routing.partition_map import PartitionMap
from anabranch.session import Session
from anabranch.settings import Settings
from anabranch.sinks.driver import MemorySink
from anabranch.state.place import place
from anabranch.state.store import read_latest
from anabranch.testing.cases import Case
from anabranch.testing.corruption import corrupt
from anabranch.testing.intruders import Beside, EpochStep, must_be_refused, spelled
from anabranch.testing.legs import Leg, Outcome, Scene, Trial
from anabranch.testing.lookups import register_restless
from anabranch.testing.quiet import FrameCount, QuietSource
from anabranch.testing.stage import SessionMaker, on_stage
from anabranch.testing.witness import Results, Witness, late_letters

Judge = Callable[[Mapping[str, MemorySink]], None]
"""Raises AssertionError where results are not what they must be."""
PATIENCE = 120.0
"""Seconds after which a leg, which takes a second or two, is taken to hang."""


def far_uri(folder: Path) -> str:
    """What a checkpoint folder is called as if it were on another machine."""
    return folder.as_uri()


class Crash(Exception):
    """Raised on purpose, to end a leg."""


def run_trial(
    case: Case, trial: Trial, make_session: SessionMaker | None = None,
    outcome: Outcome | None = None, judge: Judge = lambda sinks: None,
) -> Outcome:  # fmt: skip
    """Runs a case through all legs of a trial, from one checkpoint.

    The judge hears the results of runs that go on from a damaged checkpoint and do not notice.
    """
    outcome = outcome or Outcome()
    with tempfile.TemporaryDirectory(prefix="anabranch-trial-") as folder:
        course = Course(case, trial, make_session, Path(folder), outcome)
        try:
            for leg in trial.legs[:-1]:
                course.run(leg, last=False)
                if trial.damage is not None:
                    course.damage(trial.damage, trial.legs[-1], judge)
            course.run(trial.legs[-1], last=True)
        finally:
            course.close()
    return outcome


class Course:
    """A trial under way: where its files are, and what has come of it so far."""

    def __init__(
        self, case: Case, trial: Trial, make_session: SessionMaker | None, base: Path,
        outcome: Outcome,
    ) -> None:  # fmt: skip
        self.case, self.trial, self.base, self.outcome = case, trial, base, outcome
        # What waits for a slow site comes in a later epoch: right, but not what is compared here
        usual = {"fsync": False, "allow_unbounded_state": True, "skew_buffer": "none"}
        self.settings = Settings(
            **case.suited({**usual, "poll_interval_seconds": 0.0, **trial.settings})
        )
        self._make = make_session or (on_stage(trial.stage) if trial.stage else Session.in_process)
        self._moves = None if trial.moves is None else random.Random(trial.moves)
        self.results = Results(case, base / "out" if trial.folders else None)
        self.folder = base / "checkpoint"
        self.folder.mkdir(exist_ok=True)
        self.root = far_uri(self.folder) if trial.far else str(self.folder)
        self._beside: Beside | None = None
        self._rival = trial.rival

    def session(self, sites: int) -> Session:
        """A session with the streams and queries of the case."""
        session = self._make(sites, self.settings)
        on_late = "dead-letter" if self.trial.letters else "count"
        rounds: dict[str, FrameCount] = {}
        for name, frames in self.case.frames.items():
            source = QuietSource(
                frames, rounds=rounds, quiet=self.trial.quiet.get(name, frozenset()),
                silences=self.trial.silences, fired=self.outcome.fired,
                lanes=self.case.lanes.get(name, 0),
            )  # fmt: skip
            lateness = self.case.clock.length(self.case.lateness[name])
            session.stream(
                name, source, ordered="time", lateness=lateness, on_late=on_late,
                late=self.case.late_rule(name),
            )  # fmt: skip
        register_restless(session, self.case.tables)
        for name, query in self.case.queries.items():
            session.query(name, query)
        return session

    def run(self, leg: Leg, last: bool) -> None:
        """Runs a leg until it ends, or crashes as it should."""
        session, outcome = self.session(leg.sites), self.outcome
        hook = _Hook(leg, self, session, self._moves)
        committed = outcome.manifests[-1].epoch if outcome.manifests else -1
        run = session.start(
            sinks=self.results.sinks(committed),
            checkpoint=self.root,
            at_end="close" if last and self.trial.close else "keep",
            dead_letter=self.base / "letters" if self.trial.letters else None,
            on_step=hook,
            burdens=self.trial.burdens,
        )
        hook.attach(run)
        try:
            if not run.await_termination(PATIENCE):
                run._loop.stopping.set()
                raise AssertionError(f"the run hangs: {run.status['message']}")
        except AnabranchError as error:
            if hook.overtaken and "has taken over the checkpoint" in str(error):
                outcome.fired["two drivers, one overtaken"] += 1
            elif isinstance(error.__cause__, Crash):
                outcome.crashes += 1
                outcome.fired[f"crash {leg.step}"] += 1
            else:
                raise
        finally:
            outcome.history += run.history()
            outcome.progress += run.recent_progress
        if hook.overtaken:
            self.run(replace(leg, step="end"), last)

    def visited(self, session: Session, step: str, epoch: int) -> bool:
        """Lets others come at a step of a run of this session; whether one has taken over from it."""
        here, trial = EpochStep(epoch, step), self.trial
        if self._beside:
            self._beside.step()
        elif trial.beside == here:
            sinks = {query: MemorySink() for query in self.case.queries}
            self._beside = Beside(session, sinks, self.base / "beside", trial.close)
            self.outcome.beside = sinks
            self.outcome.fired["second run of a session"] += 1
        rival = self._rival
        if rival is None or EpochStep(rival.epoch, rival.step) != here:
            return False
        self._rival = None
        if rival.epochs is None:
            name = spelled(self.folder, rival.spelling)
            sinks = {query: MemorySink() for query in self.case.queries}
            letters = self.base / "letters of the rival"
            must_be_refused(self.session(session.sites), sinks, name, letters)
            self.outcome.fired["two drivers, one refused"] += 1
            return False
        (self.folder / "lock").unlink()
        self.run(Leg(session.sites, "stop", epoch + rival.epochs), last=False)
        return True

    def damage(self, seed: int, leg: Leg, judge: Judge) -> None:
        """Goes on from the checkpoint with a bit of it flipped, then puts all back as it was.

        The run must name the file, or never read it and give the right results.
        """
        kept = self.base / "kept"
        for folder in (folder for folder in self.base.iterdir() if not folder.is_symlink()):
            shutil.copytree(folder, kept / folder.name)
        damage = corrupt(self.folder, random.Random(seed))
        alone = replace(self.trial, watchers=(), rival=None, beside=None, moves=None)
        aside = Course(self.case, alone, self._make, self.base, Outcome())
        aside.outcome.manifests += self.outcome.manifests[-1:]
        for query, witness in self.results.witnesses.items():
            aside.results.witnesses[query] = Witness(dict(witness.epochs))
        try:
            aside.run(Leg(leg.sites), last=True)
            aside.close()
            judge(aside.outcome.sinks)
            self.outcome.fired["damage never read"] += damage is not None
        except AnabranchError as error:
            if damage is None or damage.path.name not in str(error):
                raise AssertionError(f"with {damage} the run said: {error}") from error
            self.outcome.fired["damage found and named"] += 1
        except AssertionError as error:
            raise AssertionError(f"with {damage}: {error}") from error
        for folder in [one for one in self.base.iterdir() if one != kept and not one.is_symlink()]:
            shutil.rmtree(folder)
        for folder in list(kept.iterdir()):
            shutil.move(folder, self.base / folder.name)
        kept.rmdir()

    def close(self) -> None:
        """Gathers what is to be compared, and removes what lies outside the folder of the trial."""
        if self._beside:
            self._beside.finish()
        self.results.gather()
        self.outcome.sinks = self.results.witnesses
        if self.trial.letters:
            self.outcome.letters = {
                name: late_letters(self.base / "letters", name, frames[0].schema)
                for name, frames in self.case.frames.items()
            }
        durable = place(self.root)
        if durable.far:
            shutil.rmtree(durable.root, ignore_errors=True)


@dataclass
class _Hook:
    """Moves partitions at the beginning of each epoch, and ends the leg where it is to end."""

    leg: Leg
    course: Course
    session: Session
    moves: random.Random | None
    overtaken: bool = False
    """Whether another driver has taken over the checkpoint."""
    _run: Run | None = None
    _attached: threading.Event = field(default_factory=threading.Event)
    _before: dict[str, PartitionMap] = field(default_factory=dict)

    def attach(self, run: Run) -> None:
        self._run = run
        self._attached.set()

    def __call__(self, step: str, epoch: int) -> None:
        self._attached.wait()
        assert self._run
        course, outcome = self.course, self.course.outcome
        if self.overtaken:
            return
        if step == "begin" and self.moves:
            for subquery in self._run.plan.exchanges:
                self._move(self._run, subquery, self.moves)
        if step == "after-commit":
            manifest = read_latest(place(course.root))
            assert manifest, "nothing was committed"
            outcome.manifests.append(manifest)
        for watch in course.trial.watchers:
            watch(Scene(self._run, step, epoch, course.folder, outcome, course.results))
        self.overtaken = course.visited(self.session, step, epoch)
        if epoch == self.leg.epoch:
            if self.leg.step == "stop" and step == "after-publish":
                outcome.fired["stop"] += 1
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
            self.course.outcome.moved += int((before.site_of(every) != after.site_of(every)).sum())
        self._before[subquery] = after
