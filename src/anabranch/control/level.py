"""One level of a plan under control: its exchanges run on the sites at the same time and share a view."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anabranch.adapt.actions import Action
from anabranch.adapt.arbiter import Verdict
from anabranch.adapt.collector import Collector, Standing
from anabranch.adapt.controller import Controller
from anabranch.adapt.view import View
from anabranch.control.decisions import Decision, rounded
from anabranch.control.memory import Memory
from anabranch.control.observed import state_bytes
from anabranch.control.spilling import PartitionsAside
from anabranch.control.transitions import Subject
from anabranch.plan.exchange import Exchange
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.manifest import Manifest
from anabranch.state.shelf import Shelf


@dataclass(frozen=True)
class Situation:
    """How things stand when a view is taken: what epochs do not report."""

    maps: Mapping[str, PartitionMap]
    staying: Collection[Subject]
    """Partitions that are pinned, on their way, or stopped, or that are cells of a hot key."""
    aside: PartitionsAside
    """Those of which something is put aside."""
    by_hand: Collection[str]
    """Exchanges of which all partitions stay."""
    memory: Memory
    manifest: Manifest
    under_way: Collection[Subject]
    """Partitions that are on their way or stopped: nothing of them is put aside."""
    alive: np.ndarray
    held: np.ndarray
    """Rows that wait for each site."""

    @property
    def shelves(self) -> dict[str, Shelf]:
        """The state of each subquery."""
        return {name: record.shelf for name, record in self.manifest.subqueries.items()}

    def standing(self, exchanges: Iterable[Exchange]) -> Standing:
        """The same for some exchanges, partition by partition."""
        some = {one.name: one for one in exchanges}
        maps = {name: self.maps[name] for name in some}
        size = {name: state_bytes(one, maps[name], self.shelves) for name, one in some.items()}
        never_aside = self.memory.never_aside(self.manifest, self.under_way)
        staying: set[Subject | str] = {*self.staying, *self.by_hand}
        return Standing(
            maps,
            size,
            {name: self.memory.aside(name, maps[name], size[name]) for name in some},
            {name: ~self._among(name, never_aside) for name in some},
            {
                name: self.memory.closing(one, maps[name], self.manifest)
                for name, one in some.items()
            },
            {name: self.memory.since(name, maps[name]) for name in some},
            {name: self.memory.generations(name, maps[name]) for name in some},
            self.memory.awaited,
            {
                name: self._among(name, staying) | self.aside.among(name, known.starts)
                for name, known in maps.items()
            },
            self.alive,
            self.memory.limit,
            self.held,
        )

    def _among(self, exchange: str, some: Collection[Subject | str]) -> np.ndarray:
        """Whether each partition of an exchange is one of these, or the exchange as a whole is."""
        starts = [one[1] for one in some if not isinstance(one, str) and one[0] == exchange]
        found: np.ndarray = np.isin(self.maps[exchange].starts, starts) | (exchange in some)
        return found


class LevelControl:
    """The collector and the controller of a level, and what they last found."""

    def __init__(
        self, exchanges: Sequence[Exchange], collector: Collector, controller: Controller
    ) -> None:
        self.exchanges = exchanges
        self.collector, self.controller = collector, controller
        self.view: View | None = None
        """The last one."""
        self.worthwhile = 0
        """Views in a row after which a decision was worth while."""
        self._imbalance: float | None = None
        self._open: list[Decision] = []
        """Decisions whose effect has not been measured yet."""
        self._deciding = False
        """Whether a round of the controller has not been finished."""

    @property
    def due(self) -> bool:
        """Whether figures have been collected for long enough."""
        enough = self.collector.seconds >= self.controller.tuning.collect
        return self.collector.epochs > 0 and enough

    def resize(self, sites: int) -> None:
        """Goes on with other sites, of which nothing is known."""
        self.collector.resize(sites)
        self.view, self._imbalance, self.worthwhile, self._open = None, None, 0, []

    def look(self, situation: Situation, least_gain: float) -> View:
        """Takes a view; a gain is what the busiest site has beyond the mean, in seconds an epoch."""
        fresh = self.collector.epochs > 0
        view = self.view = self.collector.view(situation.standing(self.exchanges))
        if not fresh:
            return view  # nothing has been measured since the last one
        self.worthwhile = self.worthwhile + 1 if _gains(view, least_gain) else 0
        busy = view.sites.busy[view.sites.alive]
        if len(busy) and busy.mean() > 0:
            self._imbalance = float(busy.max() / busy.mean())
            for decision in self._open:
                decision.after = self._imbalance
            self._open = []
        return view

    def judge(self, view: View, policies: Any = None) -> list[Verdict]:
        """What the controller makes of a view."""
        self._deciding = True
        return self.controller.decide(view, policies)

    def relieve(self, view: View, propose: Callable[[View], Iterable[Action]]) -> list[Action]:
        """What is proposed for a view when all that the arbiter would refuse to move stays.

        So something else is done with it: a site that is short of memory cannot wait.
        """
        while True:
            found = [*propose(view)]
            verdicts = self._verdicts(found, view, binding=False)
            refused = {one.action.subject for one in verdicts if not one.accepted}
            if not refused:
                return found
            known = view.partitions
            stays = known.fixed | named(view, refused)
            if (stays == known.fixed).all():
                return [one for one in found if one.subject not in refused]
            view = replace(view, partitions=replace(known, fixed=stays))

    def agree(self, proposals: Iterable[Action], view: View) -> list[Verdict]:
        """What the arbiter makes of what relieves a site."""
        return self._verdicts(proposals, view, binding=True)

    def _verdicts(self, some: Iterable[Action], view: View, binding: bool) -> list[Verdict]:
        return self.controller.arbiter.judge(some, view, self.controller.round, binding)

    def finish(self, seconds: float) -> None:
        """What was decided is done, which took so many seconds of its own."""
        if self._deciding:
            self._deciding = False
            self.controller.finished(seconds)

    def decisions(
        self, epoch: int, verdicts: Sequence[Verdict], seconds: float, origin: str
    ) -> list[Decision]:
        """The verdicts as lines of the history; their effect is seen with the next view."""
        share = seconds / max(1, len(verdicts))
        lines = [
            Decision(epoch, one.action, one.accepted, one.reason, origin, share, self._imbalance)
            for one in verdicts
        ]
        self._open += [line for line in lines if line.accepted]
        return lines

    def describe(self) -> dict[str, Any]:
        tuning = self.controller.tuning
        return {
            "round": self.controller.round,
            "imbalance": rounded(self._imbalance),
            "threshold": round(tuning.imbalance, 3),
            "collectSeconds": round(tuning.collect, 3),
        }


def named(view: View, subjects: Collection[Subject]) -> np.ndarray:
    """Which partitions of a view are among these."""
    known = view.partitions
    names = ((view.exchanges[n], s) for n, s in zip(known.exchange, known.start, strict=True))
    return np.fromiter((one in subjects for one in names), dtype=bool, count=len(known))


def _gains(view: View, least: float) -> bool:
    """Whether a decision may win more than this, or something must move in any case."""
    busy = view.sites.busy[view.sites.alive]
    stranded = ~view.sites.alive[view.partitions.site]
    over = (view.sites.resident > view.sites.memory).any()
    if not len(busy) or stranded.any() or over:
        return True
    return float(busy.max() - busy.mean()) > least
