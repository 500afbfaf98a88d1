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

from anabranch.adapt.actions import Action, Condense, Merge, Move, Split, words
from anabranch.adapt.arbiter import Arbiter, Limits, Verdict
from anabranch.adapt.collector import Collector, Standing
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.policies.heat import propose_heat
from anabranch.adapt.policies.holding import MOST_EPOCHS, choose_holds, slow_sites
from anabranch.adapt.policies.lost import propose_lost
from anabranch.adapt.protocols.moving import (
    PAUSED,
    EpochCommitted,
    Install,
    Instruction,
    MoveAccepted,
    MoveProtocol,
    Moving,
    SiteLost,
)
from anabranch.adapt.tuning import Tuning, by_itself, fixed
from anabranch.adapt.view import View
from anabranch.engine.epoch import EpochReport, Orders
from anabranch.engine.history import Decision, rounded
from anabranch.engine.hot import HotSlots
from anabranch.engine.sampling import sample
from anabranch.plan.subquery import IN_GRID, Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import NONE, SHARED, Settings
from anabranch.state.manifest import Manifest, MovingRecord
from anabranch.state.segment import SegmentRef

WARM_UP = 1
"""Epochs of a run whose times are those of workers that start."""
CONVINCED = 2
"""Views in a row that must show a gain: one alone may be an accident."""
LEAST_GAIN = 0.05
"""The share of an epoch's time that must be won for anything to move."""
MOST_DECISIONS = 5_000
"""Decisions that are remembered."""


@dataclass
class _Level:
    homes: list[str]
    collector: Collector
    controller: Controller
    imbalance: float | None = None
    worthwhile: int = 0
    """Views in a row after which a decision was worth while."""
    view: View | None = None
    """The last one."""
    open: list[Decision] = field(default_factory=list)
    """Decisions whose effect has not been measured yet."""


