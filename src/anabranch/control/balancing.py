"""The controller beside the epochs: what they report becomes views, decisions become new maps.

One controller for each level of the plan: its exchanges run on the sites at the same time, so they are
balanced together. What is asked for by hand (moves, pins, other numbers of sites) goes the same way.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anabranch.adapt.actions import Action, Condense, Move, words
from anabranch.adapt.arbiter import Arbiter, Limits, Verdict
from anabranch.adapt.collector import Collector, Standing
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.policies.heat import propose_heat
from anabranch.adapt.policies.lost import propose_lost
from anabranch.adapt.protocols.moving import (
    Abandon,
    EpochCommitted,
    Install,
    Instruction,
    MoveAccepted,
    MoveProtocol,
    SiteLost,
)
from anabranch.adapt.tuning import Tuning, by_itself, fixed
from anabranch.adapt.view import View
from anabranch.control.decisions import BY_HAND, CONTROLLER, SITES, Decision, rounded
from anabranch.control.hot import HotSlots
from anabranch.control.moves import resumed
from anabranch.control.observed import Observed, state_bytes
from anabranch.control.pins import Pins
from anabranch.control.skew_buffer import SkewBuffer
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import NONE, Settings
from anabranch.state.manifest import Manifest
from anabranch.state.shelf import Shelf

WARM_UP = 1
"""Epochs of a run whose times are those of workers that start."""
CONVINCED = 2
"""Views in a row that must show a gain: one alone may be an accident."""
LEAST_GAIN = 0.03
"""The share of an epoch's time that must be won for anything to move."""
MOST_DECISIONS = 5_000
"""Decisions that are remembered."""


@dataclass
class _Level:
    exchanges: list[str]
    collector: Collector
    controller: Controller
    imbalance: float | None = None
    worthwhile: int = 0
    """Views in a row after which a decision was worth while."""
    view: View | None = None
    """The last one."""
    open: list[Decision] = field(default_factory=list)
    """Decisions whose effect has not been measured yet."""


