"""The choice of shapes (P2): when what other shapes would do is counted, and what follows from it."""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from anabranch.adapt.actions import Replan
from anabranch.adapt.arbiter import Arbiter
from anabranch.adapt.policies.plans import (
    CONVINCED,
    WORTH,
    Better,
    Counted,
    pooled,
    propose_common,
    usual_shape,
    well_counted,
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

    def __init__(
        self, plan: Plan, settings: Settings, shapes: JoinShapes, arbiter: Arbiter
    ) -> None:
        self._plan, self._settings, self._shapes = plan, settings, shapes
        self._arbiter = arbiter
        self._joins = {} if settings.plans == FIXED_PLANS else shapes.inputs
        self._looking = Looking(settings.replan_effort)
        self._known: dict[tuple[str, int], Counted] = {}
        self._seen: dict[tuple[str, int], tuple[str, int]] = {}
        """The shape for which each partition, or site, has a better one, and how often in a row it had."""
        self._doubtful: set[str] = set()
        """The joins of which the last sample has shown what another one has yet to confirm."""
        self._pace: dict[str, float] = {}
        """The seconds that a row of each join takes, the last epochs counting most."""
        self._open: list[Measuring] = []

    def due(self, ended: bool) -> Collection[str]:
        """The joins that are looked at in the next epoch: so seldom that it costs little."""
        if ended:
            return ()
        # What one sample has shown is looked at again at once
        return self._looking.wanted(self._doubtful)

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
        self, observed: Observed, maps: Mapping[str, PartitionMap], busy: Collection[Subject],
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
                ratio = sum(expected) / len(expected)
                # One action for those that can change, and one to say of the others why they cannot
                free = [start for start in some_starts if (exchange, start) not in busy]
                bound = [start for start in some_starts if (exchange, start) in busy]
                for part in (free, bound):
                    proposals = self._proposals(manifest, name, known, part, shape, ratio)
                    lines += self._decided(name, proposals, busy, manifest.epoch)
        return lines

    def _better(
        self, name: str, counted: Mapping[int, Counted], known: PartitionMap
    ) -> list[tuple[int, Better]]:
        """The partitions for which samples in a row have shown that another shape is better."""
        inputs = self._joins[name]
        by_site = self._settings.plans == PER_SITE
        # All partitions of a site have its shape, those of which nothing was counted too
        owners = {s: known.site_at(s) if by_site else s for s in known.starts}
        groups = pooled(counted, owners) if by_site else counted
        smooth = {}
        for group, one in groups.items():
            before = None if self._looking.anew(name) else self._known.get((name, group))
            smooth[group] = self._known[name, group] = one.smoothed(before)
        self._forget(name, {*owners.values()})
        self._doubtful.discard(name)
        found: list[tuple[int, Better]] = []
        usual = usual_shape(inputs, smooth)
        of_group: dict[int, list[int]] = {}
        for start, owner in owners.items():
            of_group.setdefault(owner, []).append(start)
        for group, one in well_counted(smooth):
            members = of_group[group]
            now = {start: self._shapes.shapes_in(name, known.range_at(start)) for start in members}
            have = Counter(itertools.chain(*now.values()))
            shapes = {text: read_shape(shown(text, inputs), inputs) for text in have}
            going = propose_common(inputs, one, {shapes[text]: have[text] for text in have}, usual)
            doubted = " ".join(sorted(map(str, going)))
            last, times = self._seen.get((name, group), ("", 0))
            times = times + 1 if last == doubted else 1
            self._seen[name, group] = doubted, times
            if going and times < CONVINCED:
                self._doubtful.add(name)
            elif going:
                for start in members:
                    better = [going[shapes[text]] for text in now[start] if shapes[text] in going]
                    found += [(start, one) for one in better[:1]]
        return found

    def _forget(self, name: str, there: Collection[int]) -> None:
        """Drops what was seen of partitions, or sites, that are not there any more."""
        for known in (self._known, self._seen):
            for key in [(n, group) for n, group in known if n == name and group not in there]:
                known.pop(key)

    def _proposals(
        self, manifest: Manifest, name: str, known: PartitionMap, starts: list[int], shape: str,
        expected: float,
    ) -> list[Replan]:  # fmt: skip
        common = "its site has this shape: " if expected * WORTH > 1 else ""
        cause = f"{common}it should cost {expected:.2f} times as much"
        kept = self._shapes.kept(name, shape)
        actions: list[Replan] = self._shapes.changes(
            name, known, starts, kept, cause, manifest.subqueries[name],
            self.counted(name, known, starts),
        )  # fmt: skip
        return [replace(one, expected=round(expected, 3)) for one in actions]

    def _decided(
        self, name: str, proposals: Sequence[Replan], busy: Collection[Subject], epoch: int
    ) -> list[Decision]:
        """What the arbiter makes of them; the effect of those accepted is measured."""
        verdicts = self._arbiter.judge(proposals, busy=busy)
        lines = [Decision(epoch, one.action, one.accepted, one.reason) for one in verdicts]
        pace = self._pace.get(name, 0.0)
        self._open += [Measuring(name, line, pace) for line in lines if line.accepted]
        return lines

    def counted(self, name: str, known: PartitionMap, starts: Sequence[int]) -> Counted | None:
        """What was counted of these partitions, or of their sites."""
        by_site = self._settings.plans == PER_SITE
        groups = {known.site_at(start) if by_site else start for start in starts}
        found = [self._known[name, group] for group in groups if (name, group) in self._known]
        return functools.reduce(Counted.plus, found) if found else None
