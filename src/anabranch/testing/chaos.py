"""Chaos by seeds: random queries over random input, disturbed in every way we know, against the oracle.

A seed gives a case (aggregates or joins), how often it is stopped or crashes and where, settings with which
the controller moves things for the slightest reason, slow sites, and some kinds of disturbance. The results
of every epoch must be those of DuckDB, all of them together where rows are held back, and `invariants.py`
must hold throughout. What the controller does
depends on measured times too, so a seed that fails may have to be repeated a few times.

>>> report = run_seeds(range(3, 5))
>>> report.passed, report.failed
(2, [])
"""

from __future__ import annotations

import json
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from anabranch.errors import SettingsError
from anabranch.testing.cases import Case, draw_case
from anabranch.testing.chooser import Chooser, SeededChooser
from anabranch.testing.disturbances import (
    BY_MAP,
    DISTURBANCES,
    HOLDING,
    MOST_SITES,
    OFTEN,
    SELDOM,
    Meddler,
)
from anabranch.testing.faults import Schedule, random_schedule
from anabranch.testing.invariants import check_invariants
from anabranch.testing.joins import draw_join_case
from anabranch.testing.trial import STEPS, Leg, Outcome, SessionMaker, Trial, check, draw_trial

COUNTED = ("moves", "splits", "merges", "pins", "rebalances", "site_changes", "crashes", "restarts")
SITES = (2, 3, 1, 4, MOST_SITES)
SHOWN_DECISIONS = 60
"""Decisions shown of a seed that failed: the last ones."""


@dataclass(frozen=True)
class SeedReport:
    """What became of one seed."""

    seed: int
    seconds: float
    counts: Counter[str]
    failure: str | None = None
    """What to tell of it, if it failed."""


@dataclass
class ChaosReport:
    """What became of all seeds."""

    seeds: list[SeedReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def passed(self) -> int:
        return len(self.seeds) - len(self.failed)

    @property
    def failed(self) -> list[int]:
        return [one.seed for one in self.seeds if one.failure]

    def plain(self) -> dict[str, Any]:
        """The report for programs."""
        counts: Counter[str] = sum((one.counts for one in self.seeds), Counter())
        found = {name: counts[name] for name in [*COUNTED, *sorted({*counts} - {*COUNTED})]}
        seconds = round(self.seconds, 1)
        return {"passed": self.passed, "failed": self.failed, "seconds": seconds, **found}


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


def draw_seed(
    seed: int, sites: Sequence[int] = SITES, counts: Counter[str] | None = None
) -> tuple[Case, Trial]:
    """The case of a seed, and how it is to be run; what happens is counted."""
    chooser = SeededChooser(seed)
    drawn = draw_join_case(chooser) if chooser.flag() else draw_case(chooser)
    case = recut(chooser, drawn, chooser.integer(4, 16))
    trial = draw_trial(chooser, case.epochs, sites)
    # Some kinds for each seed: with all of them, none would come often enough in a row
    by_map = chooser.flag()
    kinds = [k for k in DISTURBANCES if (by_map or k not in BY_MAP) and chooser.flag(0.45)]
    settings = {**trial.settings, **_settings(chooser)}
    legs, burdens = _legs(chooser, case.epochs, sites), _burdens(chooser, case.epochs)
    # Updates tell what an epoch has changed, so they must not come in another one
    updates = any("update" in query.node.signature for query in case.queries.values())
    holding = not updates and chooser.flag(0.35)
    if holding:
        kinds += HOLDING
        settings["skew_buffer"] = chooser.choice(["shared", "split"])
        settings["skew_buffer_bytes"] = chooser.choice([2**26, 20_000, 500])
    chance = chooser.choice([OFTEN, SELDOM])
    meddler = Meddler(seed, kinds, Counter() if counts is None else counts, chance)
    return case, replace(
        trial,
        legs=legs,
        settings=settings,
        moves=None,
        close=trial.close or holding,
        by_epoch=not holding,
        burdens=burdens,
        watchers=(check_invariants, meddler),
    )


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
    if chosen["policy"] == "memory" or chooser.flag(0.2):
        chosen["site_memory_bytes"] = chooser.choice([1, 2_000, 50_000])
    if chooser.flag(0.3):
        few = {"least_collection_seconds": 0.0, "imbalance_threshold": 1.0}
        chosen |= {"self_tuning": False, **few}
    return chosen


def _burdens(chooser: Chooser, epochs: int) -> Schedule:
    """Slow sites, but not so slow that a seed takes long."""
    seed, faults = chooser.integer(0, 2**31), chooser.choice([2, 5, 9, 0])
    return random_schedule(
        seed, MOST_SITES, epochs, faults=faults, seconds_per_row=0.0002, stall_seconds=0.004,
        memory=4_000,
    )  # fmt: skip


def run_seed(
    seed: int, make_session: SessionMaker | None = None, sites: Sequence[int] = SITES
) -> SeedReport:
    """Runs one seed; a failure is told, not raised."""
    began, counts, outcome = time.monotonic(), Counter[str](), Outcome()
    case, trial = draw_seed(seed, sites, counts)
    failure = None
    try:
        check(case, trial, make_session, outcome)
    except Exception as error:
        failure = describe_failure(seed, case, trial, outcome, error)
    _count(counts, trial, outcome)
    return SeedReport(seed, time.monotonic() - began, counts, failure)


def _count(counts: Counter[str], trial: Trial, outcome: Outcome) -> None:
    """Adds what was decided, and what the trial itself did, to what the disturbances did."""
    for decision in outcome.history:
        if decision["accepted"]:
            counts[f"{decision['kind']}s"] += 1
            counts["by_controller"] += decision["origin"] == "controller"
    counts["crashes"] += outcome.crashes
    counts["restarts"] += len(trial.legs) - 1
    counts["epochs"] += len(outcome.manifests)
    for before, after in zip(trial.legs, trial.legs[1:], strict=False):
        counts["site_changes"] += before.sites != after.sites


def describe_failure(
    seed: int, case: Case, trial: Trial, outcome: Outcome, error: Exception
) -> str:
    """All one needs to find out what went wrong."""
    last = outcome.history[-SHOWN_DECISIONS:]
    decisions = [json.dumps(decision, default=str) for decision in last]
    return "\n".join(
        [
            f"Seed {seed} failed after {len(outcome.manifests)} epochs: {error}",
            "", case.describe(),
            "", *[str(leg) for leg in trial.legs],
            f"settings: {dict(trial.settings)}",
            f"faults: {trial.burdens}",
            "", f"The last {len(last)} of {len(outcome.history)} decisions:", *decisions,
            "", "".join(traceback.format_exception(error)).rstrip(),
            "", f"To repeat it: anabranch chaos --seeds {seed}..{seed}",
        ]
    )  # fmt: skip


def run_seeds(
    seeds: Iterable[int], tell: Callable[[SeedReport], None] = lambda report: None,
    make_session: SessionMaker | None = None,
) -> ChaosReport:  # fmt: skip
    """Runs one seed after another; each report is told as soon as it is there."""
    began, report = time.monotonic(), ChaosReport()
    for seed in seeds:
        report.seeds.append(run_seed(seed, make_session))
        report.seconds = time.monotonic() - began
        tell(report.seeds[-1])
    return report