class Balancing:
    """Decides after each epoch what moves; the maps themselves belong to the governor."""

    def __init__(
        self, plan: Plan, settings: Settings, sites: int, manifest: Manifest,
        maps: Mapping[str, PartitionMap],
    ) -> None:  # fmt: skip
        self._plan, self._settings = plan, settings
        self.sites = sites
        self.alive = np.ones(sites, dtype=bool)
        self.memory = self._room(sites)
        self.hot = HotSlots(plan, maps, manifest)
        self._seconds = 0.0
        """How long the last epoch took."""
        self._epochs = 0
        """Epochs since the run started."""
        self.buffer = SkewBuffer(plan, settings)
        self.pins = Pins.recorded(manifest)
        self.protocol = MoveProtocol(
            settings.skew_buffer != NONE,
            resumed(manifest, maps) if sites == manifest.sites else {},
            never_paused={one.name for one in plan.exchanges.values() if one.in_step},
        )
        self.history: deque[Decision] = deque(maxlen=MOST_DECISIONS)
        self._untold: list[Decision] = []
        """Decisions that no progress report has told yet."""
        self.adapted = {name for name in maps if manifest.exchanges[name].adapted}
        """The exchanges that are balanced partition by partition from now on."""
        self._base = settings.partitions_per_site * sites
        tuning = _tuning(settings)
        self._levels = {
            level: _Level(
                [one.name for one in plan.exchanges.values() if one.level == level],
                Collector(sites, smooth=settings.self_tuning),
                Controller(self._policies(), tuning, Arbiter(self._limits())),
            )
            for level in range(1, plan.levels + 1)
        }

    def _policies(self) -> tuple[Any, ...]:
        chosen = POLICIES[self._settings.policy]
        if not self._settings.split_partitions or self._settings.policy == "none":
            return (chosen,)
        return chosen, self._heat

    def _heat(self, view: View, tuning: Tuning) -> Iterator[Action]:
        hot = self.hot
        return propose_heat(view, tuning, self._base, hot.combining, hot.handled, hot.scatterable)

    @property
    def _asked_for(self) -> tuple[Any, ...]:
        """The policies of a user who asks: by load, if nothing moves by itself."""
        return self._policies() if self._settings.policy != "none" else (POLICIES["load"],)

    def _limits(self) -> Limits:
        # Flux's own rules know no return
        rounds = {} if self._settings.self_tuning else {"settle": 0, "remember": 0}
        return Limits(self._settings.moved_bytes_per_epoch, **rounds)

    @property
    def active(self) -> bool:
        """Whether anything moves by itself: results for one place, and operators with sites of their own,
        stay where they are."""
        ask = self._settings
        return ask.policy != "none" and not ask.central and ask.strategy != "operator"

    def stays(self, exchange: str, start: int) -> bool:
        """Whether a partition is pinned, or on its way somewhere."""
        return (exchange, start) in self.pins or (exchange, start) in self.protocol.moving

    def resize(self, sites: int) -> None:
        """Goes on with another number of sites."""
        self.sites, self.alive = sites, np.ones(sites, dtype=bool)
        self._base = self._settings.partitions_per_site * sites
        self.memory = self._room(sites)
        self.buffer.resize()
        for level in self._levels.values():
            level.collector.resize(sites)
            level.view, level.imbalance, level.worthwhile, level.open = None, None, 0, []

    # -- moves and holds --------------------------------------------------------------------------

    def begin(self, epoch: int, actions: Iterable[Action], far: bool) -> list[Action]:
        """Sets accepted actions going; returns what is done at once. Far moves take some epochs."""
        now: list[Action] = []
        for action in actions:
            if isinstance(action, Condense):
                self.hot.condense(action, epoch)
            elif isinstance(action, Move):
                now += _installed(self.protocol.handle(MoveAccepted(action, epoch, far)))
            else:
                now.append(action)
        return now

    def committed(self, epoch: int) -> list[Action]:
        """Takes moves under way a step further; returns those that are done now."""
        return _installed(self.protocol.handle(EpochCommitted(epoch)))

    def lost(self, site: int) -> list[Action]:
        """Ends the moves from and to a site that is gone."""
        orders = self.protocol.handle(SiteLost(site))
        self.given_up(orders)
        return _installed(orders)

    def views(self) -> dict[int, View]:
        """The last view of each level that has one."""
        return {n: level.view for n, level in self._levels.items() if level.view is not None}

    def waiting(self, maps: Mapping[str, PartitionMap]) -> dict[str, list[tuple[int, int]]]:
        """The slots of each exchange whose rows wait in the next epoch."""
        return self.buffer.waiting(maps, self.protocol.paused)

    def hold(
        self, by_hand: Iterable[str], manifest: Manifest, maps: Mapping[str, PartitionMap]
    ) -> None:
        """Chooses what waits for sites that are slow: only what cannot move."""
        stay = not self.active or self.pins or set(by_hand)
        views = self.views()
        urgent = [n for n in views if stay and self._levels[n].worthwhile >= CONVINCED]
        self.buffer.choose(views, urgent, manifest, maps, self.sites, all_stay=not self.active)

    # -- after an epoch ---------------------------------------------------------------------------

    def _room(self, sites: int) -> np.ndarray:
        limit = self._settings.site_memory_bytes
        return np.full(sites, math.inf if limit is None else limit)

    def observe(self, observed: Observed) -> None:
        """Takes in what an epoch has shown; the first one of a run says more about its start."""
        self.memory = self._room(self.sites)
        for site, room in observed.memory.items():
            if site < self.sites:
                self.memory[site] = room
        self._epochs, self._seconds = self._epochs + 1, observed.seconds
        self.hot.renew(observed.condensed, observed.epoch, self._settings.combine_reduction)
        if self._epochs <= WARM_UP or observed.sites != self.sites:
            return  # nor does one that ran on another number of sites than there are from now on
        for number, sample in observed.samples.items():
            self._levels[number].collector.add(sample, observed.maps, observed.epoch)

    def decide(
        self, epoch: int, maps: Mapping[str, PartitionMap], shelves: Mapping[str, Shelf],
        by_hand: Iterable[str], asked: bool = False,
    ) -> list[Decision]:  # fmt: skip
        """What is to be done before the next epoch, and what was refused; all exchanges share the budget.

        If it is `asked` for, nothing waits until enough has been collected or until the gain is worth it.
        """
        budget = float(self._settings.moved_bytes_per_epoch)
        made: list[Decision] = []
        for level in self._levels.values():
            collector, tuning = level.collector, level.controller.tuning
            due = collector.epochs > 0 and collector.seconds >= tuning.collect
            if not due and not asked:
                continue
            view = self._view(level, maps, shelves, by_hand)
            if not asked and level.worthwhile < CONVINCED:
                continue
            level.controller.arbiter.budget = budget
            began = time.perf_counter()
            verdicts = level.controller.decide(view, self._asked_for if asked else None)
            made += self._record(level, epoch, verdicts, time.perf_counter() - began)
            budget -= sum(
                verdict.action.bytes
                for verdict in verdicts
                if verdict.accepted and isinstance(verdict.action, Move)
            )
            # Moves take no time of their own here: they are done with the epochs that follow
            level.controller.finished(0.0)
        return made

    def look(
        self, maps: Mapping[str, PartitionMap], shelves: Mapping[str, Shelf],
        by_hand: Iterable[str],
    ) -> None:  # fmt: skip
        """Takes the view of every level without deciding anything."""
        for level in self._levels.values():
            if level.collector.epochs:
                self._view(level, maps, shelves, by_hand)

    def evacuate(
        self,
        epoch: int,
        maps: Mapping[str, PartitionMap],
        shelves: Mapping[str, Shelf],
    ) -> list[Action]:
        """What has to leave sites that are gone."""
        accepted: list[Action] = []
        for level in self._levels.values():
            view = self._view(level, maps, shelves, ())
            moves = list(propose_lost(view, level.controller.tuning))
            verdicts = [Verdict(move, True, move.cause) for move in moves]
            self._record(level, epoch, verdicts, 0.0, SITES)
            accepted += moves
        return accepted

    def note(self, epoch: int, actions: Iterable[Action], origin: str) -> None:
        """Remembers what was decided elsewhere: by hand, or because sites come and go."""
        for action in actions:
            self._keep(Decision(epoch, action, True, action.cause, origin))
            if origin == BY_HAND:
                self.adapted.add(action.exchange)

    def given_up(self, orders: Iterable[Instruction]) -> None:
        """Remembers which moves under way are not carried out after all."""
        for order in orders:
            if isinstance(order, Abandon):
                for decision in reversed(self.history):
                    if decision.action == order.move:
                        decision.given_up = order.reason
                        break

    def _keep(self, decision: Decision) -> None:
        self.history.append(decision)
        self._untold.append(decision)

    def _worthwhile(self, view: View) -> bool:
        busy = view.sites.busy[view.sites.alive]
        stranded = ~view.sites.alive[view.partitions.site]
        over = (view.sites.resident > view.sites.memory).any()
        if not len(busy) or stranded.any() or over:
            return True
        gain = float(busy.max() - busy.mean())
        return gain > max(self._settings.least_gain_seconds, LEAST_GAIN * self._seconds)

    def _view(
        self, level: _Level, maps: Mapping[str, PartitionMap],
        shelves: Mapping[str, Shelf], by_hand: Iterable[str],
    ) -> View:  # fmt: skip
        own, still = {exchange: maps[exchange] for exchange in level.exchanges}, set(by_hand)
        fresh = level.collector.epochs > 0
        stay = {}
        for exchange, known in own.items():
            pinned = np.isin(known.starts, [at for name, at in self.pins if name == exchange])
            moving = np.isin(
                known.starts, [at for name, at in self.protocol.moving if name == exchange]
            )
            waiting = np.isin(
                known.starts, [at for name, at in self.buffer.stopped if name == exchange]
            )
            stay[exchange] = pinned | moving | waiting | (exchange in still)
        view = level.collector.view(
            Standing(
                own,
                {
                    exchange: state_bytes(self._plan.exchanges[exchange], own[exchange], shelves)
                    for exchange in own
                },
                stay,
                self.alive,
                self.memory,
                self.buffer.rows(self.sites),
            )
        )
        level.view = view
        if not fresh:
            return view  # nothing has been measured since the last one
        level.worthwhile = level.worthwhile + 1 if self._worthwhile(view) else 0
        busy = view.sites.busy[view.sites.alive]
        if len(busy) and busy.mean() > 0:
            level.imbalance = float(busy.max() / busy.mean())
            for decision in level.open:
                decision.after = level.imbalance
            level.open = []
        return view

    def _record(
        self, level: _Level, epoch: int, verdicts: Sequence[Verdict], seconds: float,
        origin: str = CONTROLLER,
    ) -> list[Decision]:  # fmt: skip
        share = seconds / max(1, len(verdicts))
        made = []
        for verdict in verdicts:
            decision = Decision(
                epoch, verdict.action, verdict.accepted, verdict.reason, origin, share,
                level.imbalance,
            )  # fmt: skip
            self._keep(decision)
            made.append(decision)
            if verdict.accepted:
                level.open.append(decision)
                self.adapted.add(verdict.action.exchange)
        return made

    def describe(self, manifest: Manifest) -> dict[str, Any]:
        """The state of the controllers and what was decided since it was last told."""
        recent, self._untold = self._untold, []
        return {
            "policy": self._settings.policy,
            **self.buffer.describe(manifest),
            "moving": [
                {"action": words(known.move), "phase": known.phase, "since": known.since}
                for known in self.protocol.moving.values()
            ],
            "active": self.active,
            "sites": self.sites,
            "decisions": [decision.plain() for decision in recent],
            "moved": sum(d.accepted and isinstance(d.action, Move) for d in recent),
            "levels": [
                {
                    "level": number,
                    "round": level.controller.round,
                    "imbalance": rounded(level.imbalance),
                    "threshold": round(level.controller.tuning.imbalance, 3),
                    "collectSeconds": round(level.controller.tuning.collect, 3),
                }
                for number, level in self._levels.items()
            ],
        }


def _installed(instructions: Iterable[Instruction]) -> list[Action]:
    return [order.move for order in instructions if isinstance(order, Install)]


def _tuning(settings: Settings) -> Tuning:
    if settings.self_tuning:
        return by_itself(settings.least_collection_seconds, settings.most_collection_seconds)
    return fixed(
        settings.least_collection_seconds, settings.imbalance_threshold, settings.utilisation_limit
    )
