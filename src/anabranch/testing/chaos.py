"""Chaos by seeds: random queries over random input, disturbed in every way we know, against the oracle.

A seed gives a case (aggregates or joins), how often it is stopped or crashes and where, settings with which
the controller moves things for the slightest reason, slow, lost and quiet ones, and some kinds of
disturbance. The results of every epoch must be those of DuckDB, all of them together where rows are held
back, and `invariants.py` must hold throughout. Times are computed (`stage.py`), so a seed does the same
whenever it is run.

>>> report = run_seeds(range(3, 5))
>>> report.passed, report.failed
(2, [])
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from anabranch.errors import SettingsError
from anabranch.language.join import JOINS
from anabranch.language.node import Node
from anabranch.settings import ACTIVE_DISK, ANY, LAZY_DISK, PLANS, POOR, RICH, TRANSITIONS
from anabranch.testing.cases import Case, draw_case, draw_lined_case
from anabranch.testing.chaos_report import ChaosReport, SeedReport, count, describe_failure
from anabranch.testing.chooser import Chooser, SeededChooser
from anabranch.testing.disturbances import (
    BY_MAP,
    DISTURBANCES,
    HOLDING,
    MOST_SITES,
    OFTEN,
    SELDOM,
    Meddler,
    bring_back,
    lay_anew,
    rebalance,
    spread_out,
)
from anabranch.testing.faults import Schedule, random_schedule
from anabranch.testing.intruders import SPELLINGS, EpochStep, Rival
from anabranch.testing.invariants import check_invariants
from anabranch.testing.join_shapes import REPLANNING, draw_several_case
from anabranch.testing.joins import draw_join_case, draw_meeting_case
from anabranch.testing.processes import LostItem, spread
from anabranch.testing.quiet import draw_quiet
from anabranch.testing.spilling import SPILLING
from anabranch.testing.stage import ROW_SECONDS, Outage, SessionMaker, Stage
from anabranch.testing.trial import STEPS, Leg, Outcome, Trial, check, draw_trial

SITES = (2, 3, 1, 4, MOST_SITES)
LONGEST = 300.0
"""Seconds after which a seed is taken to hang."""


def read_seeds(text: str) -> range:
    """Seeds as the command line has them.

    >>> read_seeds("0..199"), read_seeds("17")
    (range(0, 200), range(17, 18))
    """
    first, dots, last = text.partition("..")
    try:
        seeds = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise SettingsError(
            f"Seeds are given as a range such as 0..199, or as one number; got '{text}'."
        )
    return seeds


MANY_SEEDS = (1 << 32) + 237
"""More than anybody tries: which of them draw a join of several inputs is told by seeds of their own."""
LINED = 25
"""One in so many seeds is for what is kept of rows among others, and for merging it."""
LARGE = 1 << 40
SMALL = (LARGE, LARGE, 50_000, 3_000, 3_000, 600, 1)
"""Bytes that sites may keep: mostly so few that state is put aside again and again."""


def draw_seed(seed: int, sites: Sequence[int] = SITES, staged: bool = True) -> tuple[Case, Trial]:
    """The case of a seed, and how it is to be run: on a stage, or with times that are measured."""
    chooser = SeededChooser(seed)
    # Inner joins more often than others: only they go on while state is put aside
    kinds_of_join = chooser.choice([JOINS, ("inner",)])
    drawn = draw_join_case(chooser, kinds_of_join) if chooser.flag() else draw_case(chooser)
    pressed = chooser.flag(0.2)
    if pressed:
        drawn = draw_meeting_case(chooser)
    # Drawn by itself: the seeds that have no part in it stay as they are
    several = SeededChooser(seed + MANY_SEEDS).flag(0.2)
    if several:
        drawn = draw_several_case(chooser)
    lined = seed % LINED == LINED - 1
    if lined:
        several, drawn = False, draw_lined_case(SeededChooser(seed + MANY_SEEDS))
    case = recut(chooser, drawn, chooser.integer(4, 16))
    trial = draw_trial(chooser, case.epochs, sites)
    # Some kinds for each seed: with all of them, none would come often enough in a row
    by_map = chooser.flag()
    kinds = [k for k in DISTURBANCES if (by_map or k not in BY_MAP) and chooser.flag(0.45)]
    if spread_out in kinds:
        # Few slots are scattered at all, and those are to come back now and then
        kinds += [spread_out, spread_out, bring_back, bring_back]
    if bring_back in kinds:
        kinds += [lay_anew, lay_anew]
    # Updates tell what an epoch has changed, so they must not come in another one
    updates = any(gives_updates(query.node) for query in case.queries.values())
    holding = pressed or (not updates and chooser.flag(0.5))
    memory = chooser.choice(SMALL[-4:] if pressed else SMALL) if holding else LARGE
    settings = {**trial.settings, **_settings(chooser), "site_memory_bytes": memory}
    settings |= _putting_aside(SeededChooser(seed + 2 * MANY_SEEDS)) if holding else {}
    legs = _legs(chooser, case.epochs, sites)
    burdens = _burdens(chooser, case.epochs, staged, min(memory, 4_000) if holding else LARGE)
    if holding:
        kinds += chooser.choice([HOLDING, SPILLING, (*HOLDING, *SPILLING)])
        settings["skew_buffer"] = chooser.choice(["shared", "split"])
        settings["skew_buffer_bytes"] = chooser.choice([2**26, 20_000, 500])
    if lined:
        settings |= {"compaction_fan": 2, "compaction_floor_rows": 50_000}
    if several:
        kinds += REPLANNING
        settings |= {"plans": chooser.choice(PLANS), "replan_effort": chooser.choice([0.0, 1e9])}
        settings["transition"] = chooser.choice(TRANSITIONS)
    chance = chooser.choice([OFTEN, SELDOM])
    always = (rebalance,) if chooser.flag(0.15) else ()
    case, quiet = draw_quiet(chooser, case) if chooser.flag(0.3) else (case, {})
    far, folders, letters = chooser.flag(0.2), chooser.flag(0.3), chooser.flag(0.3)
    return case, replace(
        trial,
        legs=legs,
        settings=settings,
        moves=None,
        close=trial.close or holding,
        by_epoch=not holding,
        burdens=burdens,
        watchers=(check_invariants, Meddler(seed, kinds, chance, always)),
        stage=Stage(_outages(chooser, case.epochs)) if staged else None,
        far=far,
        folders=folders,
        letters=letters,
        quiet=quiet,
        # Moves from afar go on when no rows come, in epochs that the oracle does not know
        silences={} if far and not holding else _silences(chooser, case.epochs),
        beside=_moment(chooser, case.epochs) if chooser.flag(0.1) else None,
        rival=_rival(chooser, case.epochs, folders, letters) if chooser.flag(0.2) else None,
        damage=chooser.integer(0, 2**31) if not far and chooser.flag(0.3) else None,
    )


def gives_updates(node: Node) -> bool:
    """Whether results are told on every change somewhere in a query."""
    return getattr(node, "emit", "final") == "update" or any(map(gives_updates, node.inputs))


def recut(chooser: Chooser, case: Case, epochs: int) -> Case:
    """The same rows in another number of epochs, so that there is time for things to happen."""
    frames: dict[str, Sequence[pl.DataFrame]] = {}
    for name, known in case.frames.items():
        rows = pl.concat(known)
        cuts = sorted(chooser.integer(0, rows.height) for _ in range(epochs - 1))
        edges = [0, *cuts, rows.height]
        frames[name] = [rows[edges[at] : edges[at + 1]] for at in range(epochs)]
    return replace(case, frames=frames)


def _legs(chooser: Chooser, epochs: int, sites: Sequence[int]) -> tuple[Leg, ...]:
    """Crashes and stops, each in the epoch of the one before or a later one."""
    legs, at = [], 0
    for _ in range(chooser.choice([1, 0, 0, 3])):
        at = chooser.integer(at, epochs)
        legs.append(Leg(chooser.choice(sites), chooser.choice([*STEPS, "stop"]), at))
    return (*legs, Leg(chooser.choice(sites)))


def _settings(chooser: Chooser) -> dict[str, Any]:
    """The controller awake, and moving things for little."""
    chosen: dict[str, Any] = {
        "policy": chooser.choice(["hybrid", "load", "hybrid", "load", "memory", "none"]),
        "least_gain_seconds": 0.0,
        "most_collection_seconds": chooser.choice([0.01, 1.0]),
        "moved_bytes_per_epoch": chooser.choice([2**30, 4096, 1]),
        "split_partitions": chooser.flag(0.8),
        "skew_buffer": "none",
    }
    if chooser.flag(0.3):
        few = {"least_collection_seconds": 0.0, "imbalance_threshold": 1.0}
        chosen |= {"self_tuning": False, **few}
    return chosen


def _putting_aside(chooser: Chooser) -> dict[str, Any]:
    """Which state goes first and how much of it, now and then under the policies of disks."""
    policy = {"policy": chooser.choice([LAZY_DISK, ACTIVE_DISK])} if chooser.flag(0.3) else {}
    share, first = chooser.choice([0.3, 0.0, 1.0]), chooser.choice([POOR, RICH, ANY])
    return {**policy, "spill_share": share, "spill_first": first}


def _burdens(chooser: Chooser, epochs: int, staged: bool, memory: int) -> Schedule:
    """Slow sites, and such with little memory; off the stage not so slow that a seed takes long."""
    seed, faults = chooser.integer(0, 2**31), chooser.choice([2, 5, 9, 0])
    row, stall = (3 * ROW_SECONDS, 1.0) if staged else (0.0002, 0.004)
    return random_schedule(
        seed, MOST_SITES, epochs, faults=faults, seconds_per_row=row, stall_seconds=stall,
        memory=memory,
    )  # fmt: skip


def _outages(chooser: Chooser, epochs: int) -> tuple[Outage, ...]:
    """Sites that are lost for some turns; now and then all of them at once."""
    if not chooser.flag(0.3):
        return ()
    outages = []
    for _ in range(chooser.choice([1, 2, 4])):
        begin = chooser.integer(0, epochs)
        outages.append(
            Outage(chooser.integer(0, MOST_SITES - 1), begin, begin + chooser.integer(1, 5))
        )
    if chooser.flag(0.2):
        begin = chooser.integer(0, epochs)
        outages += [Outage(site, begin, begin + 2) for site in range(MOST_SITES)]
    return tuple(outages)


def _silences(chooser: Chooser, epochs: int) -> Mapping[int, int]:
    """How often all streams offer nothing before some of the frames."""
    if not chooser.flag(0.2):
        return {}
    return {chooser.integer(0, epochs): chooser.integer(1, 3) for _ in range(3)}


def _moment(chooser: Chooser, epochs: int) -> EpochStep:
    return EpochStep(chooser.integer(0, epochs - 1), chooser.choice(STEPS))


def _rival(chooser: Chooser, epochs: int, folders: bool, letters: bool) -> Rival:
    """A second driver: refused, however it names the checkpoint, or let in by a deleted lock.

    Result folders have locks of their own, which keep it out; so has the dead-letter folder, as long as no
    epoch is committed that would tell the second driver that it is of the same run.
    """
    when = _moment(chooser, epochs)
    locked_out = folders or (letters and when.epoch == 0)
    taking_over = None if locked_out else chooser.choice([None, 0, 1, 3])
    return Rival(when.epoch, when.step, chooser.choice(SPELLINGS), taking_over)


def run_seed(
    seed: int, make_session: SessionMaker | None = None, sites: Sequence[int] = SITES
) -> SeedReport:
    """Runs one seed; a failure is told, not raised."""
    began, outcome = time.monotonic(), Outcome()
    case, trial = draw_seed(seed, sites, staged=make_session is None)
    failure = None
    try:
        check(case, trial, make_session, outcome)
    except Exception as error:
        failure = describe_failure(seed, case, trial, outcome, error)
    fired = outcome.fired + (trial.stage.fired if trial.stage else Counter())
    fired["far checkpoint"] = trial.far
    fired["result folders"] = trial.folders
    fired["dead letters"] = sum(rows.height > 0 for rows in outcome.letters.values())
    fired[f"policy {trial.settings['policy']}"] = 1
    fired["rebalance at every step"] = any(
        isinstance(watcher, Meddler) and rebalance in watcher.always for watcher in trial.watchers
    )
    return SeedReport(seed, time.monotonic() - began, count(trial, outcome), fired, failure)


def run_seeds(
    seeds: Iterable[int], tell: Callable[[SeedReport], None] = lambda report: None,
    make_session: SessionMaker | None = None, jobs: int = 1,
) -> ChaosReport:  # fmt: skip
    """Runs the seeds, one after another or in so many processes; each report is told when it is there."""
    began, report = time.monotonic(), ChaosReport()
    alone = (run_seed(seed, make_session) for seed in seeds)
    for one in alone if jobs == 1 else _apart(seeds, jobs):
        report.seeds.append(one)
        report.seconds = time.monotonic() - began
        tell(one)
    return report


def _apart(seeds: Iterable[int], jobs: int) -> Iterator[SeedReport]:
    """The seeds in processes of their own, so that all cores are used."""
    for seed, report in spread(run_seed, seeds, jobs, LONGEST):
        if isinstance(report, LostItem):
            yield SeedReport(seed, 0.0, Counter(), Counter(), f"Chaos seed {seed}: {report.what}.")
        else:
            yield report


__all__ = ["ChaosReport", "SeedReport", "draw_seed", "read_seeds", "run_seed", "run_seeds"]
