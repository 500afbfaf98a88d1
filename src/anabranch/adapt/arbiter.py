"""The arbiter: takes proposals in order and accepts or refuses each, with a reason that is shown.

It alone knows what policies do not look at: the budget of bytes that all exchanges share in a round, and what
has moved lately. Its rule against thrashing is called *no return*: a
partition that has moved stays for some rounds, and does not go back to a site it left unless that site
has become faster or slower since, or many rounds have passed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.view import View

CHANGED = 1.2
"""A site whose slowness has changed by this factor is another site for those who left it."""


@dataclass(frozen=True)
class Limits:
    """What the arbiter allows."""

    bytes_per_round: float = float("inf")
    settle: int = 2
    """Rounds for which a partition stays after a move."""
    remember: int = 24
    """Rounds for which it does not return to a site it left."""


@dataclass(frozen=True)
class Verdict:
    """A proposal and what became of it."""

    action: Action
    accepted: bool
    reason: str


@dataclass(frozen=True)
class Departure:
    """A partition's last leave of a site."""

    round: int
    slowness: float


@dataclass
class Arbiter:
    """Judges the proposals of one round after another."""

    limits: Limits = Limits()
    budget: float | None = None
    """What is left of the bytes of this round, if others have used some of them before."""
    _departures: dict[tuple[str, int], dict[int, Departure]] = field(default_factory=dict)

    def judge(
        self, proposals: Iterable[Action], view: View, round: int, binding: bool = True
    ) -> list[Verdict]:
        """A verdict for every proposal; those accepted count against the budget and, if they are binding,
        are remembered."""
        self._forget(round)
        budget = self.limits.bytes_per_round if self.budget is None else self.budget
        verdicts, seen = [], set[tuple[str, int]]()
        for action in proposals:
            reason = self._refusal(action, view, round, budget, seen)
            if reason is None:
                seen.update(action.subjects)
                if isinstance(action, Move):
                    budget -= action.bytes
                    if binding:
                        self._remember(action, view, round)
            verdicts.append(Verdict(action, reason is None, reason or action.cause))
        return verdicts

    def _refusal(
        self, action: Action, view: View, round: int, budget: float, seen: set[tuple[str, int]]
    ) -> str | None:
        if not seen.isdisjoint(action.subjects):
            return "another proposal for this partition was accepted"
        if not isinstance(action, Move):
            return None
        if not view.sites.alive[action.target]:
            return f"site {action.target} is gone"
        if action.bytes > budget and budget < self.limits.bytes_per_round:
            return f"it has {action.bytes:,} bytes, of this round's budget {max(0, int(budget)):,} are left"
        if not view.sites.alive[action.source]:
            return None
        left = self._departures.get(action.subject, {})
        newest = max((departure.round for departure in left.values()), default=None)
        if newest is not None and round - newest <= self.limits.settle:
            return f"no return: it moved {round - newest} rounds ago"
        departure = left.get(action.target)
        if departure is not None:
            change = view.sites.slowness[action.target] / departure.slowness
            if 1 / CHANGED < change < CHANGED:
                return (
                    f"no return: it left site {action.target} {round - departure.round} rounds ago"
                )
        return None

    def _remember(self, move: Move, view: View, round: int) -> None:
        slowness = float(view.sites.slowness[move.source])
        self._departures.setdefault(move.subject, {})[move.source] = Departure(round, slowness)

    def _forget(self, round: int) -> None:
        for subject, left in list(self._departures.items()):
            for site in [s for s, d in left.items() if round - d.round > self.limits.remember]:
                del left[site]
            if not left:
                del self._departures[subject]