class Adaptation:
    """Decides after each epoch what moves; the maps themselves belong to the checkpoint."""

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
        self._slow: set[tuple[str, int]] = set()
        """Partitions whose rows wait because their site is slow."""
        self._given_up: set[int] = set()
        """Sites that have been slow for longer than rows may wait."""
        self.warnings: list[str] = []
        self._held = np.zeros(sites)
        """Rows that wait for each site."""
        self.stopped: set[tuple[str, int]] = set()
        """Partitions whose rows wait because the user wants them to."""
        self.pins: dict[tuple[str, int], int] = {
            (home, int(start)): site
            for home, pinned in manifest.pins.items()
            for start, site in pinned.items()
        }
        self.protocol = MoveProtocol(
            settings.skew_buffer != NONE,
            _resumed(manifest, maps) if sites == manifest.sites else {},
        )
        self.history: deque[Decision] = deque(maxlen=MOST_DECISIONS)
        self._untold: list[Decision] = []
        """Decisions that no progress report has told yet."""
        self.adapted = {home for home in manifest.adapted if home in maps}
        """The exchanges that are balanced partition by partition from now on."""
        self._base = settings.partitions_per_site * sites
        tuning = _tuning(settings)
        self._levels = {
            level: _Level(
                list(dict.fromkeys(part.home for part in plan.at_level(level))),
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
        joining = self.hot.scatterable if self.sites > 1 else {}
        return propose_heat(view, tuning, self._base, self.hot.combining, self.hot.handled, joining)

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

    def under_way(self) -> list[MovingRecord]:
        """The moves as the manifest has them."""
        return [
            MovingRecord(
                exchange=known.move.exchange, partition=known.move.partition,
                source=known.move.source, target=known.move.target, bytes=known.move.bytes,
                cause=known.move.cause, phase=known.phase, since=known.since,
            )
            for known in self.protocol.moving.values()
        ]  # fmt: skip

    def pinned(self) -> dict[str, dict[str, int]]:
        """The pins as the manifest has them."""
        found: dict[str, dict[str, int]] = {}
        for (home, start), site in self.pins.items():
            found.setdefault(home, {})[str(start)] = site
        return found

    def keep_pins(self, maps: Mapping[str, PartitionMap]) -> dict[str, PartitionMap]:
        """The maps with pinned partitions on their sites, where these exist."""
        held = dict(maps)
        for (home, start), site in self.pins.items():
            if home in held and site < self.sites and self.alive[site]:
                held[home] = held[home].moved({start: site})
        return held

    def stays(self, home: str, start: int) -> bool:
        """Whether a partition is pinned, or on its way somewhere."""
        return (home, start) in self.pins or (home, start) in self.protocol.moving

    def resize(self, sites: int) -> None:
        """Goes on with another number of sites."""
        self.sites, self.alive = sites, np.ones(sites, dtype=bool)
        self._base = self._settings.partitions_per_site * sites
        self.memory = self._room(sites)
        for level in self._levels.values():
            level.collector.resize(sites)

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
        return _installed(self.protocol.handle(SiteLost(site)))

    def views(self) -> dict[int, View]:
        """The last view of each level that has one."""
        return {n: level.view for n, level in self._levels.items() if level.view is not None}

    def full_slots(self, home: str) -> list[int]:
        """The fullest slot of each partition of an exchange that had rows when it was last looked at."""
        for level in self._levels.values():
            view = level.view
            if view is not None and home in view.exchanges:
                known = view.partitions
                own = (known.exchange == view.exchanges.index(home)) & (known.rows_in > 0)
                return [int(slot) for slot in known.peak_at[own]]
        return []

    def waiting(self, maps: Mapping[str, PartitionMap]) -> dict[str, list[tuple[int, int]]]:
        """The slots of each exchange whose rows wait in the next epoch."""
        found: dict[str, list[tuple[int, int]]] = {}
        for home, start in sorted({*self.paused(), *self._slow, *self.stopped}):
            known = maps[home]
            number = known.partition_at(start)
            if known.starts[number] == start:
                end = (*known.starts, known.slots)[number + 1]
                found.setdefault(home, []).append((start, end))
        return found

    def _give_up(
        self, view: View, waited: Mapping[tuple[str, int], int], manifest: Manifest
    ) -> None:
        """Notes the sites that stayed slow for longer than rows may wait, until they are fast again."""
        slow = slow_sites(view)
        late = {name for name, epochs in waited.items() if epochs >= MOST_EPOCHS}
        for home, start in late:
            known = manifest.subqueries[home].map()
            self._given_up.add(known.sites[known.partition_at(start)])
        self._given_up = {site for site in self._given_up if site < len(slow) and slow[site]}

    def forget_slow(self) -> None:
        """Lets go what waits for slow sites."""
        self._slow = set()

    def paused(self) -> list[tuple[str, int]]:
        """The partitions that wait for the end of their move."""
        return [name for name, known in self.protocol.moving.items() if known.phase == PAUSED]

    def fetching(self) -> list[Move]:
        """The moves whose new site should fetch what there is."""
        return [known.move for known in self.protocol.moving.values()]

    def hold(
        self, by_hand: Iterable[str], manifest: Manifest, maps: Mapping[str, PartitionMap]
    ) -> None:
        """Chooses what waits for sites that are slow; when the space is full, all is let go."""
        kind, space = self._settings.skew_buffer, float(self._settings.skew_buffer_bytes)
        self._slow, self.warnings = set(), []
        self._held = _held_by_site(manifest, maps, self.sites)
        if sum(ref.bytes for ref in manifest.held) > space:
            self.warnings = ["what waits exceeds skew_buffer_bytes: all of it goes on"]
            self.stopped.clear()
            return
        if kind == NONE or (self.active and not self.pins and not set(by_hand)):
            return
        waited = {
            (home, hold.first): manifest.epoch - hold.since + 1
            for home, holds in manifest.holds.items()
            for hold in holds
        }
        left = space - sum(ref.bytes for ref in manifest.held)
        for level in self._levels.values():
            if level.view is None or level.worthwhile < CONVINCED:
                continue
            rows = sum(manifest.subqueries[home].rows_received for home in level.homes)
            size = sum(manifest.subqueries[home].bytes_received for home in level.homes)
            each = max(1.0, size / max(1, rows))
            self._give_up(level.view, waited, manifest)
            chosen, count = choose_holds(
                level.view, left / each, waited, shared=kind == SHARED, all_stay=not self.active,
                given_up=self._given_up,
                never=[home for home in level.homes if self._plan.subqueries[home].spread == IN_GRID],
            )  # fmt: skip
            self._slow |= chosen
            left -= count * each

    # -- after an epoch ---------------------------------------------------------------------------

    def _room(self, sites: int) -> np.ndarray:
        limit = self._settings.site_memory_bytes
        return np.full(sites, math.inf if limit is None else limit)

    def observe(self, orders: Orders, report: EpochReport, seconds: float) -> None:
        """Takes in what an epoch reported; the first one of a run says more about its start."""
        self.memory = self._room(self.sites)
        for site, burden in orders.burdens.items():
            if burden.memory is not None and site < self.sites:
                self.memory[site] = burden.memory
        self._epochs, self._seconds = self._epochs + 1, seconds
        self.hot.renew(report, orders.epoch, self._settings.combine_reduction)
        if self._epochs <= WARM_UP or orders.sites != self.sites:
            return  # nor does one that ran on another number of sites than there are from now on
        for number, level in self._levels.items():
            seen = sample(orders, report, number, level.homes)
            if seen is not None:
                level.collector.add(seen, orders.maps, orders.epoch)

    def decide(
        self, epoch: int, maps: Mapping[str, PartitionMap], segments: Mapping[str, Sequence[SegmentRef]],
        by_hand: Iterable[str], asked: bool = False,
    ) -> list[Action]:  # fmt: skip
        """What is to be done before the next epoch; all exchanges share the budget.

        If it is `asked` for, nothing waits until enough has been collected or until the gain is worth it.
        """
        budget = float(self._settings.moved_bytes_per_epoch)
        accepted: list[Action] = []
        for level in self._levels.values():
            collector, tuning = level.collector, level.controller.tuning
            due = collector.epochs > 0 and collector.seconds >= tuning.collect
            if not due and not asked:
                continue
            view = self._view(level, maps, segments, by_hand)
            level.worthwhile = level.worthwhile + 1 if self._worthwhile(view) else 0
            if not asked and level.worthwhile < CONVINCED:
                continue
            level.controller.arbiter.left = budget
            began = time.perf_counter()
            verdicts = level.controller.decide(view, self._asked_for if asked else None)
            done = [verdict.action for verdict in verdicts if verdict.accepted]
            budget -= sum(action.bytes for action in done if isinstance(action, Move))
            self._record(level, epoch, verdicts, time.perf_counter() - began)
            level.controller.finished(0.0)
            accepted += done
        return accepted

    def look(
        self, maps: Mapping[str, PartitionMap], segments: Mapping[str, Sequence[SegmentRef]],
        by_hand: Iterable[str],
    ) -> None:  # fmt: skip
        """Takes the view of every level without deciding anything."""
        for level in self._levels.values():
            if level.collector.epochs:
                view = self._view(level, maps, segments, by_hand)
                level.worthwhile = level.worthwhile + 1 if self._worthwhile(view) else 0

    def evacuate(
        self,
        epoch: int,
        maps: Mapping[str, PartitionMap],
        segments: Mapping[str, Sequence[SegmentRef]],
    ) -> list[Action]:
        """What has to leave sites that are gone."""
        accepted: list[Action] = []
        for level in self._levels.values():
            view = self._view(level, maps, segments, ())
            moves = list(propose_lost(view, level.controller.tuning))
            self._record(level, epoch, [Verdict(move, True, move.cause) for move in moves], 0.0)
            accepted += moves
        return accepted

    def note(self, epoch: int, actions: Iterable[Action]) -> None:
        """Remembers what was done by hand."""
        for action in actions:
            self._keep(Decision(epoch, action, True, action.cause))
            self.adapted.add(action.exchange)

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
        segments: Mapping[str, Sequence[SegmentRef]], by_hand: Iterable[str],
    ) -> View:  # fmt: skip
        own, still = {home: maps[home] for home in level.homes}, set(by_hand)
        stay = {}
        for home, known in own.items():
            pinned = np.isin(known.starts, [at for name, at in self.pins if name == home])
            moving = np.isin(
                known.starts, [at for name, at in self.protocol.moving if name == home]
            )
            waiting = np.isin(known.starts, [at for name, at in self.stopped if name == home])
            stay[home] = pinned | moving | waiting | (home in still)
        view = level.collector.view(
            Standing(
                own,
                {home: self._bytes(home, own[home], segments) for home in own},
                stay,
                self.alive,
                self.memory,
                self._held if len(self._held) == self.sites else np.zeros(self.sites),
            )
        )
        level.view = view
        busy = view.sites.busy[view.sites.alive]
        if len(busy) and busy.mean() > 0:
            level.imbalance = float(busy.max() / busy.mean())
            for decision in level.open:
                decision.after = level.imbalance
            level.open = []
        return view

    def _bytes(
        self, home: str, known: PartitionMap, segments: Mapping[str, Sequence[SegmentRef]]
    ) -> np.ndarray:
        """The bytes of each partition's state, taken as spread evenly over a segment's slots."""
        each = np.zeros(known.slots)
        for name, subquery in self._plan.subqueries.items():
            if subquery.home == home:
                for ref in segments.get(name, ()):
                    density = ref.bytes / max(1, sum(last - first for first, last in ref.live))
                    for first, last in ref.live:
                        each[first:last] += density
        found: np.ndarray = np.add.reduceat(each, np.asarray(known.starts))
        return found

    def _record(
        self, level: _Level, epoch: int, verdicts: Sequence[Verdict], seconds: float
    ) -> None:
        share = seconds / max(1, len(verdicts))
        for verdict in verdicts:
            decision = Decision(
                epoch, verdict.action, verdict.accepted, verdict.reason, share, level.imbalance
            )
            self._keep(decision)
            if verdict.accepted:
                level.open.append(decision)
                self.adapted.add(verdict.action.exchange)

    def describe(self, manifest: Manifest) -> dict[str, Any]:
        """The state of the controllers and what was decided since it was last told."""
        recent, self._untold = self._untold, []
        return {
            "policy": self._settings.policy,
            "waiting": [
                {"exchange": home, "first": hold.first, "end": hold.end, "since": hold.since}
                for home, holds in manifest.holds.items()
                for hold in holds
            ],
            "waitingRows": sum(ref.rows for ref in manifest.held),
            "warnings": self.warnings,
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


def apply(maps: Mapping[str, PartitionMap], actions: Iterable[Action]) -> dict[str, PartitionMap]:
    """The maps after these actions."""
    after = dict(maps)
    targets: dict[str, dict[int, int]] = {}
    for action in actions:
        if isinstance(action, Move):
            targets.setdefault(action.exchange, {})[action.partition] = action.target
    for home, moved in targets.items():
        after[home] = after[home].moved(moved)
    for action in actions:
        if isinstance(action, Split):
            after[action.exchange] = after[action.exchange].split(action.at)
        elif isinstance(action, Merge):
            known = after[action.exchange]
            one, other = (
                known.sites[known.partition_at(at)] for at in (action.partition, action.other)
            )
            if one == other:
                after[action.exchange] = known.merged(action.other)
    return after


def _held_by_site(manifest: Manifest, maps: Mapping[str, PartitionMap], sites: int) -> np.ndarray:
    """The rows that wait for each site, those of a file taken as spread evenly over its slots."""
    found = np.zeros(sites)
    for ref in manifest.held:
        slots = np.concatenate([np.arange(first, end) for first, end in ref.slots])
        owners = maps[ref.home].site_of(slots)
        found += np.bincount(owners, minlength=sites)[:sites] * ref.rows / len(slots)
    return found


def _installed(instructions: Iterable[Instruction]) -> list[Action]:
    return [order.move for order in instructions if isinstance(order, Install)]


def _resumed(manifest: Manifest, maps: Mapping[str, PartitionMap]) -> dict[tuple[str, int], Moving]:
    """The moves that were under way when the manifest was written, as far as sites are as they were."""
    found = {}
    for record in manifest.moving:
        move = Move(
            record.exchange, record.partition, record.cause, source=record.source,
            target=record.target, bytes=record.bytes,
        )  # fmt: skip
        known = maps[record.exchange]
        there = known.sites[known.partition_at(record.partition)] == record.source
        if there and record.target < manifest.sites:
            found[move.subject] = Moving(move, record.phase, record.since)
    return found


def _tuning(settings: Settings) -> Tuning:
    if settings.self_tuning:
        return by_itself(settings.least_collection_seconds, settings.most_collection_seconds)
    return fixed(
        settings.least_collection_seconds, settings.imbalance_threshold, settings.utilisation_limit
    )
