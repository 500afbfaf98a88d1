"""The history of a run: every decision with its cause, what it took, and its effect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anabranch.adapt.actions import Action, Move, words

CONTROLLER, BY_HAND, SITES = "controller", "hand", "sites"
"""Who decides: what was measured, the user, or sites that come and go."""


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
        move = self.action if isinstance(self.action, Move) else None
        return {
            "epoch": self.epoch,
            "action": words(self.action),
            "kind": type(self.action).__name__.lower(),
            "exchange": self.action.exchange,
            "partition": self.action.partition,
            "source": move.source if move else None,
            "target": move.target if move else None,
            "bytes": move.bytes if move else 0,
            "cause": self.action.cause,
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


def rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
