"""The choice of shapes (P2): when what other shapes would do is counted, and what follows from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from anabranch.adapt.actions import Replan
from anabranch.adapt.policies.plans import (
    CONVINCED,
    Better,
    Counted,
    pooled,
    propose_shape,
    settled,
    usual_shape,
)
from anabranch.control.decisions import Decision
from anabranch.control.observed import JoinWork, Observed
from anabranch.control.shapes import JoinShapes, shown
from anabranch.control.transitions import Subject
from anabranch.language.shape import read_shape
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import FIXED_PLANS, PER_SITE, Settings

RECENT = 0.3
"""The weight of the newest epoch in the seconds that a row takes."""
MEASURED = 5
"""Epochs over which the effect of a change is measured."""
FIRST_COST = 0.05
"""Seconds in which a site counts what other shapes would do, as long as none has done so."""
CHANGED = 1.5
"""Pairs of a row, or the share of an input, that are so many times what they were when a join was last
looked at are a reason to look again ..."""
SOONER = 15
"""... so many times as soon: that is for what changes now and then. A first look is as soon."""


SLIGHT = 0.02
"""The share of an input that is as good as none."""


@dataclass
class Measuring:
    """A change of shape whose effect is still measured."""

    name: str
    decision: Decision
    before: float
    """The seconds of a row before it."""
    epochs: int = 0
    paces: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Mix:
    """What the rows of an epoch are like, as far as it says that another shape may be better."""

    pairs: float
    """Pairs that were looked at for a row."""
    rows: tuple[float, ...]
    """Those of each input, if that is known."""

    def differs(self, other: Mix) -> bool:
        """Whether it is clearly another one; inputs with next to nothing do not count."""
        if _apart(self.pairs + 1, other.pairs + 1):
            return True
        mine, theirs = (np.asarray(one.rows) / max(sum(one.rows), 1) for one in (self, other))
        return len(mine) == len(theirs) and any(map(_apart, mine + SLIGHT, theirs + SLIGHT))


NO_MIX = Mix(0.0, ())


def _apart(one: float, other: float) -> bool:
    return max(one, other) > CHANGED * min(one, other)


class PlanChoice:
    """Decides now and then whether partitions of joins should have other shapes."""

    def __init__(self, plan: Plan, settings: Settings, shapes: JoinShapes) -> None:
        self._plan, self._settings, self._shapes = plan, settings, shapes
        self._joins = {} if settings.plans == FIXED_PLANS else shapes.inputs
        self._work = dict.fromkeys(self._joins, 0.0)
        """The seconds that each join has worked since it was last looked at."""
        self._cost: dict[str, float] = {}
        """The seconds that this took."""
        self._mix: dict[str, Mix] = {}
        """What rows are like now, and what they were like at the last look."""
        self._mix_seen: dict[str, Mix] = {}
        self._sites = 1
        self._known: dict[tuple[str, int], Counted] = {}
        self._seen: dict[tuple[str, int], tuple[str, int]] = {}
        """The shape for which each partition, or site, has a better one, and how often in a row it had."""
        self._pace: dict[str, float] = {}
        """The seconds that a row of each join takes, the last epochs counting most."""
        self._open: list[Measuring] = []

    def due(self, ended: bool) -> Collection[str]:
        """The joins that are looked at in the next epoch: so seldom that it costs little."""
        if ended:
            return ()
        # What one sample has shown is looked at again at once
        doubtful = {
            n for (n, _), (shape, times) in self._seen.items() if shape and times < CONVINCED
        }
        return frozenset(name for name in self._joins if name in doubtful or self._worth(name))

    def _worth(self, name: str) -> bool:
        """Whether a join has worked so much since it was looked at that another look is little beside it."""
        cost = self._cost.get(name, FIRST_COST * self._sites)
        allowed = self._work[name] * self._settings.replan_effort
        seen, now = self._mix_seen.get(name), self._mix.get(name)
        changed = seen is None or (now is not None and now.differs(seen))
        return allowed > 0 and (SOONER if changed else 1) * allowed >= cost

    def _observe(self, observed: Observed) -> None:
        """Takes in what joins have done, and what they would do in other shapes."""
        self._sites = observed.sites
        for name in self._joins:
            done = observed.joins.get(name, JoinWork())
            seconds = done.seconds - done.sampling
            self._work[name] += seconds
            if done.rows:
                self._measure(name, seconds / done.rows)
                rates = observed.inputs.get(self._plan.subqueries[name].exchange)
                self._mix[name] = Mix(done.pairs / done.rows, rates.rows if rates else ())
            if name in observed.sampled:
                self._work[name], self._cost[name] = 0.0, done.sampling
                self._mix_seen[name] = self._mix.get(name, NO_MIX)

    def _measure(self, name: str, pace: float) -> None:
        """Takes in the seconds of a row, and tells decisions what has become of it since."""
        known = self._pace.get(name)
        self._pace[name] = pace if known is None else known + RECENT * (pace - known)
        for one in [one for one in self._open if one.name == name]:
            one.epochs += 1
            # With the first epoch comes the change itself
            if one.epochs > 1:
                one.paces.append(pace)
                one.decision.cost = sum(one.paces) / len(one.paces) / max(one.before, 1e-12)
            if len(one.paces) == MEASURED:
                self._open.remove(one)

    def decide(
        self, observed: Observed, maps: Mapping[str, PartitionMap], staying: Collection[Subject]
    ) -> list[Decision]:
        """What follows from the last sample, if there was one."""
        self._observe(observed)
        lines: list[Decision] = []
        for name, counted in observed.sampled.items():
            exchange = self._plan.subqueries[name].exchange
            known = maps[exchange]
            starts = {start: counted[start] for start in known.starts if start in counted}
            chosen: dict[str, tuple[list[int], list[float]]] = {}
            for start, better in self._better(name, starts, known):
                some = chosen.setdefault(str(better.shape), ([], []))
                some[0].append(start)
                some[1].append(better.expected)
            for shape, (some_starts, expected) in chosen.items():
                free = [start for start in some_starts if (exchange, start) not in staying]
                for part, accepted in (
                    (free, True),
                    ([s for s in some_starts if s not in free], False),
                ):
                    ratio = sum(expected) / len(expected)
                    lines += self._lines(observed.epoch, name, known, part, shape, ratio, accepted)
        return lines

    def _better(
        self, name: str, counted: Mapping[int, Counted], known: PartitionMap
    ) -> list[tuple[int, Better]]:
        """The partitions for which samples in a row have shown that another shape is better."""
        inputs = self._joins[name]
        owners = {start: known.site_at(start) for start in counted}
        by_site = self._settings.plans == PER_SITE
        groups = pooled(counted, owners) if by_site else counted
        smooth = {}
        for group, one in groups.items():
            smooth[group] = self._known[name, group] = one.smoothed(self._known.get((name, group)))
        found: list[tuple[int, Better]] = []
        usual = usual_shape(inputs, smooth)
        for group, one in settled(smooth):
            members = [start for start in counted if group == (owners[start] if by_site else start)]
            now = read_shape(shown(self._shapes.shape_at(name, members[0]), inputs), inputs)
            better = propose_shape(inputs, one, now, usual)
            shape = "" if better is None else str(now)
            before, times = self._seen.get((name, group), ("", 0))
            times = times + 1 if before == shape else 1
            self._seen[name, group] = shape, times
            if better is not None and times >= CONVINCED:
                found += [(start, better) for start in members]
        return found

    def _lines(
        self, epoch: int, name: str, known: PartitionMap, starts: list[int], shape: str,
        expected: float, accepted: bool,
    ) -> list[Decision]:  # fmt: skip
        cause = f"it should cost {expected:.2f} times as much"
        kept = self._shapes.kept(name, shape)
        actions: list[Replan] = self._shapes.changes(name, known, starts, kept, cause)
        reason = cause if accepted else "its state is on its way, or put aside"
        lines = [
            Decision(epoch, replace(one, expected=round(expected, 3)), accepted, reason)
            for one in actions
        ]
        if accepted:
            self._open += [Measuring(name, line, self._pace.get(name, 0.0)) for line in lines]
        return lines
