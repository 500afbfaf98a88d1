"""The history of a run: every decision with its cause, what it took, and its effect."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anabranch.adapt.actions import Action, Replan
from anabranch.adapt.protocols.parallel_track import TRACK_STEPS
from anabranch.adapt.protocols.replanning import STEPS
from anabranch.amount import several

CONTROLLER, BY_HAND, SITES = "controller", "hand", "sites"
"""Who decides: what was measured, the user, or sites that come and go."""
MOST_DECISIONS = 5_000
"""Decisions that are remembered."""


@dataclass
class Decision:
    """One line of the history."""

    epoch: int
    """The epoch after which it was taken."""
    action: Action
    accepted: bool
    reason: str
    origin: str = CONTROLLER
    seconds: float = 0.0
    """How long it took to decide on."""
    before: float | None = None
    """The busiest site's time against the mean, when it was taken."""
    after: float | None = None
    """The same when it was next measured."""
    given_up: str | None = None
    """Why a move that takes some epochs was not carried out after all."""
    cost: float | None = None
    """For another shape of a join: the seconds a row takes since, against those before."""
    steps: dict[str, int] = field(default_factory=dict)
    """For the same: the epoch of each step of the change."""

    def plain(self) -> dict[str, Any]:
        told = self.action.plain()
        if isinstance(self.action, Replan):
            told |= {"costMeasured": rounded(self.cost), "steps": dict(self.steps)}
        return {
            "epoch": self.epoch,
            **told,
            "accepted": self.accepted,
            "reason": self.reason,
            "origin": self.origin,
            "givenUp": self.given_up,
            "seconds": round(self.seconds, 6),
            "effect": {
                "imbalanceBefore": rounded(self.before),
                "imbalanceAfter": rounded(self.after),
            },
        }


class DecisionHistory:
    """The decisions of a run, the last ones of many."""

    def __init__(self) -> None:
        self._decisions: deque[Decision] = deque(maxlen=MOST_DECISIONS)
        self._untold: list[Decision] = []
        """Decisions that no progress report has told yet."""

    def keep(self, *decisions: Decision) -> None:
        self._decisions += decisions
        self._untold += decisions

    def give_up(self, action: Action, reason: str) -> None:
        """Remembers why something is not carried out after all."""
        for decision in reversed(self._decisions):
            if decision.action == action:
                decision.given_up = reason
                return

    def reshaped(
        self, subquery: str, slots: Sequence[tuple[int, int]], steps: Mapping[str, int]
    ) -> None:
        """Notes steps of slots of a join to another shape; a change may take several epochs."""
        told: set[int] = set()
        for decision in reversed(self._decisions):
            action = decision.action
            if not (
                isinstance(action, Replan) and action.subquery == subquery and decision.accepted
            ):
                continue
            # An older decision on a partition has been carried out, or given up for a newer one
            mine = {p for p in action.partitions if any(first <= p < end for first, end in slots)}
            if mine - told:
                told |= mine
                last = {step: steps[step] for step in (STEPS[-1], TRACK_STEPS[-1]) if step in steps}
                decision.steps = {**steps, **decision.steps, **last}
                decision.steps |= dict.fromkeys(STEPS[:2], decision.epoch)

    def last_shapes(self) -> dict[str, str]:
        """By join the last change of its shape that is remembered, in words: what, how and why."""
        found = {}
        for decision in self._decisions:
            action = decision.action
            if isinstance(action, Replan) and decision.accepted:
                on = several(len(action.partitions), "partition")
                what = f"{action.shape} in place of {action.before} on {on}"
                how = f"{action.way.words()}, after epoch {decision.epoch}: {decision.reason}"
                found[action.subquery] = f"{what}, {how}"
        return found

    def all(self) -> list[Decision]:
        """Every decision, oldest first."""
        return list(self._decisions)

    def tell(self) -> list[Decision]:
        """What was decided since it was last told."""
        recent, self._untold = self._untold, []
        return recent


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
