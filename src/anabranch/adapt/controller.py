"""The controller of one set of sites: rounds of a view, proposals, verdicts and expectations.

It reads no clock and does no I/O: whoever owns it says when figures have been collected for as long as
`tuning.collect` asks, and how long the accepted moves took: in the engine no time of their own, in the
simulator as long as state travels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.arbiter import Arbiter, Verdict
from anabranch.adapt.policies.even import propose_even
from anabranch.adapt.policies.hybrid import propose_hybrid
from anabranch.adapt.policies.load import propose_load
from anabranch.adapt.policies.memory import propose_memory
from anabranch.adapt.tuning import Tuning, after_round, surprise
from anabranch.adapt.view import View

Policy = Callable[[View, Tuning], Iterable[Action]]


def _none(view: View, tuning: Tuning) -> Iterator[Action]:
    return iter(())


def _load(view: View, tuning: Tuning) -> Iterator[Action]:
    return (propose_even if tuning.itself else propose_load)(view, tuning)


POLICIES: dict[str, Policy] = {
    "none": _none,
    "load": _load,
    "memory": propose_memory,
    "hybrid": propose_hybrid,
}


@dataclass
class Controller:
    """Decides for the sites of one view after another."""

    policies: tuple[Policy, ...]
    tuning: Tuning
    arbiter: Arbiter = field(default_factory=Arbiter)
    round: int = 0
    _expected: np.ndarray | None = None
    _error: float | None = None
    _sites: int = 1

    def decide(self, view: View, policies: tuple[Policy, ...] | None = None) -> list[Verdict]:
        """What to do now that figures have been collected; call `finished` when it is done.

        Other `policies` than the usual ones may be asked this once.
        """
        self.round += 1
        used = view.utilisation
        known = self._expected is not None and len(self._expected) == len(used)
        self._error = (
            surprise(self._expected, used) if known and self._expected is not None else None
        )
        self._sites = len(used)
        proposals = [
            action for policy in policies or self.policies for action in policy(view, self.tuning)
        ]
        verdicts = self.arbiter.judge(proposals, view, self.round)
        self._expected = self._expect(view, verdicts)
        return verdicts

    def finished(self, seconds: float) -> None:
        """The moves of the round are done, after so many seconds; 0 if there were none."""
        self.tuning = after_round(self.tuning, seconds, self._error, self._sites)

    def _expect(self, view: View, verdicts: list[Verdict]) -> np.ndarray:
        moves = [v.action for v in verdicts if v.accepted and isinstance(v.action, Move)]
        if not moves:
            return view.utilisation
        known = view.partitions
        names = {name: number for number, name in enumerate(view.exchanges)}
        keys = known.exchange.astype(np.int64) << 32 | known.start
        asked = np.array([names[m.exchange] << 32 | m.partition for m in moves], dtype=np.int64)
        order = np.argsort(keys, kind="stable")
        where = order[np.searchsorted(keys[order], asked)]
        return view.moved(where.tolist(), [move.target for move in moves]).utilisation
