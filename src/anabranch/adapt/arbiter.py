"""The arbiter: takes proposals in order and accepts or refuses each, with a reason that is shown.

There is one for a run. It alone knows what policies do not look at: the budget of bytes that all exchanges
share between two epochs, and what has moved lately. Its rule against thrashing is called *no return*: a
partition that has moved stays for some rounds, and does not go back to a site it left unless that site
has become faster or slower since, or many rounds have passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.view import View

CHANGED = 1.2
"""A site whose slowness has changed by this factor is another site for those who left it."""


@dataclass(frozen=True)
class Limits:
    """What the arbiter allows."""

    bytes_per_epoch: float = float("inf")
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
    """Judges the proposals of a run."""

    limits: Limits = Limits()
    budget: float = field(init=False)
    """Bytes that may still move before the next epoch, for whatever reason, at any level."""
    _departures: dict[tuple[str, int], dict[int, Departure]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """An epoch is over: all bytes may move again."""
        self.budget = self.limits.bytes_per_epoch

    def judge(
        self, proposals: Iterable[Action], view: View | None = None, round: int = 0,
        binding: bool = True, busy: Collection[tuple[str, int]] = (),
    ) -> list[Verdict]:  # fmt: skip
        """A verdict for every proposal; moves accepted, if they are binding, are paid for and remembered.

        Only moves need a view and its round. Policies that see none may be told which partitions are `busy`.
        """
        if view is not None:
            self._forget(view, round)
        budget = self.budget
        verdicts, seen = [], set[tuple[str, int]]()
        for action in proposals:
            reason = None
            if not seen.isdisjoint(action.subjects):
                reason = "another proposal for this partition was accepted"
            elif any(one in busy for one in action.subjects):
                reason = "its state is on its way, or put aside"
            elif isinstance(action, Move):
                assert view is not None
                reason = self._stays(action, view, round, budget)
                if reason is None:
                    budget -= action.bytes
                    if binding:
                        self._remember(action, view, round)
            if reason is None:
                seen.update(action.subjects)
            verdicts.append(Verdict(action, reason is None, reason or action.cause))
        if binding:
            self.budget = budget
        return verdicts

    def _stays(self, move: Move, view: View, round: int, budget: float) -> str | None:
        """Why a partition may not move, if it may not."""
        if not view.sites.alive[move.target]:
            return f"site {move.target} is gone"
        if move.bytes > budget and budget < self.limits.bytes_per_epoch:
            return f"it has {move.bytes:,} bytes, of this epoch's budget {max(0, int(budget)):,} are left"
        if not view.sites.alive[move.source]:
            return None
        left = self._departures.get(move.subject, {})
        newest = max((departure.round for departure in left.values()), default=None)
        if newest is not None and round - newest <= self.limits.settle:
            return f"no return: it moved {round - newest} rounds ago"
        departure = left.get(move.target)
        if departure is not None:
            change = view.sites.slowness[move.target] / departure.slowness
            if 1 / CHANGED < change < CHANGED:
                return f"no return: it left site {move.target} {round - departure.round} rounds ago"
        return None

    def _remember(self, move: Move, view: View, round: int) -> None:
        slowness = float(view.sites.slowness[move.source])
        self._departures.setdefault(move.subject, {})[move.source] = Departure(round, slowness)

    def _forget(self, view: View, round: int) -> None:
        """Every level counts rounds of its own, so only what the view shows is as old as that."""
        mine = {*view.exchanges}
        for subject, left in list(self._departures.items()):
            if subject[0] not in mine:
                continue
            for site in [s for s, d in left.items() if round - d.round > self.limits.remember]:
                del left[site]
            if not left:
                del self._departures[subject]
