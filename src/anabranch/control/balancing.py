"""The controllers beside the epochs, one for each level: what epochs report becomes views, views decisions.

What is decided is done by the governor, which has the maps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.arbiter import Arbiter, Limits, Verdict
from anabranch.adapt.collector import Collector
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.policies.heat import propose_heat
from anabranch.adapt.policies.lost import propose_lost
from anabranch.adapt.tuning import Tuning, by_itself, fixed
from anabranch.adapt.view import View
from anabranch.control.decisions import CONTROLLER, SITES, Decision
from anabranch.control.hot import HotSlots
from anabranch.control.level import LevelControl, Situation
from anabranch.control.manner import Manner
from anabranch.control.observed import Observed
from anabranch.plan.plan import Plan
from anabranch.settings import Settings


class Balancing:
    """Decides after each epoch what moves."""

    def __init__(
        self, plan: Plan, settings: Settings, sites: int, manner: Manner, hot: HotSlots
    ) -> None:
        self._settings, self._manner, self._hot = settings, manner, hot
        self._base = settings.partitions_per_site * sites
        self._seconds = 0.0
        """How long the last epoch took."""
        self._epochs = 0
        """Epochs since the run started."""
        exchanges = plan.exchanges.values()
        self._levels = {
            level: LevelControl(
                [one for one in exchanges if one.level == level],
                Collector(sites, settings.self_tuning, manner.doubt),
                Controller(self._policies(), _tuning(settings), Arbiter(_limits(settings))),
            )
            for level in range(1, plan.levels + 1)
        }

    def _policies(self) -> tuple[Any, ...]:
        chosen = POLICIES[self._settings.policy]
        if not self._settings.split_partitions or self._settings.policy == "none":
            return (chosen,)
        return chosen, self._heat

    def _heat(self, view: View, tuning: Tuning) -> Iterator[Action]:
        hot = self._hot
        return propose_heat(view, tuning, self._base, hot.combining, hot.handled, hot.scatterable)

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
        self._base = self._settings.partitions_per_site * sites
        for level in self._levels.values():
            level.resize(sites)

    def observe(self, observed: Observed, sites: int) -> None:
        """Takes in what an epoch has shown; the first one of a run says more about its start."""
        self._epochs, self._seconds = self._epochs + 1, observed.seconds
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
        budget = float(self._settings.moved_bytes_per_epoch)
        lines: list[Decision] = []
        for level in self._levels.values():
            if not level.due and not asked:
                continue
            view = self._look(level, situation)
            if not asked and level.worthwhile < self._manner.convinced:
                continue
            began = self._manner.clock()
            verdicts = level.judge(view, budget, self._asked_for if asked else None)
            lines += level.decisions(epoch, verdicts, self._manner.clock() - began, CONTROLLER)
            moves = [one.action for one in verdicts if one.accepted]
            budget -= sum(move.bytes for move in moves if isinstance(move, Move))
        return lines

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
