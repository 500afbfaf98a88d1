"""What actions are applied to: the maps of a run, its hot slots, and where senders sub-aggregate."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from anabranch.control.grids import Grids
from anabranch.control.hot import HotSlots
from anabranch.control.scattering import Scattering
from anabranch.control.shapes import JoinShapes
from anabranch.control.spilling import Slots, Spilling
from anabranch.routing.partition_map import PartitionMap


class Change:
    """Some actions under way: maps are made anew once for many moves."""

    def __init__(
        self, maps: Mapping[str, PartitionMap], hot: HotSlots, scattering: Scattering,
        grids: Grids, combining: set[str], spilling: Spilling, shapes: JoinShapes, epoch: int,
    ) -> None:  # fmt: skip
        self._maps, self._hot, self._combining = dict(maps), hot, combining
        self._scattering, self._grids = scattering, grids
        self._spilling, self._shapes = spilling, shapes
        self._epoch = epoch
        self._targets: dict[str, dict[int, int]] = {}
        """Where partitions move that the maps do not have there yet."""
        self._state: dict[str, tuple[Callable[[str, Slots], None], list[tuple[int, int]]]] = {}
        """What is done with the state of an exchange, and the slots: of many at once it takes no longer."""

    def maps(self) -> dict[str, PartitionMap]:
        """The maps after all that was applied."""
        for exchange in list(self._targets):
            self._maps[exchange] = self._moved(exchange)
        for exchange in list(self._state):
            self._settle(exchange)
        return self._maps

    def _settle(self, exchange: str) -> None:
        """Tells what is to be done with state so far."""
        does, slots = self._state.pop(exchange)
        does(exchange, sorted(slots))

    def _note(
        self, does: Callable[[str, Slots], None], exchange: str, slots: tuple[int, int]
    ) -> None:
        if exchange in self._state and self._state[exchange][0] != does:
            self._settle(exchange)
        self._state.setdefault(exchange, (does, []))[1].append(slots)

    def _moved(self, exchange: str) -> PartitionMap:
        """The map of an exchange with all moves so far."""
        return self._maps[exchange].moved(self._targets.pop(exchange, {}))

    def move(self, exchange: str, partition: int, site: int) -> None:
        self._targets.setdefault(exchange, {})[partition] = site

    def place(self, exchange: str, sites: tuple[int, ...]) -> None:
        self._maps[exchange] = self._moved(exchange).on(sites)

    def split(self, exchange: str, at: int) -> None:
        self._maps[exchange] = self._moved(exchange).split(at)

    def merge(self, exchange: str, partition: int, other: int) -> None:
        """One of them may have moved away since the merge was decided on: then both stay."""
        after = self._maps[exchange] = self._moved(exchange)
        one, two = (after.sites[after.partition_at(at)] for at in (partition, other))
        if one == two:
            self._maps[exchange] = after.merged(other)

    def combine(self, subquery: str, on: bool) -> None:
        (self._combining.add if on else self._combining.discard)(subquery)

    def condense(self, exchange: str, slot: int) -> None:
        self._hot.condense(exchange, slot, self._epoch)

    def scatter(self, exchange: str, slot: int, sites: tuple[int, ...]) -> None:
        known = self._moved(exchange)
        self._maps[exchange] = self._scattering.scatter(exchange, slot, sites, known)

    def unscatter(self, exchange: str, slot: int) -> None:
        self._scattering.unscatter(exchange, slot)

    def regrid(self, exchange: str, bands: tuple[int, ...]) -> None:
        self._grids.regrid(exchange, bands)

    def spill(self, exchange: str, partition: int) -> None:
        self._note(self._spilling.spill, exchange, self._maps[exchange].range_at(partition))

    def clean_up(self, exchange: str, partition: int) -> None:
        self._note(self._spilling.clean_up, exchange, self._maps[exchange].range_at(partition))

    def replan(
        self, exchange: str, subquery: str, partitions: tuple[int, ...], shape: str, protocol: str
    ) -> None:
        known = self._maps[exchange]
        slots = sorted(known.range_at(partition) for partition in partitions)
        self._shapes.replan(subquery, slots, shape, protocol)
