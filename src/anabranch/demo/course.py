"""How a run of the demonstration has gone, phase by phase, added up from its progress reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from anabranch.demo.scenario import PHASES, phase_of
from anabranch.observe.totals import Totals


@dataclass
class PhaseCourse:
    """What a run did in one phase."""

    rows: int = 0
    seconds: float = 0.0
    resident: int = 0
    """The most bytes that a site kept in memory."""
    aside: int = 0
    """The most bytes that all sites had put aside."""
    imbalance: float = 1.0
    """The busiest site's time against the mean, in the newest epoch."""
    actions: Counter[str] = field(default_factory=Counter)

    @property
    def rate(self) -> float | None:
        """Rows a second; None if it has not been there."""
        return self.rows / self.seconds if self.seconds else None


@dataclass
class Did:
    """Actions of one kind after one epoch, in the words of the first."""

    epoch: int
    phase: int
    kind: str
    action: str
    cause: str
    count: int = 1


@dataclass
class RunCourse:
    """The sum of the reports given to `add`, in the order of their epochs."""

    totals: Totals = field(default_factory=Totals)
    phases: list[PhaseCourse] = field(default_factory=lambda: [PhaseCourse() for _ in PHASES])
    phase: int = 0
    done: list[Did] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """How long each epoch with rows took: both runs have the same rows in each."""
    ended: bool = False

    def add(self, progress: dict[str, Any]) -> None:
        """Counts one epoch."""
        self.totals.add(progress)
        newest = progress["sources"][0]["eventTime"].get("max")
        if isinstance(newest, int):
            self.phase = phase_of(newest)
        now, custom = self.phases[self.phase], progress["customMetrics"]
        # In the first epoch Spark starts its workers; one without rows is the end's
        if progress["numInputRows"]:
            self.seconds.append(progress["durationMs"]["triggerExecution"] / 1000)
        if self.totals.epochs > 1 and progress["numInputRows"]:
            now.rows += progress["numInputRows"]
            now.seconds += progress["durationMs"]["triggerExecution"] / 1000
        memory = custom["adaptation"]["memory"]
        now.resident = max([now.resident, *(site["resident"] for site in memory)])
        now.aside = max(now.aside, sum(site["aside"] for site in memory))
        busy = [site["busySeconds"] for site in custom["sites"]]
        now.imbalance = max(busy) * len(busy) / sum(busy) if sum(busy) else 1.0
        for one in custom["adaptation"]["decisions"]:
            if one["accepted"]:
                self._did(int(progress["batchId"]), one)

    def _did(self, epoch: int, one: dict[str, Any]) -> None:
        self.phases[self.phase].actions[one["kind"]] += 1
        last = self.done[-1] if self.done else None
        if last is not None and (last.epoch, last.kind) == (epoch, one["kind"]):
            last.count += 1
        else:
            self.done.append(Did(epoch, self.phase, one["kind"], one["action"], one["cause"]))

    @property
    def results(self) -> int:
        return sum(self.totals.results.values())

    @property
    def shapes(self) -> dict[str, int]:
        """In which shape how many partitions of the join work now."""
        told = self.totals.last.get("customMetrics", {}).get("adaptation", {}).get("shapes", {})
        return next(iter(told.values()), {})

    @property
    def busy(self) -> list[float]:
        """The seconds for which each site worked in the newest epoch."""
        sites = self.totals.last.get("customMetrics", {}).get("sites", [])
        return [site["busySeconds"] for site in sites]

    @property
    def memory(self) -> tuple[int, int]:
        """What the fullest site keeps, and what all have put aside, in bytes."""
        told = self.totals.last.get("customMetrics", {}).get("adaptation", {}).get("memory", [])
        kept = max((site["resident"] for site in told), default=0)
        return kept, sum(site["aside"] for site in told)


def times_as_fast(adapted: RunCourse, fixed: RunCourse) -> float | None:
    """How many times as fast one run did what both have done, without the first epoch."""
    both = slice(1, min(len(adapted.seconds), len(fixed.seconds)))
    mine, other = sum(adapted.seconds[both]), sum(fixed.seconds[both])
    return other / mine if mine and other else None


def times_as_many(adaptive: float | None, fixed: float | None) -> float | None:
    """How many times the other's rate one has, if both are known."""
    return adaptive / fixed if adaptive and fixed else None


def described(course: RunCourse) -> dict[str, Any]:
    """A run as JSON, by phases."""
    return {
        "numInputRows": course.totals.rows,
        "seconds": round(course.totals.seconds, 3),
        "rowsPerSecond": round(course.totals.rate),
        "results": course.results,
        "ended": course.ended,
        "phases": [
            {
                "phase": phase.title,
                "rows": one.rows,
                "seconds": round(one.seconds, 3),
                "rowsPerSecond": None if one.rate is None else round(one.rate),
                "mostBytesOfASite": one.resident,
                "mostBytesAside": one.aside,
                "actions": dict(sorted(one.actions.items())),
            }
            for phase, one in zip(PHASES, course.phases, strict=True)
        ],
    }
