"""What became of chaos seeds: how many passed, what happened in them, what never did."""

from __future__ import annotations

import json
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from anabranch.settings import POLICIES
from anabranch.testing.cases import Case
from anabranch.testing.disturbances import DISTURBANCES, HOLDING, lay_anew
from anabranch.testing.join_shapes import REPLANNING
from anabranch.testing.spilling import SPILLING
from anabranch.testing.trial import STEPS, Outcome, Trial

COUNTED = ("moves", "splits", "merges", "pins", "rebalances", "site_changes", "crashes", "restarts")
FAULTS = (
    "slow site", "loaded site", "stalled site", "small memory", "lost site", "no site at all",
    "quiet stream", "silence", "stop", *(f"crash {step}" for step in STEPS),
    "far checkpoint", "result folders", "dead letters", "rebalance at every step",
    "second run of a session", "two drivers, one refused", "two drivers, one overtaken",
    "damage found and named", "damage never read", *(f"policy {name}" for name in POLICIES),
)  # fmt: skip
"""What may happen to a run beside the disturbances."""
KINDS = (
    *FAULTS,
    *dict.fromkeys(
        kind.__name__.replace("_", " ")
        for kind in (*DISTURBANCES, *HOLDING, *SPILLING, *REPLANNING, lay_anew)
    ),
)
SHOWN_DECISIONS = 60
"""Decisions shown of a seed that failed: the last ones."""
ENOUGH_SEEDS = 100
"""With so many seeds, a kind of fault or disturbance that never came is a failure of its own."""


@dataclass(frozen=True)
class SeedReport:
    """What became of one seed."""

    seed: int
    seconds: float
    counts: Counter[str]
    fired: Counter[str]
    """How often each kind of fault and disturbance came."""
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
        return sorted(one.seed for one in self.seeds if one.failure)

    @property
    def fired(self) -> dict[str, int]:
        """How often each kind of fault and disturbance came."""
        fired: Counter[str] = sum((one.fired for one in self.seeds), Counter())
        return {kind: fired[kind] for kind in KINDS}

    @property
    def never(self) -> list[str]:
        """The kinds that did not come at all."""
        return [kind for kind, count in self.fired.items() if count == 0]

    @property
    def good(self) -> bool:
        """Whether all seeds passed and, if they were many, everything happened in them."""
        return not self.failed and (len(self.seeds) < ENOUGH_SEEDS or not self.never)

    def plain(self) -> dict[str, Any]:
        """The report for programs."""
        counts: Counter[str] = sum((one.counts for one in self.seeds), Counter())
        found = {name: counts[name] for name in [*COUNTED, *sorted({*counts} - {*COUNTED})]}
        return {
            "passed": self.passed, "failed": self.failed, "seconds": round(self.seconds, 1),
            **found, "fired": self.fired, "never": self.never,
        }  # fmt: skip

    def text(self) -> str:
        """The report in a few lines."""
        told = self.plain()
        passed, failed, seconds, fired, never = (
            told.pop(name) for name in ("passed", "failed", "seconds", "fired", "never")
        )
        happened = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in told.items())
        lines = [
            f"{passed} of {passed + len(failed)} seeds passed in {seconds} s.",
            f"There were {happened}.",
            f"How often each kind came: {', '.join(f'{k} {n:,}' for k, n in fired.items() if n)}.",
        ]
        if never:
            lines.append(f"Never came: {'; '.join(never)}.")
        if failed:
            lines.append(f"Failed: {', '.join(map(str, failed))}.")
        return "\n".join(lines)


def count(trial: Trial, outcome: Outcome) -> Counter[str]:
    """What was decided, asked for and endured."""
    fired = outcome.fired
    counts = Counter(
        splits=fired["split"], merges=fired["merge"], pins=fired["pin"], pauses=fired["pause"],
        rebalances=fired["rebalance"], site_changes=fired["resize"], releases=fired["release"],
        crashes=outcome.crashes, restarts=len(trial.legs) - 1, epochs=len(outcome.manifests),
    )  # fmt: skip
    for decision in outcome.history:
        if decision["accepted"]:
            counts[f"{decision['kind']}s"] += 1
            counts["by_controller"] += decision["origin"] == "controller"
    for before, after in zip(trial.legs, trial.legs[1:], strict=False):
        counts["site_changes"] += before.sites != after.sites
    return counts


def describe_failure(
    seed: int, case: Case, trial: Trial, outcome: Outcome, error: Exception
) -> str:
    """All one needs to find out what went wrong."""
    last = outcome.history[-SHOWN_DECISIONS:]
    decisions = [json.dumps(decision, default=str) for decision in last]
    how = {
        "far": trial.far, "folders": trial.folders, "letters": trial.letters,
        "quiet": dict(trial.quiet), "silences": dict(trial.silences), "close": trial.close,
        "outages": trial.stage.outages if trial.stage else (), "beside": trial.beside,
        "rival": trial.rival, "damage": trial.damage,
    }  # fmt: skip
    return "\n".join(
        [
            f"Seed {seed} failed after {len(outcome.manifests)} epochs: {error}",
            "", case.describe(),
            "", *[str(leg) for leg in trial.legs],
            f"settings: {dict(trial.settings)}",
            f"faults: {trial.burdens}",
            f"trial: {how}",
            "", f"The last {len(last)} of {len(outcome.history)} decisions:", *decisions,
            "", "".join(traceback.format_exception(error)).rstrip(),
            "", f"To repeat it: anabranch chaos --seeds {seed}..{seed}",
        ]
    )  # fmt: skip
