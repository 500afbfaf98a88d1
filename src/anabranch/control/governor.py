"""The governor of a run: it owns the maps, what is pinned, what is under way and what waits.

Whoever runs epochs asks here for the maps of the next one and tells what the last one has shown: the engine
between the epochs of a run, the simulator in simulated time. Everything that must outlive a crash goes into
the manifest with the next commit. It does no I/O, and decides nothing by the clock.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.policies.combine import propose_combine
from anabranch.adapt.protocols.moving import Moving
from anabranch.adapt.view import View
from anabranch.control.balancing import Balancing
from anabranch.control.decisions import SITES, Decision, DecisionHistory
from anabranch.control.holdings import Holdings, Steered
from anabranch.control.level import Situation
from anabranch.control.manner import Manner
from anabranch.control.memory import Memory
from anabranch.control.moves import fetches
from anabranch.control.observed import Observed
from anabranch.control.planning import PlanChoice
from anabranch.control.shares import choose_returns, choose_shares
from anabranch.control.skew_buffer import SkewBuffer
from anabranch.control.spilling import apart
from anabranch.control.transitions import Order, Subject
from anabranch.control.waiting import Waiting, next_waiting, waiting_of
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.settings import Settings
from anabranch.state.manifest import Manifest


class Governor:
    """The maps of a run's exchanges, and whoever changes them."""

    def __init__(
        self, plan: Plan, settings: Settings, sites: int, manifest: Manifest, manner: Manner
    ) -> None:
        self._plan, self._settings, self._manner = plan, settings, manner
        self.sites = sites
        self._history = DecisionHistory()
        self.holdings = Holdings(plan, settings, sites, manifest, manner, self._history)
        """The maps and all that decides where partitions are; the user's hands reach here."""
        self._buffer = SkewBuffer(plan, settings)
        hot, scattering = self.holdings.hot, self.holdings.scattering
        self._balancing = Balancing(plan, settings, sites, manner, hot, scattering)
        self.memory = Memory(plan, settings, sites, self.holdings.spilling)
        self.planning = PlanChoice(plan, settings, self.holdings.shapes, self._balancing.arbiter)
        self._deciding_since = 0.0
        self.changing = threading.Lock()
        """Held by whoever makes new maps of old ones: the run, or the user from another thread."""

    # -- what there is to know --------------------------------------------------------------------

    @property
    def maps(self) -> dict[str, PartitionMap]:
        """The map of each exchange in the next epoch."""
        return self.holdings.maps

    @property
    def pins(self) -> dict[str, dict[int, int]]:
        """The sites that partitions are pinned to, by exchange and first slot."""
        return self.holdings.pins.by_exchange()

    @property
    def moving(self) -> Mapping[Subject, Moving]:
        """The moves under way."""
        return self.holdings.transitions.moves.moving

    @property
    def stopped(self) -> set[Subject]:
        """The partitions whose rows wait because the user wants them to."""
        return self._buffer.stopped

    @property
    def history(self) -> list[Decision]:
        """Every decision so far, oldest first."""
        return self._history.all()

    @property
    def collecting(self) -> float:
        """For how many seconds figures are to be collected before the next decision."""
        return self._balancing.collecting

    def views(self) -> dict[int, View]:
        """What was last seen of each level."""
        return self._balancing.views()

    def record(self) -> Steered:
        """What the manifest keeps of it beside the maps."""
        return self.holdings.record()

    def untold(self) -> list[Decision]:
        """What was decided since it was last asked for."""
        return self._history.tell()

    def last_shapes(self) -> dict[str, str]:
        """By join the last change of its shape, in words."""
        return self._history.last_shapes()

    def describe(self, manifest: Manifest, recent: Sequence[Decision]) -> dict[str, Any]:
        """The state of the controllers, and recent decisions."""
        return {
            "policy": self._settings.policy,
            **self._buffer.describe(manifest),
            "memory": self._balancing.describe_memory(),
            **self.holdings.describe(manifest),
            "active": self._balancing.active,
            "sites": self.sites,
            "decisions": [decision.plain() for decision in recent],
            "moved": sum(line.accepted and isinstance(line.action, Move) for line in recent),
            "levels": self._balancing.describe(),
        }

    # -- after an epoch ---------------------------------------------------------------------------

    def combine(self, observed: Observed) -> None:
        """Has senders sub-aggregate where an epoch has shown that it pays; before its commit, to be kept."""
        reduction = self._settings.combine_reduction
        actions = propose_combine(self.holdings.combining, observed.intakes, reduction)
        self._apply(actions, observed.epoch)

    def _apply(self, proposals: Iterable[Action], epoch: int) -> None:
        """Does at once what is accepted of proposals that need no view, and remembers what became of each."""
        verdicts = self._balancing.arbiter.judge(proposals)
        self._history.keep(*(Decision(epoch, v.action, v.accepted, v.reason) for v in verdicts))
        self.holdings.apply([one.action for one in verdicts if one.accepted], epoch)

    def adapt(self, observed: Observed, manifest: Manifest) -> list[Order]:
        """Takes in what an epoch has shown, and changes the maps where that helps; what is to be done."""
        epoch = observed.epoch
        self.holdings.regridded()
        self.memory.observe(observed)
        self.holdings.spilling.aside.follow(manifest)
        self.holdings.hot.renew(observed.condensed, epoch, self._settings.combine_reduction)
        self._balancing.observe(observed, self.sites)
        orders = self.holdings.obey(self.holdings.transitions.committed(epoch), epoch)
        situation = self._situation(manifest, self.holdings.by_hand)
        if self._balancing.active:
            orders += self._carry_out(self._balancing.decide(epoch, situation), epoch)
            self._apply(self.holdings.resettle(observed, manifest, self._settings), epoch)
        else:
            self._balancing.look(situation)
        orders += self._relieve(manifest)
        busy = self._busy(manifest) if observed.sampled else ()
        orders += self._carry_out(self.planning.decide(observed, self.maps, busy, manifest), epoch)
        self._finish(observed.ended)
        self._hold(manifest)
        return orders

    def _relieve(self, manifest: Manifest) -> list[Order]:
        """Puts state aside where sites keep too much, after what moves has been decided."""
        if self._manner.in_turn:
            return []  # those that have disks of their own decide by themselves
        self._balancing.weigh(self._situation(manifest, self.holdings.by_hand))
        if self.holdings.spilling.cleaning_all:
            return []
        stays_aside = apart(self.holdings.spilling.by_hand, self.maps)
        lines = self._balancing.relieve(manifest.epoch, bool(manifest.spilled), stays_aside)
        return self._carry_out(lines, manifest.epoch)

    def _situation(self, manifest: Manifest, by_hand: Collection[str]) -> Situation:
        return Situation(
            self.maps,
            {*self.holdings.pins, *self.moving, *self.stopped, *self.holdings.even_cells},
            apart(self.holdings.spilling.slots(manifest), self.maps),
            by_hand,
            self.memory,
            manifest,
            {*self.moving, *self.stopped},
            self.holdings.alive,
            self._buffer.rows(self.sites),
        )

    def _busy(self, manifest: Manifest) -> set[Subject]:
        """The partitions that are on their way or stopped, or of which something is put aside."""
        aside = apart(self.holdings.spilling.slots(manifest), self.maps)
        return {*self.moving, *self.stopped, *aside}

    def _hold(self, manifest: Manifest) -> None:
        """Chooses what waits for sites that are slow: only what cannot move."""
        active, views = self._balancing.active, self._balancing.views()
        stay = not active or self.holdings.pins or self.holdings.by_hand
        urgent = [n for n in self._balancing.convinced() if stay and n in views]
        self._buffer.choose(views, urgent, manifest, self.maps, self.sites, all_stay=not active)

    def _carry_out(self, decisions: Sequence[Decision], epoch: int) -> list[Order]:
        """Remembers decisions, and sets those going that were accepted."""
        accepted = [line.action for line in decisions if line.accepted]
        self._history.keep(*decisions)
        self.holdings.adapted |= {action.exchange for action in accepted if action.remaps}
        return self.holdings.act(accepted, epoch)

    def _finish(self, now: float) -> None:
        """Ends the round of the controllers, unless moves take a time of their own and are under way."""
        if self._manner.in_turn and self.moving:
            self._deciding_since = now
        else:
            self._balancing.finish(0.0)

    def turn_came(self, subject: Subject, now: int) -> list[Order]:
        """A move that was queued is to begin now."""
        return self.holdings.obey(self.holdings.transitions.turn_came(subject, now), now)

    def arrived(self, subjects: Iterable[Subject], now: float) -> list[Order]:
        """The new sites of these partitions have their state; with the last one the round is over."""
        orders = self.holdings.obey(self.holdings.transitions.arrived(subjects), 0)
        if orders and not self.moving:
            self._balancing.finish(now - self._deciding_since)
        return orders

    def allot(self, manifest: Manifest) -> None:
        """Gives the exchanges sites in proportion to what they have cost, where that is not so yet."""
        shares = choose_shares(self._plan, self._settings, self.sites, self.holdings, manifest)
        self._apply(shares, manifest.epoch)

    def rebalance(self, manifest: Manifest) -> list[Decision]:
        """Evens out what is known now, without waiting for more."""
        situation = self._situation(manifest, self.holdings.by_hand)
        decisions = self._balancing.decide(manifest.epoch, situation, asked=True)
        self._carry_out(decisions, manifest.epoch)
        self._balancing.finish(0.0)
        return decisions

    # -- sites that come and go -------------------------------------------------------------------

    def follow(self, alive: Sequence[bool], manifest: Manifest) -> None:
        """Takes partitions away from sites that are gone."""
        before = self.holdings.alive
        if list(alive) == before.tolist():
            return
        self.holdings.alive = np.asarray(alive, dtype=bool)
        for site in np.flatnonzero(~self.holdings.alive).tolist():
            self.holdings.obey(self.holdings.transitions.lost(site), manifest.epoch)
        # What was on a site that is gone is read by another, wherever it was
        gone = self._balancing.evacuate(manifest.epoch, self._situation(manifest, ()))
        self.holdings.adapted |= {line.action.exchange for line in gone}
        self._history.keep(*gone)
        self.holdings.apply([line.action for line in gone], manifest.epoch)
        self.holdings.maps = self.holdings.pinned(self.maps)
        if (self.holdings.alive & ~before).any() and self._settings.strategy != "operator":
            # Their share at once: what is measured then says the rest
            stay = apart(self.holdings.spilling.slots(manifest), self.maps)
            back = np.flatnonzero(self.holdings.alive).tolist()
            moves = choose_returns(self.holdings, back, stay)
            self.holdings.request(moves, manifest.epoch, SITES)

    def resize(self, sites: int, epoch: int) -> None:
        """Goes on with another number of sites."""
        for site in range(sites, self.sites):
            self.holdings.obey(self.holdings.transitions.lost(site), epoch)
        maps = {exchange: known.respread(range(sites)) for exchange, known in self.maps.items()}
        self.sites, self.holdings.alive = sites, np.ones(sites, dtype=bool)
        self.memory.resize(sites)
        self._buffer.resize()
        self._balancing.resize(sites)
        self.holdings.give(self.holdings.pinned(maps), f"{sites} sites from now on", epoch)
        # Spread anew, exchanges may be given sites in proportion again
        self.holdings.adapted -= {*maps}

    # -- what an epoch is told --------------------------------------------------------------------

    def fetches(self, manifest: Manifest) -> dict[int, tuple[str, ...]]:
        """The files that new sites of partitions should have at hand."""
        return fetches(self.holdings.transitions.fetching, self._plan, manifest, self.maps)

    def begin(self, manifest: Manifest) -> None:
        """Chooses what of the state that is put aside comes back with the next epoch."""
        kept = self._balancing.kept
        resident = np.zeros(self.sites) if kept is None else kept.resident
        self.holdings.spilling.begin(manifest, self.maps, self.memory.limit, resident)

    def holding(self, manifest: Manifest, ended: bool = False, flush: bool = False) -> Waiting:
        """What waits in the next epoch, and what is let go: at the end of all streams everything, with a
        flush all but what waits for state that is put aside."""
        transitions = self.holdings.transitions
        wanted: Mapping[str, Sequence[tuple[int, int]]] = {}
        if not ended:
            slow = {} if flush else self._buffer.waiting(self.maps, transitions.paused)
            wanted = self.holdings.spilling.waits(slow, manifest)
        waiting = next_waiting(wanted, manifest.epoch + 1, manifest)
        if not ended and not flush:
            # Moves are as the maps have them, and what is paused does wait
            paused = waiting_of(transitions.moves.paused, waiting.holds, self.maps)
            transitions.moves.validate(self.maps, paused)
        return waiting

    def pending(self, manifest: Manifest) -> bool:
        """Whether something is to go on although no rows come, as none is slow then: what waits, moves."""
        with self.changing:
            self._buffer.forget_slow()
            released = self.holding(manifest).released
            return bool(released or self.moving or self.holdings.spilling)
