"""Many cases, in several processes: what became of them, and the failures made small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from anabranch.testing.fuzz.case import draw_case
from anabranch.testing.fuzz.judge import FAILED, PASSED, REFUSED, Judgement, judge
from anabranch.testing.fuzz.shrink import describe
from anabranch.testing.fuzz.world import GROUP, draw_world
from anabranch.testing.processes import LostItem, spread

LONGEST = 300.0
"""Seconds after which the cases of a world are taken to hang, planning included."""
FEW = 3
"""Refused cases beside the hundredth of them that is allowed: chance, where there are few cases."""


@dataclass
class FuzzReport:
    """What became of the cases."""

    passed: int = 0
    refused: int = 0
    failed: list[Judgement] = field(default_factory=list)
    seconds: float = 0.0

    def note(self, outcome: Judgement) -> None:
        self.passed += outcome.verdict == PASSED
        self.refused += outcome.verdict == REFUSED
        if outcome.verdict == FAILED:
            self.failed.append(outcome)

    @property
    def few_refused(self) -> bool:
        """What is refused is not tried: of much of it a run of cases shows nothing."""
        return self.refused <= FEW + (self.passed + self.refused + len(self.failed)) / 100

    @property
    def good(self) -> bool:
        """Whether the cases show something, and nothing wrong."""
        return not self.failed and self.few_refused

    def plain(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "passed": self.passed,
            "failed": [{"seed": one.seed, "reason": one.reason} for one in self.failed],
            "refused": self.refused,
            "seconds": round(self.seconds, 1),
        }


def run_case(seed: int) -> Judgement:
    """One case by itself, with a failure told in full."""
    world = draw_world(seed // GROUP)
    case = draw_case(seed, world)
    (outcome,) = judge(world, [case])
    return describe(world, [case], outcome)


def run_cases(first: int, count: int) -> list[Judgement]:
    """Neighbouring cases of one world together, with failures told in full."""
    world = draw_world(first // GROUP)
    cases = [draw_case(seed, world) for seed in range(first, first + count)]
    return [describe(world, cases, outcome) for outcome in judge(world, cases)]


def fuzz(
    first: int, cases: int, jobs: int, tell: Callable[[Judgement], None] = lambda outcome: None
) -> FuzzReport:
    """Runs the cases from `first` on; `tell` hears of each. With one job everything is in this process."""
    report, began = FuzzReport(), time.monotonic()
    outcomes = _alone(first, cases) if jobs == 1 else _spread(first, cases, jobs)
    for outcome in outcomes:
        report.note(outcome)
        tell(outcome)
    report.failed.sort(key=lambda one: one.seed)
    report.seconds = time.monotonic() - began
    return report


def _groups(first: int, cases: int) -> Iterator[tuple[int, int]]:
    """The cases by worlds: the first of each and how many."""
    seed, end = first, first + cases
    while seed < end:
        count = min(end, (seed // GROUP + 1) * GROUP) - seed
        yield seed, count
        seed += count


def _alone(first: int, cases: int) -> Iterator[Judgement]:
    for group in _groups(first, cases):
        yield from run_cases(*group)


def _spread(first: int, cases: int, jobs: int) -> Iterator[Judgement]:
    """The outcomes as they come; a process that hangs or dies is one failure."""
    for group, outcomes in spread(_group, _groups(first, cases), jobs, LONGEST):
        if isinstance(outcomes, LostItem):
            yield _lost(group, outcomes.what)
        else:
            yield from outcomes


def _group(group: tuple[int, int]) -> list[Judgement]:
    return run_cases(*group)


def _lost(group: tuple[int, int], what: str) -> Judgement:
    seed, count = group
    return Judgement(
        seed, FAILED,
        f"Cases {seed} to {seed + count - 1}: {what}.\nRepeat them: anabranch fuzz --first {seed} "
        f"--cases {count} --jobs 1",
    )  # fmt: skip
