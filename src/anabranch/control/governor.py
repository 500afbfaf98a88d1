"""The governor of a run: it owns the maps, what is pinned, what is under way and what waits.

Whoever runs epochs asks here for the maps of the next one and tells what the last one has shown. Everything
that must outlive a crash goes into the manifest with the next commit. It does no I/O.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from anabranch.adapt.actions import Action, Move, Scatter, applied
from anabranch.adapt.protocols.moving import Moving
from anabranch.adapt.view import View
from anabranch.control.balancing import Balancing
from anabranch.control.decisions import BY_HAND, SITES, Decision
from anabranch.control.moves import fetches, recorded
from anabranch.control.observed import Observed
from anabranch.control.pins import Pins
from anabranch.plan.plan import Plan
from anabranch.routing.allot import allot, allot_whole, busiest
from anabranch.routing.grid import Grid, Scattered
from anabranch.routing.holdback import Holds, Reach, slots_of, within
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect
from anabranch.settings import Settings
from anabranch.state.manifest import HeldRef, Manifest, MovingRecord
from anabranch.state.shelf import Shelf


@dataclass(frozen=True)
class Steered:
    """What steers a run, as its manifest keeps it."""

    by_hand: frozenset[str]
    """The exchanges whose maps the user has taken over."""
    adapted: frozenset[str]
    """Those that are balanced partition by partition."""
    pins: dict[str, dict[int, int]]
    moving: list[MovingRecord]


@dataclass(frozen=True)
class Waiting:
    """What waits before the exchanges in an epoch."""

    holds: Holds
    released: Holds
    held: tuple[HeldRef, ...]
    """The rows that are let go."""


Subject: TypeAlias = tuple[str, int]
"""A partition, told by its exchange and first slot."""


class Governor:
    """The maps of a run's exchanges, and whoever changes them."""

    def __init__(
        self, plan: Plan, settings: Settings, sites: int, manifest: Manifest, far: bool
    ) -> None:
        self._plan, self._settings, self._far = plan, settings, far
        self.sites = sites
        # The manifest of an epoch may have pins that were made while it ran, with other maps
        maps = Pins.recorded(manifest).cut(self._maps(manifest))
        self.grids = {
            name: Grid(tuple(record.grid))
            for name, record in manifest.exchanges.items()
            if record.grid
        }
        self.by_hand = {name for name in maps if manifest.exchanges[name].by_hand}
        """The exchanges whose maps the user has taken over."""
        self._balancing = Balancing(plan, settings, sites, manifest, maps)
        self.maps = self._pinned(maps)
        self.changing = threading.Lock()
        """Held by whoever makes new maps of old ones: the run, or the user from another thread."""

    @property
    def maps(self) -> dict[str, PartitionMap]:
        """The map of each exchange in the next epoch."""
        return self._current

    @maps.setter
    def maps(self, maps: dict[str, PartitionMap]) -> None:
        self._current = maps
        self._balancing.given_up(self._balancing.protocol.reconcile(maps))

    # -- what there is to know --------------------------------------------------------------------

    @property
    def alive(self) -> np.ndarray:
        """Whether each site has a place to run on."""
        return self._balancing.alive

    @property
    def pins(self) -> dict[str, dict[int, int]]:
        """The sites that partitions are pinned to, by exchange and first slot."""
        return self._balancing.pins.by_exchange()

    @property
    def moving(self) -> Mapping[Subject, Moving]:
        """The moves under way."""
        return self._balancing.protocol.moving

    @property
    def stopped(self) -> set[Subject]:
        """The partitions whose rows wait because the user wants them to."""
        return self._balancing.buffer.stopped

    @property
    def scatterable(self) -> Mapping[str, int]:
        """The exchanges whose hot keys can be scattered, with the number of their slots."""
        return self._balancing.hot.scatterable

    @property
    def history(self) -> list[Decision]:
        """Every decision so far, oldest first."""
        return list(self._balancing.history)

    def views(self) -> dict[int, View]:
        """What was last seen of each level."""
        return self._balancing.views()

    def describe(self, manifest: Manifest) -> dict[str, Any]:
        """The state of the controllers and what was decided since it was last told."""
        return self._balancing.describe(manifest)

    # -- what the user's hands do -----------------------------------------------------------------

    def pinned_to(self, subject: Subject) -> int | None:
        return self._balancing.pins.get(subject)

    def pin(self, subject: Subject, site: int) -> None:
        self._balancing.pins[subject] = site

    def unpin(self, subject: Subject) -> bool:
        """Whether it was pinned."""
        return self._balancing.pins.pop(subject, None) is not None

    def require_at_rest(self, subject: Subject) -> None:
        """Raises RunError if a partition is on its way somewhere."""
        self._balancing.protocol.require_at_rest(subject)

    # -- the maps ---------------------------------------------------------------------------------

    def _pinned(self, maps: Mapping[str, PartitionMap]) -> dict[str, PartitionMap]:
        """The maps with pinned partitions where they are pinned to, if these sites live."""
        return self._balancing.pins.keep(maps, self._balancing.alive)

    def record(self) -> Steered:
        """What the manifest keeps of it beside the maps."""
        return Steered(
            by_hand=frozenset(self.by_hand),
            adapted=frozenset(self._balancing.adapted),
            pins=self._balancing.pins.by_exchange(),
            moving=recorded(self._balancing.protocol.moving.values()),
        )

    def _maps(self, manifest: Manifest) -> dict[str, PartitionMap]:
        """The map of each exchange; spread anew if the number of sites is another one now."""
        maps = {name: manifest.exchanges[name].map() for name in self._plan.exchanges}
        if manifest.sites == self.sites:
            return maps
        return {exchange: known.respread(range(self.sites)) for exchange, known in maps.items()}

    def allot(self, manifest: Manifest) -> None:
        """Gives the exchanges sites in proportion to what they have cost, where that is not so yet.

        Levels run one after another, so each has all sites for its exchanges; only where every
        operator is to have sites of its own do all levels share them.
        """
        strategy, sites = self._settings.strategy, self.sites
        if strategy == "query" or sites == 1 or self._settings.central:
            return
        costs: dict[int, dict[str, float]] = {}
        for name, subquery in self._plan.subqueries.items():
            if subquery.exchange not in self.by_hand:
                group = costs.setdefault(0 if strategy == "operator" else subquery.level, {})
                spent = manifest.subqueries[name].seconds
                group[subquery.exchange] = group.get(subquery.exchange, 0.0) + spent
        for group in costs.values():
            if len(group) < 2 or not all(group.values()) or self._balancing.adapted & {*group}:
                continue
            make = allot_whole if strategy == "operator" else allot
            wanted = self._pinned(make(group, self.maps, sites))
            before, after = (busiest(group, maps, sites) for maps in (self.maps, wanted))
            spans = ((self.maps[exchange].span, wanted[exchange].span) for exchange in group)
            # Fewer sites mean fewer frames and files; one more or less is not worth a move
            wasteful = any(now > needed + 1 for now, needed in spans)
            if wasteful or before > after * self._settings.allot_imbalance:
                self.maps = {**self.maps, **wanted}

    def adapt(self, observed: Observed, manifest: Manifest) -> None:
        """Takes in what an epoch has shown, and changes the maps where that helps."""
        self._balancing.observe(observed)
        self._install(self._balancing.committed(observed.epoch))
        known = self.maps, _shelves(manifest), self.by_hand
        if self._balancing.active:
            self._carry_out(self._balancing.decide(observed.epoch, *known), observed.epoch)
        else:
            self._balancing.look(*known)
        self._balancing.hold(self.by_hand, manifest, self.maps)

    def rebalance(self, manifest: Manifest) -> list[Decision]:
        """Evens out what is known now, without waiting for more."""
        made = self._balancing.decide(
            manifest.epoch, self.maps, _shelves(manifest), self.by_hand, asked=True
        )
        self._carry_out(made, manifest.epoch)
        return made

    def _carry_out(self, decisions: Sequence[Decision], epoch: int) -> None:
        self._act([decision.action for decision in decisions if decision.accepted], epoch)

    def follow(self, alive: Sequence[bool], manifest: Manifest) -> None:
        """Takes partitions away from sites that are gone."""
        before = self._balancing.alive
        if list(alive) != before.tolist():
            self._balancing.alive = np.asarray(alive, dtype=bool)
            for site in np.flatnonzero(~self._balancing.alive).tolist():
                self._install(self._balancing.lost(site))
            # What was on a site that is gone is read by another, wherever it was
            actions = self._balancing.evacuate(manifest.epoch, self.maps, _shelves(manifest))
            self._install(actions)
            self.maps = self._pinned(self.maps)
            if (self._balancing.alive & ~before).any():
                self._share(np.flatnonzero(self._balancing.alive).tolist(), manifest.epoch)

    def _share(self, sites: Sequence[int], epoch: int) -> None:
        """Gives sites that have come their share at once; what is measured then says the rest."""
        if self._settings.strategy == "operator":
            return  # every operator stays on sites of its own
        moves = [
            Move(exchange, start, "a site has come", source=was, target=site)
            for exchange, known in self.maps.items()
            if exchange not in self.by_hand
            for start, was, site in zip(
                known.starts, known.sites, known.respread(sites).sites, strict=True
            )
            if was != site and not self._balancing.stays(exchange, start)
        ]
        self.by_request(moves, epoch, SITES)

    def by_request(self, actions: Sequence[Action], epoch: int, origin: str = BY_HAND) -> None:
        """Does what is asked for as it is: nobody judges it."""
        self._act(actions, epoch)
        self._balancing.note(epoch, actions, origin)

    def give(self, maps: Mapping[str, PartitionMap], cause: str, epoch: int) -> None:
        """Gives exchanges other maps at once, and remembers what moves by it."""
        moves = []
        for exchange, after in maps.items():
            before = self.maps[exchange].site_of(np.arange(after.slots))
            for start, site in zip(after.starts, after.sites, strict=True):
                first, end = after.range_at(start)
                elsewhere = before[first:end][before[first:end] != site]
                if len(elsewhere):
                    source = int(elsewhere[0])
                    moves.append(Move(exchange, start, cause, source=source, target=site))
        self._balancing.note(epoch, moves, BY_HAND)
        self.maps = {**self.maps, **maps}

    def resize(self, sites: int, epoch: int) -> None:
        """Goes on with another number of sites."""
        for site in range(sites, self.sites):
            self._install(self._balancing.lost(site))
        maps = {exchange: known.respread(range(sites)) for exchange, known in self.maps.items()}
        self.sites = sites
        self._balancing.resize(sites)
        self.give(self._pinned(maps), f"{sites} sites from now on", epoch)
        # Spread anew, exchanges may be given sites in proportion again
        self._balancing.adapted -= {*maps}

    def _act(self, actions: Sequence[Action], epoch: int) -> None:
        self._install(self._balancing.begin(epoch, actions, self._far))

    def _install(self, actions: Sequence[Action]) -> None:
        if actions:
            self.maps = applied(self.maps, actions)
        for action in actions:
            if isinstance(action, Scatter):
                with_cells = self._balancing.hot.scatter(action, self.maps[action.exchange])
                self.maps = {**self.maps, action.exchange: with_cells}

    # -- what an epoch is told --------------------------------------------------------------------

    def condensed(self, epoch: int) -> dict[str, tuple[tuple[int, int], ...]]:
        """The slots whose rows senders sub-aggregate in an epoch."""
        return self._balancing.hot.condensed(epoch)

    def scattering(self, holds: Holds) -> dict[str, tuple[Scattered, ...]]:
        """What is scattered in the next epoch."""
        return self._balancing.hot.take_next(holds)

    def holding(self, epoch: int, ended: bool, manifest: Manifest) -> Waiting:
        """What waits in an epoch, and what is let go; at the end of all streams nothing waits."""
        wanted = {} if ended else self._balancing.waiting(self.maps)
        holds, released = {}, {}
        for exchange in {*wanted, *manifest.holds}:
            reach = manifest.reach.get(exchange, Reach())
            kept, gone = reach.renewed(wanted.get(exchange, []), epoch)
            if kept:
                holds[exchange] = kept
            if gone:
                released[exchange] = gone
        held = tuple(
            ref
            for ref in manifest.held
            if intersect(sorted(ref.slots), sorted(slots_of(released.get(ref.exchange, ()))))
        )
        if not ended:
            self._validate(holds)
        return Waiting(holds, released, held)

    def _validate(self, holds: Holds) -> None:
        """Raises RunError unless moves are as the maps have them, and what is paused does wait."""
        protocol, waiting = self._balancing.protocol, set()
        paused = protocol.paused
        for exchange in {exchange for exchange, _ in paused} & holds.keys():
            known = self.maps[exchange]
            waits = within(np.arange(known.slots), slots_of(holds[exchange]))
            waiting |= {
                (name, start)
                for name, start in paused
                if name == exchange and waits[slice(*known.range_at(start))].all()
            }
        protocol.validate(self.maps, waiting)

    def pending(self, manifest: Manifest) -> bool:
        """Whether something is to go on although no rows come: rows to be let go, moves under way.

        Nothing waits for slow sites any more then: without rows none is slow.
        """
        with self.changing:
            self._balancing.buffer.forget_slow()
            waiting = self.holding(manifest.epoch + 1, False, manifest)
            return bool(waiting.released or self._balancing.protocol.moving)

    def fetches(self, manifest: Manifest) -> dict[int, tuple[str, ...]]:
        """The files that new sites of partitions should have at hand."""
        return fetches(self._balancing.protocol.moving.values(), self._plan, manifest, self.maps)


def _shelves(manifest: Manifest) -> dict[str, Shelf]:
    return {name: record.shelf for name, record in manifest.subqueries.items()}
