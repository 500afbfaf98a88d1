"""The history of a run: every decision with its cause, what it took, and its effect."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from anabranch.adapt.actions import Action

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

    def plain(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            **self.action.plain(),
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

    def keep(self, decision: Decision) -> None:
        self._decisions.append(decision)
        self._untold.append(decision)

    def give_up(self, action: Action, reason: str) -> None:
        """Remembers why something is not carried out after all."""
        for decision in reversed(self._decisions):
            if decision.action == action:
                decision.given_up = reason
                return

    def all(self) -> list[Decision]:
        """Every decision, oldest first."""
        return list(self._decisions)

    def tell(self) -> list[Decision]:
        """What was decided since it was last told."""
        recent, self._untold = self._untold, []
        return recent


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
