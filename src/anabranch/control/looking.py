"""When it is counted what joins would do in other shapes (P2): seldom, and sooner after a change.

Every look is paid for out of a share of the work of its join. What rows are like, and what is remembered of
them, says whether a look is wanted sooner: some can be had on credit, and are paid for later. So looks take
at most that share of the time in the long run, whatever rows do, and where rows stay alike a part of it; for
how long the machine holds them up beyond that, they cannot answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anabranch.control.observed import JoinWork
from anabranch.routing.shaped import Shapes

FIRST_COST = 0.01
"""Seconds in which a site counts what other shapes would do, as long as none has done so."""
CHANGED = 2.0
"""Pairs of a row, or the share of an input in what comes or is remembered, that are so many times what they
were when a join was last looked at are a reason to look again ..."""
SOONER = 15
"""... so many times as soon. A first look is as soon."""
CREDIT = 10
"""Looks that can be had before they are paid for. A change of rates takes some, until all that is remembered
is of the time since, and so does the start. What is paid is kept for one look."""
PATIENCE = 4
"""So many times the wait for a look becomes longer at most, twice with every look at rows that stay alike."""
SLIGHT = 0.02
"""The share of an input that is as good as none."""


@dataclass(frozen=True)
class Mix:
    """What the rows of an epoch are like, as far as it says that another shape may be better."""

    pairs: float
    """Pairs that were looked at for a row."""
    rows: Sequence[float] = ()
    """Those of each input, if that is known."""
    kept: Sequence[float] = ()
    """What is remembered of each."""
    shapes: Shapes = ()
    """The shapes that the join was to have."""

    def differs(self, other: Mix) -> bool:
        """Whether it is clearly another one; inputs with next to nothing do not count."""
        # In another shape a join looks at another number of pairs, whatever its rows are like
        if self.shapes == other.shapes and _apart(self.pairs + 1, other.pairs + 1):
            return True
        return _differ(self.rows, other.rows) or _differ(self.kept, other.kept)


def _differ(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether shares of inputs are clearly others."""
    mine, theirs = (np.asarray(one) / max(sum(one), 1) for one in (some, others))
    return len(mine) == len(theirs) and any(map(_apart, mine + SLIGHT, theirs + SLIGHT))


def _apart(one: float, other: float) -> bool:
    return max(one, other) > CHANGED * min(one, other)


@dataclass
class Looks:
    """The looks at one join: what they cost, what is there to pay for them, and what was last seen."""

    price: float
    """Seconds of one: the mean of what they have cost, the last one counting half."""
    paid: float = 0.0
    """Seconds that there are for looks; below zero, those that are owed."""
    since: float = 0.0
    """Seconds that the join has worked since the last one."""
    now: Mix | None = None
    seen: Mix | None = None
    """What rows were like at the last look."""
    anew: bool = True
    """Whether they had been otherwise at the one before it."""
    patience: int = 1
    """How many times as long as they are paid for looks that nothing asks for wait."""

    def take_in(self, done: JoinWork, rows: Sequence[float], shapes: Shapes, effort: float) -> None:
        """What the join has done in an epoch, and what its rows are like."""
        worked = done.seconds - done.sampling
        self.since += worked
        self.paid = min(self.paid + effort * worked, self.price)
        if not done.rows:
            return
        before, self.now = self.now, Mix(done.pairs / done.rows, rows, done.kept, shapes)
        # With the first epoch of a shape comes the change itself
        rests = before is not None and before.shapes == shapes
        if self.seen is not None and self.seen.shapes != shapes and rests:
            self.seen = replace(self.seen, pairs=self.now.pairs, shapes=shapes)

    def looked(self, seconds: float) -> None:
        """A look has taken so long."""
        self.anew = self._changed
        self.patience = 1 if self.anew else min(2 * self.patience, PATIENCE)
        # What else the machine does may hold up a look: it counts as at most two of the looks before
        cost = min(seconds, 2 * self.price)
        self.paid -= cost
        self.price, self.since = (self.price + cost) / 2 if cost else self.price, 0.0
        self.seen = self.now

    @property
    def _changed(self) -> bool:
        return self.seen is None or (self.now is not None and self.now.differs(self.seen))

    def wanted(self, effort: float, doubtful: bool) -> bool:
        """Whether the next epoch is looked at."""
        changed = self._changed
        rested = effort * self.since >= (1 if changed else self.patience) * self.price
        if self.paid >= self.price and rested:
            return True
        soon = doubtful or (changed and SOONER * effort * self.since >= self.price)
        return soon and self.paid + CREDIT * self.price >= self.price


class Looking:
    """The looks at all joins that may have several shapes."""

    def __init__(self, effort: float) -> None:
        self._effort = effort
        self._joins: dict[str, Looks] = {}

    def take_in(
        self, name: str, done: JoinWork, rows: Sequence[float], shapes: Shapes, sites: int
    ) -> None:
        """What a join has done in an epoch, with the rows of its inputs, if they are known."""
        looks = self._joins.setdefault(name, Looks(FIRST_COST * sites))
        looks.take_in(done, rows, shapes, self._effort)

    def looked(self, name: str, seconds: float) -> None:
        """A join was looked at, which took all sites so long together."""
        self._joins[name].looked(seconds)

    def anew(self, name: str) -> bool:
        """Whether rows were otherwise at the look before the last: what that has shown counts no more."""
        return self._joins[name].anew

    def wanted(self, doubtful: Iterable[str]) -> frozenset[str]:
        """The joins that the next epoch looks at; what is doubtful at once, if there is credit."""
        some = {*doubtful}
        return frozenset(
            name for name, looks in self._joins.items() if looks.wanted(self._effort, name in some)
        )
