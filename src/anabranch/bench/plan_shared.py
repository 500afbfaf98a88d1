"""What the experiments of `bench plans` have in common: how their runs are made and counted."""

from __future__ import annotations

from typing import Any

from anabranch.bench.plan_runs import PlanCourse, PlanTraffic, PlanWay, run_plan
from anabranch.observe.steps import Steps
from anabranch.simulate.service import EPOCH

QUICK_EPOCH = 2 * EPOCH


class PlanExperiments:
    """The runs of all figures."""

    def __init__(self, quick: bool, steps: Steps) -> None:
        self._epoch, self._steps = QUICK_EPOCH if quick else EPOCH, steps
        self.equal = True

    def run(
        self, title: str, traffic: PlanTraffic, settings: dict[str, Any], epoch: float | None = None,
        replan: tuple[float, str] | None = None,
    ) -> PlanCourse:  # fmt: skip
        """One run; unless told otherwise in epochs of the usual length, and without a change by hand."""
        self._steps.begin(title)
        course = run_plan(traffic, PlanWay(settings, epoch or self._epoch, replan=replan))
        self.equal &= course.equal
        return course


def ratio(one: float, other: float) -> float:
    return round(one / other, 4) if other else float("inf")
