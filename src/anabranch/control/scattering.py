"""Hot keys of joins: which slots are scattered over cells, how, and which come back.

The owner of a slot takes its state to the cells at the end of an epoch, and from the next one on rows are
sent there; those who have the cells take it back in the same way. How rows of each input are placed depends
on the kind of join: see decision 19.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from anabranch.adapt.policies.cooling import CellLoad
from anabranch.control.observed import InputRates, Observed
from anabranch.language.join import Join
from anabranch.plan.exchange import Exchange
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import BY_TERMS
from anabranch.routing.grid import Scattered, choose_grid
from anabranch.routing.locator import MAX_SLOTS
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import subtract
from anabranch.state.manifest import Manifest

USUAL = 4
"""Cells for which it is told whether scattering pays."""
PAYS = 0.75
"""What a site with a cell may have to do, at most, of what the owner of the slot has."""
PAIRS = 30
"""Pairs that are looked at in the time that a row takes to be taken in and kept."""
RECENCY = 0.3
"""The weight of the newest epoch in the rates of inputs."""
Key = tuple[str, int]
"""A slot of an exchange."""


class Scattering:
    """The slots of a run whose rows meet in cells, and those that are to, or no longer."""

    def __init__(
        self, plan: Plan, maps: Mapping[str, PartitionMap], manifest: Manifest,
        pinned: Collection[Key],
    ) -> None:  # fmt: skip
        self._pinned = pinned
        self._joins = {
            one.name: node for one in plan.exchanges.values() if (node := _join_of(one)) is not None
        }
        self.candidates = {name: maps[name].hashed for name in self._joins}
        """The exchanges whose slots can be scattered, with the number of their slots."""
        self._scattered: dict[Key, Scattered] = {
            (name, one.slot): one
            for name, record in manifest.exchanges.items()
            for one in record.scattered
        }
        self._next: dict[Key, Scattered] = {}
        self._back: set[Key] = set()
        self._rates: dict[str, InputRates] = {}
        self._cool: dict[Key, int] = {}
        """For how many epochs a slot has had few rows."""

    # -- what there is to know --------------------------------------------------------------------

    @property
    def scatterable(self) -> dict[str, int]:
        """The exchanges for which scattering pays, by what was measured, with the number of their slots."""
        return {name: slots for name, slots in self.candidates.items() if self._pays(name)}

    def _pays(self, exchange: str) -> bool:
        """Whether a site with a cell would have clearly less to do than one that has the whole slot."""
        join, rates = self._joins[exchange], self._rates.get(exchange)
        if rates is None or not sum(rates.rows):
            return True
        one = laid_out(join, 0, 0, USUAL, rates.rows)
        pairs = rates.pairs / PAIRS / sum(rates.rows)
        after = one.burden(rates.rows) + pairs * (2 if one.mirrored else 1) / USUAL
        return after <= PAYS * (1 + pairs)

    @property
    def handled(self) -> Collection[Key]:
        """The exchanges and slots that something is done about already."""
        return {*self._scattered, *self._next}

    @property
    def exchanges(self) -> set[str]:
        """The exchanges with slots that are scattered, or are about to be: all their state is at hand."""
        return {exchange for exchange, _ in self.handled}

    @property
    def scattered(self) -> Mapping[Key, Scattered]:
        """What is scattered now."""
        return self._scattered

    def even(self, maps: Mapping[str, PartitionMap], alive: int) -> set[Key]:
        """The partitions that are cells of a key which no site has more of than it should.

        To move one of these away would only give another site two.
        """
        found: set[Key] = set()
        for (exchange, _), one in self._scattered.items():
            known = maps[exchange]
            first, end = one.cells
            numbers = range(known.partition_at(first), known.partition_at(end - 1) + 1)
            counts = Counter(known.sites[number] for number in numbers)
            most = -(-one.grid.cells // max(1, alive)) * (2 if one.mirrored else 1)
            if max(counts.values()) <= most:
                found |= {(exchange, known.starts[number]) for number in numbers}
        return found

    def observe(self, observed: Observed) -> None:
        """Takes in what came to each input in an epoch."""
        for exchange, now in observed.inputs.items():
            if exchange in self._joins and any(now.rows):
                known = self._rates.get(exchange)
                self._rates[exchange] = known.smoothed(now, RECENCY) if known else now

    def loads(self, observed: Observed, alive: int) -> Iterator[CellLoad]:
        """What came to the cells of each scattered slot, against what one site should have."""
        for (exchange, slot), one in self._scattered.items():
            sample = next((s for s in observed.samples.values() if exchange in s.traffic), None)
            if sample is None or not sample.rows.sum() or (exchange, slot) in self._back:
                continue
            first, end = one.cells
            starts = np.asarray(observed.maps[exchange].starts)
            rows = sample.traffic[exchange].rows[(starts >= first) & (starts < end)].sum()
            rates = self._rates.get(exchange)
            each = one.burden(rates.rows) * one.grid.cells if rates else 1.0
            share = float(rows / each * alive / sample.rows.sum())
            known = (self._cool.get((exchange, slot), 0) + 1) if share < CellLoad.COOL else 0
            self._cool[exchange, slot] = known
            yield CellLoad(exchange, slot, share, known, one.grid.cells)

    # -- what is done -----------------------------------------------------------------------------

    def scatter(
        self, exchange: str, slot: int, sites: tuple[int, ...], known: PartitionMap
    ) -> PartitionMap:
        """Sets out to scatter a slot with the next epoch: the map with its cells."""
        if (exchange, slot) in self.handled or exchange not in self._joins:
            return known
        rates = self._rates.get(exchange)
        join = self._joins[exchange]
        weights = rates.rows if rates else (1.0,) * len(join.parts)
        one = laid_out(join, slot, 0, len(sites), weights)
        if one.mirrored:
            sites = (*sites, *sites)
        first = self._room(exchange, known, len(sites))
        if first + len(sites) > MAX_SLOTS:
            return known
        self._next[exchange, slot] = laid_out(join, slot, first, one.grid.cells, weights)
        return known.with_cells(sites, first)

    def _room(self, exchange: str, known: PartitionMap, cells: int) -> int:
        """The first of so many slots in a row that nothing is scattered over; new ones if need be."""
        taken = [
            one.cells
            for (name, _), one in [*self._scattered.items(), *self._next.items()]
            if name == exchange
        ]
        taken += [(start, start + 1) for name, start in self._pinned if name == exchange]
        free = subtract([(known.hashed, known.slots)], taken)
        return next((first for first, end in free if end - first >= cells), known.slots)

    def unscatter(self, exchange: str, slot: int) -> None:
        """Sets out to bring a scattered slot together with the next epoch."""
        if (exchange, slot) in self._scattered:
            self._back.add((exchange, slot))

    def take_next(
        self, apart: Collection[str]
    ) -> tuple[dict[str, tuple[Scattered, ...]], dict[str, tuple[Scattered, ...]]]:
        """What is scattered and what gathered in this epoch; nothing yet of these exchanges.

        Slots of them wait or are put aside.
        """
        back = {key: self._scattered[key] for key in self._back if key[0] not in apart}
        there = {key: one for key, one in self._next.items() if key[0] not in apart}
        for key in back:
            self._back.discard(key)
            self._cool.pop(key, None)
            del self._scattered[key]
        for key, one in there.items():
            del self._next[key]
            self._scattered[key] = one
        return _by_exchange(there), _by_exchange(back)


def laid_out(join: Join, slot: int, first: int, cells: int, rates: Sequence[float]) -> Scattered:
    """How the rows of a slot are placed in so many cells, for these rates of the inputs.

    Of an inner join the two inputs with the most rows meet in a grid, and what others have goes to every
    cell. Rows of a preserved input, or of one that is filtered, are dealt out: each meets in its cell all
    that it can.
    """
    if join.kind == "inner":
        heaviest = sorted(range(len(join.parts)), key=lambda input: (-rates[input], input))[:2]
        left, right = sorted(heaviest)
        bands = choose_grid(cells, rates[left], rates[right]).bands
        return Scattered(slot, first, bands, (left, right))
    if join.kind == "right":
        return Scattered(slot, first, (cells,))
    return Scattered(slot, first, (1,) * cells, mirrored=join.kind == "full")


def _by_exchange(some: Mapping[Key, Scattered]) -> dict[str, tuple[Scattered, ...]]:
    names = dict.fromkeys(exchange for exchange, _ in some)
    return {
        name: tuple(one for (exchange, _), one in some.items() if exchange == name)
        for name in names
    }


def _join_of(exchange: Exchange) -> Join | None:
    """The join by equal keys that an exchange serves alone, if its rows can meet in cells."""
    only = exchange.members[0]
    suited = (
        len(exchange.members) == 1
        and isinstance(only.node, Join)
        and only.node.rows is None
        and exchange.spread == BY_TERMS
        and all(table.scatters or table.between for table in only.operator.tables)
    )
    return only.node if suited and isinstance(only.node, Join) else None
