"""Grids of a run: the one that each join without an equality has, and the one that it is to have.

A grid is laid anew in one epoch: its rows still go to the old cells, and at its end those who have these
write the state into the new ones. With the commit the new grid holds, and its map.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from anabranch.adapt.policies.grids import GridLoad
from anabranch.control.observed import InputRates, Observed
from anabranch.plan.plan import Plan
from anabranch.routing.grid import Grid, NewGrid
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.manifest import Manifest

RECENCY = 0.5
"""The weight of the newest epoch in the rates of inputs."""
ENOUGH = 2
"""Epochs that must have been measured before a grid is laid anew by them."""


class Grids:
    """The grids of a run, and what came to them."""

    def __init__(self, plan: Plan, manifest: Manifest) -> None:
        self._plan = plan
        self.current = {
            name: Grid(tuple(one.grid)) for name, one in manifest.exchanges.items() if one.grid
        }
        """The grid of each exchange that has one, as rows are sent."""
        self._asked: dict[str, Grid] = {}
        self._under_way: dict[str, NewGrid] = {}
        self._rates: dict[str, InputRates] = {}
        self._measured: dict[str, int] = {}

    def observe(self, observed: Observed) -> None:
        """Takes in what came to each input in an epoch, each row counted once."""
        for exchange, now in observed.inputs.items():
            grid = self.current.get(exchange)
            if grid is None or not any(now.rows):
                continue
            once = _once(now, grid)
            known = self._rates.get(exchange)
            self._rates[exchange] = known.smoothed(once, RECENCY) if known else once
            self._measured[exchange] = self._measured.get(exchange, 0) + 1

    def loads(self, manifest: Manifest, but: Collection[str]) -> Iterator[GridLoad]:
        """What comes to the grids, but for some that are to stay as they are."""
        for exchange, grid in self.current.items():
            if exchange in but or exchange in self._asked or exchange not in self._plan.exchanges:
                continue
            rates = self._rates.get(exchange)
            members = self._plan.exchanges[exchange].members
            left, right = rates.bytes if rates else members[0].weights
            state = sum(manifest.subqueries[member.name].shelf.bytes for member in members)
            measured = self._measured.get(exchange, 0) >= ENOUGH
            yield GridLoad(exchange, grid, left, right, state, measured)

    def regrid(self, exchange: str, bands: tuple[int, ...]) -> None:
        """Sets out to lay a grid anew with the next epoch."""
        if exchange in self.current:
            self._asked[exchange] = Grid(bands)

    def take_next(self, apart: Collection[str], sites: Sequence[int]) -> dict[str, NewGrid]:
        """The grids that are laid anew in this epoch, on these sites; nothing yet of exchanges apart."""
        self._under_way = {
            exchange: NewGrid(grid, _on(grid, sites))
            for exchange, grid in self._asked.items()
            if exchange not in apart
        }
        self._asked = {name: grid for name, grid in self._asked.items() if name in apart}
        return self._under_way

    def committed(self) -> Mapping[str, PartitionMap]:
        """An epoch is over: the maps of the grids that it has laid anew."""
        laid, self._under_way = self._under_way, {}
        for exchange, one in laid.items():
            self.current[exchange] = one.grid
            self._measured[exchange] = 0
        return {exchange: one.map for exchange, one in laid.items()}


def _once(now: InputRates, grid: Grid) -> InputRates:
    """What came to the cells of a grid, each row counted once."""
    copies = grid.sent(1.0, 0.0), grid.sent(0.0, 1.0)
    return InputRates(
        tuple(rows / many for rows, many in zip(now.rows, copies, strict=True)),
        tuple(size / many for size, many in zip(now.bytes, copies, strict=True)),
        now.pairs,
    )


def _on(grid: Grid, sites: Sequence[int]) -> PartitionMap:
    """The cells of a grid over these sites, each with as many."""
    return PartitionMap(tuple(sites[cell * len(sites) // grid.cells] for cell in range(grid.cells)))
