"""The controllers beside the epochs, one for each level: what epochs report becomes views, views decisions.

What is decided is done by the governor, which has the maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from anabranch.adapt.actions import Action, CleanUp, Move, Spill
from anabranch.adapt.arbiter import Arbiter, Limits, Verdict
from anabranch.adapt.collector import Collector
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.policies.disk import propose_active_disk, propose_lazy_disk
from anabranch.adapt.policies.heat import propose_heat
from anabranch.adapt.policies.lost import propose_lost
from anabranch.adapt.policies.relief import propose_relief
from anabranch.adapt.policies.spill import (
    Thresholds,
    propose_due,
    propose_return,
    propose_spill,
)
from anabranch.adapt.tuning import Tuning, by_itself, fixed
from anabranch.adapt.view import Sites, View
from anabranch.control.decisions import CONTROLLER, SITES, Decision
from anabranch.control.hot import HotSlots
from anabranch.control.level import LevelControl, Situation
from anabranch.control.manner import Manner
from anabranch.control.observed import Observed
from anabranch.control.scattering import Scattering
from anabranch.control.spilling import PartitionsAside
from anabranch.language.join import Join
from anabranch.plan.plan import Plan
from anabranch.settings import ACTIVE_DISK, HYBRID, LAZY_DISK, Settings

AGAIN = 2
"""Streams are expected to run as long again, and state without bounds to become this many times as much."""


class Balancing:
    """Decides after each epoch what moves."""

    def __init__(
        self, plan: Plan, settings: Settings, sites: int, manner: Manner, hot: HotSlots,
        scattering: Scattering,
    ) -> None:  # fmt: skip
        self._settings, self._manner = settings, manner
        self._hot, self._scattering = hot, scattering
        self._evens_memory = settings.policy in (LAZY_DISK, ACTIVE_DISK)
        self._thresholds = Thresholds(
            settings.spill_share, settings.spill_idle_epochs, settings.memory_balance,
            settings.output_ratio, settings.spill_first,
        )  # fmt: skip
        self._base = settings.partitions_per_site * sites
        self._seconds = 0.0
        """How long the last epoch took."""
        self._epochs = 0
        """Epochs since the run started."""
        self.arbiter = Arbiter(_limits(settings))
        self.kept: Sites | None = None
        """What sites keep in memory and aside, over all levels, where there is a limit to it."""
        self._kept_by_level: list[View] = []
        exchanges = plan.exchanges.values()
        self._levels = {
            level: LevelControl(
                [one for one in exchanges if one.level == level],
                Collector(sites, settings.self_tuning, manner.doubt),
                Controller(self._policies(), _tuning(settings), self.arbiter),
            )
            for level in range(1, plan.levels + 1)
        }

    def _policies(self) -> tuple[Any, ...]:
        chosen = self._lazy if self._evens_memory else POLICIES[self._settings.policy]
        if not self._settings.split_partitions or self._settings.policy == "none":
            return (chosen,)
        return chosen, self._heat

    def _lazy(self, view: View, tuning: Tuning) -> Iterator[Action]:
        return propose_lazy_disk(view, self._thresholds)

    def _heat(self, view: View, tuning: Tuning) -> Iterator[Action]:
        hot, joins = self._hot, self._scattering
        handled = {*hot.handled, *joins.handled}
        return propose_heat(view, tuning, self._base, hot.combining, handled, joins.scatterable)

    @property
    def _asked_for(self) -> tuple[Any, ...]:
        """The policies of a user who asks: by load, if nothing moves by itself."""
        return self._policies() if self._settings.policy != "none" else (POLICIES["load"],)

    @property
    def active(self) -> bool:
        """Whether anything moves by itself: results for one place, and operators with sites of their own,
        stay where they are."""
        ask = self._settings
        return ask.policy != "none" and not ask.central and ask.strategy != "operator"

    @property
    def collecting(self) -> float:
        """For how many seconds figures are to be collected before the next decision."""
        return max(level.controller.tuning.collect for level in self._levels.values())

    def views(self) -> dict[int, View]:
        """The last view of each level that has one."""
        return {n: level.view for n, level in self._levels.items() if level.view is not None}

    def convinced(self) -> list[int]:
        """The levels in which a gain has been seen for long enough."""
        return [
            n for n, level in self._levels.items() if level.worthwhile >= self._manner.convinced
        ]

    def resize(self, sites: int) -> None:
        """Goes on with another number of sites."""
        self._base, self.kept = self._settings.partitions_per_site * sites, None
        for level in self._levels.values():
            level.resize(sites)

    def observe(self, observed: Observed, sites: int) -> None:
        """Takes in what an epoch has shown; the first one of a run says more about its start."""
        self._epochs, self._seconds = self._epochs + 1, observed.seconds
        self.arbiter.renew()
        if self._epochs <= self._manner.warm_up or observed.sites != sites:
            return  # nor does one that ran on another number of sites than there are from now on
        for number, sample in observed.samples.items():
            self._levels[number].collector.add(sample, observed.maps, observed.epoch)

    def _look(self, level: LevelControl, situation: Situation) -> View:
        least = max(self._settings.least_gain_seconds, self._manner.least_gain * self._seconds)
        return level.look(situation, least)

    def decide(self, epoch: int, situation: Situation, asked: bool = False) -> list[Decision]:
        """What is to be done before the next epoch, and what was refused; all exchanges share the budget.

        If it is `asked` for, nothing waits until enough has been collected or until the gain is worth it.
        """
        if asked:
            self.arbiter.renew()
        lines: list[Decision] = []
        for level in self._levels.values():
            if not level.due and not asked:
                continue
            view = self._look(level, situation)
            worthwhile = self._evens_memory or level.worthwhile >= self._manner.convinced
            if not asked and not worthwhile:
                continue
            began = self._manner.clock()
            verdicts = level.judge(view, self._asked_for if asked else None)
            lines += level.decisions(epoch, verdicts, self._manner.clock() - began, CONTROLLER)
        return lines

    def weigh(self, situation: Situation) -> None:
        """Sees what sites keep, in memory and aside."""
        self.kept, self._kept_by_level = None, []
        limited = np.isfinite(situation.memory.limit).any()
        if not self._levels or not (limited or situation.manifest.spilled):
            return
        views = self._kept_by_level = [
            level.collector.kept(situation.standing(level.exchanges))
            for level in self._levels.values()
        ]
        resident, spilled = (
            np.sum([getattr(view.sites, name) for view in views], axis=0)
            for name in ("resident", "spilled")
        )
        self.kept = replace(views[0].sites, resident=resident, spilled=spilled)

    def relieve(self, epoch: int, aside: bool, stays_aside: PartitionsAside) -> list[Decision]:
        """What is put aside at once because sites keep more than their memory, and what comes back.

        All levels share that memory. `aside` says whether anything is; what stays so is the user's wish, but
        for windows that are to close.
        """
        active = self._settings.policy == ACTIVE_DISK
        if self.kept is None:
            return []
        if not aside and not active and (self.kept.resident <= self.kept.memory).all():
            return []
        resident = self.kept.resident.copy()
        lines: list[Decision] = []
        for level, view in zip(self._levels.values(), self._kept_by_level, strict=True):
            room = view.sites.memory - (resident - view.sites.resident)
            sites = replace(view.sites, memory=np.maximum(room, 0.0))
            stays = _among(view, stays_aside)
            known = replace(view.partitions, awaited=view.partitions.awaited & ~stays)
            pressed = replace(view, partitions=known, sites=sites)
            due: list[Action] = [*propose_due(pressed, epoch, self._thresholds)]
            relief = level.relieve(pressed, self._relief)
            if active and not relief:
                relief = [*propose_active_disk(pressed, self._thresholds, _expected(level, view))]
            free = replace(known, generations=np.where(stays, 0, known.generations))
            returning = propose_return(replace(pressed, partitions=free), epoch, self._thresholds)
            proposals = [*due, *relief, *returning]
            # Of several for a partition the first counts: who is over its memory in every epoch would
            # else put aside again and again what is to close
            proposals = [*{one.subject: one for one in reversed(proposals)}.values()][::-1]
            verdicts = level.agree(proposals, pressed)
            for action in (one.action for one in verdicts if one.accepted):
                if isinstance(action, Spill | CleanUp):
                    resident[action.site] += action.bytes * (
                        1 if isinstance(action, CleanUp) else -1
                    )
                elif isinstance(action, Move):
                    resident[[action.source, action.target]] += (-action.bytes, action.bytes)
            lines += level.decisions(epoch, verdicts, 0.0, CONTROLLER)
        return lines

    def describe_memory(self) -> list[dict[str, Any]]:
        """The bytes that each site keeps, has put aside and may keep; nothing where there is no limit."""
        if self.kept is None:
            return []
        columns = self.kept.resident.tolist(), self.kept.spilled.tolist(), self.kept.memory.tolist()
        return [
            {
                "site": site, "resident": round(resident), "aside": round(aside),
                "limit": None if limit == inf else round(limit),
            }
            for site, (resident, aside, limit) in enumerate(zip(*columns, strict=True))
        ]  # fmt: skip

    def _relief(self, view: View) -> Iterator[Action]:
        """What sites do that keep too much: by cost, where partitions move by themselves."""
        ask = self._settings
        if ask.policy == HYBRID and self.active:
            return propose_relief(view, self._thresholds, self.arbiter.budget, ask.split_partitions)
        return propose_spill(view, self._thresholds)

    def finish(self, seconds: float) -> None:
        """What was decided is done, which took so many seconds beside the epochs."""
        for level in self._levels.values():
            level.finish(seconds)

    def look(self, situation: Situation) -> None:
        """Takes the view of every level without deciding anything."""
        for level in self._levels.values():
            if level.collector.epochs:
                self._look(level, situation)

    def evacuate(self, epoch: int, situation: Situation) -> list[Decision]:
        """What has to leave sites that are gone."""
        lines: list[Decision] = []
        for level in self._levels.values():
            moves = propose_lost(self._look(level, situation), level.controller.tuning)
            verdicts = [Verdict(move, True, move.cause) for move in moves]
            lines += level.decisions(epoch, verdicts, 0.0, SITES)
        return lines

    def describe(self) -> list[dict[str, Any]]:
        """The state of the controllers."""
        return [{"level": number, **level.describe()} for number, level in self._levels.items()]


def _among(view: View, stays_aside: PartitionsAside) -> np.ndarray:
    """Which partitions of the view stay aside."""
    known = view.partitions
    stays = np.zeros(len(known), dtype=bool)
    for number, exchange in enumerate(view.exchanges if stays_aside else ()):
        own = np.flatnonzero(known.exchange == number)
        stays[own] = stays_aside.among(exchange, known.start[own])
    return stays


def _expected(level: LevelControl, view: View) -> float:
    """The bytes of state that a level will have."""
    nodes = [[member.node for member in one.members] for one in level.exchanges]
    grows = np.array([any(isinstance(n, Join) and not n.bounded for n in some) for some in nodes])
    known = view.partitions
    expected: float = (known.bytes * np.where(grows[known.exchange], AGAIN, 1)).sum()
    return expected


def _limits(settings: Settings) -> Limits:
    # Flux's own rules know no return
    rounds = {} if settings.self_tuning else {"settle": 0, "remember": 0}
    return Limits(settings.moved_bytes_per_epoch, **rounds)


def _tuning(settings: Settings) -> Tuning:
    if settings.self_tuning:
        return by_itself(settings.least_collection_seconds, settings.most_collection_seconds)
    return fixed(
        settings.least_collection_seconds, settings.imbalance_threshold, settings.utilisation_limit
    )
