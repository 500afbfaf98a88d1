"""The choice of shapes (P2): when what other shapes would do is counted, and what follows from it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
from anabranch.control.looking import Looking
from anabranch.control.observed import JoinWork, Observed
from anabranch.control.shapes import JoinShapes, shown
from anabranch.control.transitions import Subject
from anabranch.language.shape import read_shape
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import FIXED_PLANS, PER_SITE, Settings
from anabranch.state.manifest import Manifest

RECENT = 0.3
"""The weight of the newest epoch in the seconds that a row takes."""
MEASURED = 5
"""Epochs over which the effect of a change is measured."""


@dataclass
class Measuring:
    """A change of shape whose effect is still measured."""

    name: str
    decision: Decision
    before: float
    """The seconds of a row before it."""
    epochs: int = 0
    paces: list[float] = field(default_factory=list)


class PlanChoice:
    """Decides now and then whether partitions of joins should have other shapes."""

    def __init__(self, plan: Plan, settings: Settings, shapes: JoinShapes) -> None:
        self._plan, self._settings, self._shapes = plan, settings, shapes
        self._joins = {} if settings.plans == FIXED_PLANS else shapes.inputs
        self._looking = Looking(settings.replan_effort)
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
        return self._looking.wanted(doubtful)

    def _observe(self, observed: Observed) -> None:
        """Takes in what joins have done, and what they would do in other shapes."""
        self._shapes.observe(observed)
        for name in self._joins:
            done = observed.joins.get(name, JoinWork())
            rates = observed.inputs.get(self._plan.subqueries[name].exchange)
            rows, shapes = rates.rows if rates else (), self._shapes.wanted[name]
            self._looking.take_in(name, done, rows, shapes, observed.sites)
            if done.rows:
                self._measure(name, (done.seconds - done.sampling) / done.rows)
            if name in observed.sampled:
                self._looking.looked(name, done.sampling)

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
        self, observed: Observed, maps: Mapping[str, PartitionMap], staying: Collection[Subject],
        manifest: Manifest,
    ) -> list[Decision]:  # fmt: skip
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
                    lines += self._lines(manifest, name, known, part, shape, ratio, accepted)
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
            before = None if self._looking.anew(name) else self._known.get((name, group))
            smooth[group] = self._known[name, group] = one.smoothed(before)
        found: list[tuple[int, Better]] = []
        usual = usual_shape(inputs, smooth)
        for group, one in settled(smooth):
            members = [start for start in counted if group == (owners[start] if by_site else start)]
            now = read_shape(shown(self._shapes.shape_at(name, members[0]), inputs), inputs)
            better = propose_shape(inputs, one, now, usual)
            shape = "" if better is None else str(now)
            last, times = self._seen.get((name, group), ("", 0))
            times = times + 1 if last == shape else 1
            self._seen[name, group] = shape, times
            if better is not None and times >= CONVINCED:
                found += [(start, better) for start in members]
        return found

    def _lines(
        self, manifest: Manifest, name: str, known: PartitionMap, starts: list[int], shape: str,
        expected: float, accepted: bool,
    ) -> list[Decision]:  # fmt: skip
        cause = f"it should cost {expected:.2f} times as much"
        kept = self._shapes.kept(name, shape)
        actions: list[Replan] = self._shapes.changes(
            name, known, starts, kept, cause, manifest.subqueries[name],
            self.counted(name, known, starts),
        )  # fmt: skip
        reason = cause if accepted else "its state is on its way, or put aside"
        lines = [
            Decision(manifest.epoch, replace(one, expected=round(expected, 3)), accepted, reason)
            for one in actions
        ]
        if accepted:
            self._open += [Measuring(name, line, self._pace.get(name, 0.0)) for line in lines]
        return lines

    def counted(self, name: str, known: PartitionMap, starts: Sequence[int]) -> Counted | None:
        """What was counted of these partitions, or of their sites."""
        by_site = self._settings.plans == PER_SITE
        groups = {known.site_at(start) if by_site else start for start in starts}
        found = [self._known[name, group] for group in groups if (name, group) in self._known]
        return functools.reduce(Counted.plus, found) if found else None
