"""What a governor holds: the maps of all exchanges, what is pinned, what is under way, what is hot.

Maps change here alone, and moves under way that do not fit new maps are given up with the change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anabranch.adapt.actions import Action, Move
from anabranch.adapt.policies.cooling import propose_cooling
from anabranch.adapt.policies.grids import propose_grids
from anabranch.adapt.policies.shares import Owners
from anabranch.adapt.protocols.moving import MoveProtocol
from anabranch.control.change import Change
from anabranch.control.decisions import BY_HAND, Decision, DecisionHistory
from anabranch.control.grids import Grids
from anabranch.control.hot import HotSlots
from anabranch.control.manner import Manner
from anabranch.control.moves import recorded, resumed
from anabranch.control.observed import Observed
from anabranch.control.pins import Pins
from anabranch.control.scattering import Scattering
from anabranch.control.shapes import JoinShapes
from anabranch.control.spilling import Spilling
from anabranch.control.transitions import Order, Subject, Transitions
from anabranch.plan.plan import Plan
from anabranch.routing.grid import Resettling
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.shaped import Shapes
from anabranch.settings import NONE, Settings
from anabranch.state.manifest import Manifest, MovingRecord


@dataclass(frozen=True)
class Steered:
    """What steers a run, as its manifest keeps it."""

    by_hand: frozenset[str]
    """The exchanges whose maps the user has taken over."""
    adapted: frozenset[str]
    """Those that are balanced partition by partition."""
    combining: frozenset[str]
    """The subqueries for which senders sub-aggregate."""
    pins: dict[str, dict[int, int]]
    moving: list[MovingRecord]
    shapes: dict[str, Shapes] = field(default_factory=dict)
    """The shapes that joins are to have."""
    by_track: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """Their slots that are to come to them on a parallel track."""


class Holdings:
    """The maps of a run, and all that decides where partitions are."""

    def __init__(
        self, plan: Plan, settings: Settings, sites: int, manifest: Manifest, manner: Manner,
        history: DecisionHistory,
    ) -> None:  # fmt: skip
        self._history = history
        self.pins = Pins.recorded(manifest)
        # The manifest of an epoch may have pins that were made while it ran, with other maps
        maps = self.pins.cut(_maps(plan, sites, manifest))
        self.alive = np.ones(sites, dtype=bool)
        """Whether each site has a place to run on."""
        self.by_hand = {name for name in maps if manifest.exchanges[name].by_hand}
        """The exchanges whose maps the user has taken over."""
        self.adapted = {name for name in maps if manifest.exchanges[name].adapted}
        """The exchanges that are balanced partition by partition from now on."""
        self.combining = {name for name, one in manifest.subqueries.items() if one.combine}
        """The subqueries for which senders sub-aggregate all rows."""
        self.hot = HotSlots(plan)
        self.grids = Grids(plan, manifest)
        self.scattering = Scattering(plan, maps, manifest, self.pins)
        self.spilling = Spilling(plan, manifest, self.scattering)
        """What of the state is to be put aside or brought together."""
        self.shapes = JoinShapes(plan, settings, manifest, history)
        """In which shape joins of several inputs are to work."""
        moves = MoveProtocol(
            settings.skew_buffer != NONE,
            resumed(manifest, maps) if sites == manifest.sites else {},
            fetch_first=manner.fetch_first,
            never_paused={one.name for one in plan.exchanges.values() if one.in_step},
            in_turn=manner.in_turn,
        )
        self.transitions = Transitions(moves, manner.far, history)
        self.maps = self.pinned(maps)

    @property
    def maps(self) -> dict[str, PartitionMap]:
        """The map of each exchange in the next epoch."""
        return self._maps

    @maps.setter
    def maps(self, maps: dict[str, PartitionMap]) -> None:
        self._maps = maps
        self.transitions.reconcile(maps)

    def pinned(self, maps: Mapping[str, PartitionMap]) -> dict[str, PartitionMap]:
        """The maps with pinned partitions where they are pinned to, if these sites live."""
        return self.pins.keep(maps, self.alive)

    def pinned_owners(self, owners: Owners) -> Owners:
        """The same of sites by partition, before there are maps with them."""
        return self.pins.keep_owners(owners, self.maps, self.alive)

    def stays(self, subject: Subject) -> bool:
        """Whether a partition is pinned, or on its way somewhere."""
        return subject in self.pins or subject in self.transitions.moves.moving

    def apply(self, actions: Iterable[Action], epoch: int) -> None:
        """Does what is done at once."""
        some = list(actions)
        change = Change(
            self.maps, self.hot, self.scattering, self.grids, self.combining, self.spilling,
            self.shapes, epoch,
        )  # fmt: skip
        for action in some:
            action.apply(change)
        if some:
            self.maps = change.maps()

    def obey(self, orders: list[Order], epoch: int) -> list[Order]:
        """Does what the protocols say; returns it for whoever has to do the rest of it."""
        self.apply(self.transitions.obey(orders), epoch)
        return orders

    def act(self, actions: Iterable[Action], epoch: int) -> list[Order]:
        """Sets actions going: what is done at once, and what takes some epochs."""
        return self.obey(self.transitions.begin(actions, epoch), epoch)

    def request(self, actions: Sequence[Action], epoch: int, origin: str = BY_HAND) -> None:
        """Does what is asked for as it is: nobody judges it."""
        self.act(actions, epoch)
        self._note(actions, epoch, origin)

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
        self._note(moves, epoch, BY_HAND)
        self.maps = {**self.maps, **maps}

    def _note(self, actions: Iterable[Action], epoch: int, origin: str) -> None:
        """Remembers what was decided elsewhere: by hand, or because sites come and go."""
        for action in actions:
            self._history.keep(Decision(epoch, action, True, action.cause, origin))
            if origin == BY_HAND and action.remaps:
                self.adapted.add(action.exchange)

    @property
    def even_cells(self) -> set[Subject]:
        """Cells of hot keys that are on the sites they were made for."""
        return self.scattering.even(self.maps, int(self.alive.sum()))

    def resettling(self, apart: Collection[str]) -> Resettling:
        """What goes to other slots with the next epoch; nothing yet of exchanges of which slots are apart."""
        # Cells that are pinned are those of the grid as it is
        fixed = {exchange for exchange, _ in self.pins} | self.by_hand | {*apart}
        sites = np.flatnonzero(self.alive).tolist()
        return Resettling(*self.scattering.take_next(apart), self.grids.take_next(fixed, sites))

    def resettle(self, observed: Observed, manifest: Manifest, settings: Settings) -> list[Action]:
        """What an epoch has shown of hot keys and grids: which have cooled, and which are no longer right."""
        self.scattering.observe(observed)
        self.grids.observe(observed)
        alive = int(self.alive.sum())
        found: list[Action] = []
        if settings.split_partitions:
            found += propose_cooling(self.scattering.loads(observed, alive), alive)
        stay = {exchange for exchange, _ in self.pins} | self.by_hand
        return [*found, *propose_grids(self.grids.loads(manifest, stay), alive)]

    def regridded(self) -> None:
        """Takes over the maps of grids that the last epoch has laid anew."""
        laid = self.grids.committed()
        if not laid:
            return
        sites = range(len(self.alive))
        for exchange, start in list(self.pins):
            if exchange in laid and start >= laid[exchange].slots:
                del self.pins[exchange, start]
        # There may be other sites since
        fitting = {
            exchange: known if max(known.sites) < len(sites) else known.respread(sites)
            for exchange, known in laid.items()
        }
        self.by_hand -= {*laid}
        self.maps = self.pinned({**self.maps, **fitting})

    def record(self) -> Steered:
        """What the manifest keeps of it beside the maps."""
        return Steered(
            by_hand=frozenset(self.by_hand),
            adapted=frozenset(self.adapted),
            combining=frozenset(self.combining),
            pins=self.pins.by_exchange(),
            moving=recorded(self.transitions.moves.moving.values()),
            shapes=dict(self.shapes.wanted),
            by_track={name: list(slots) for name, slots in self.shapes.by_track.items()},
        )

    def describe(self, manifest: Manifest) -> dict[str, Any]:
        """What is under way, put aside and shaped, for people."""
        return {
            "moving": [
                {"action": known.move.words(), "phase": known.phase, "since": known.since}
                for known in self.transitions.moves.moving.values()
            ],
            "aside": self.spilling.describe(manifest, self.maps),
            "shapes": self.shapes.describe(manifest, self.maps),
            "tracks": self.shapes.describe_tracks(manifest, self.maps),
        }


def _maps(plan: Plan, sites: int, manifest: Manifest) -> dict[str, PartitionMap]:
    """The map of each exchange; spread anew if the number of sites is another one now."""
    maps = {name: manifest.exchanges[name].map() for name in plan.exchanges}
    if manifest.sites == sites:
        return maps
    return {exchange: known.respread(range(sites)) for exchange, known in maps.items()}
