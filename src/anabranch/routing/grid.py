"""Rows x columns of cells in which every row of one input meets every row of another just once (C3).

A row of the left input goes to all cells of one band, a row of the right input to one cell of every band.
StreamCloud needs a square number of sites; here bands may have different numbers of cells, and get left
rows in proportion, so that any number of cells have the same share of all pairs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import expand


@dataclass(frozen=True)
class Grid:
    """`bands[b]` is the number of cells of band b; cells are numbered from the first band on."""

    bands: tuple[int, ...]

    @property
    def cells(self) -> int:
        return sum(self.bands)

    def __str__(self) -> str:
        if len(set(self.bands)) == 1:
            return f"{len(self.bands)} x {self.bands[0]}"
        return " + ".join(map(str, self.bands))

    def places(self, rows: int, side: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """Which row goes where: numbers of rows, some of them several times, and a cell for each.

        Rows take turns, the first of them beginning with turn `start`.

        >>> Grid((2, 1)).places(3, side=0)
        (array([0, 0, 1, 1, 2]), array([0, 1, 0, 1, 2]))
        >>> Grid((2, 1)).places(2, side=1)
        (array([0, 0, 1, 1]), array([0, 2, 1, 2]))
        """
        sizes = np.asarray(self.bands)
        first = np.cumsum(sizes) - sizes
        turns = np.arange(start, start + rows)
        if side == 0:
            # As many turns for a band as it has cells
            band = np.repeat(np.arange(len(sizes)), sizes)[turns % self.cells]
            return np.repeat(np.arange(rows), sizes[band]), expand(first[band], sizes[band])
        every = math.lcm(*self.bands)
        cells = first + (turns % every)[:, None] * sizes // every
        return np.repeat(np.arange(rows), len(sizes)), cells.ravel()

    def homes(self, side: int, first: int = 0) -> list[tuple[int, int]]:
        """Cells that together have every row of one side just once, as ranges; the first cell is `first`.

        >>> Grid((2, 1)).homes(side=0), Grid((2, 1)).homes(side=1)
        ([(0, 1), (2, 3)], [(0, 2)])
        """
        if side:
            return [(first, first + self.bands[0])]
        begins = np.cumsum((first, *self.bands[:-1])).tolist()
        return [(begin, begin + 1) for begin in begins]

    def sent(self, left: float, right: float) -> float:
        """How many rows are sent when so many come from both sides."""
        return left * sum(size * size for size in self.bands) / self.cells + right * len(self.bands)


class Scattered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slot with a hot key whose rows meet in cells instead: two inputs in a grid, any others everywhere.

    Each combination of rows of all inputs is in one cell. A row of a preserved input must see all that it
    could meet: its input is dealt out, a row to a cell, and the other one is in every cell.

    >>> Scattered(7, 100, (1, 1)).place(2, input=1, start=0)
    (array([0, 0, 1, 1]), array([100, 101, 100, 101]))
    """

    slot: int
    first: int
    """The slot that is the first of the cells."""
    bands: tuple[int, ...]
    sides: tuple[int, int] = (0, 1)
    """The inputs that are the left and the right one of the grid."""
    mirrored: bool = False
    """Whether as many cells follow in which the right input is dealt out, for rows of it that meet nothing.

    Both inputs are preserved: in the first cells the left one is, and combinations are given there.
    """

    @property
    def grid(self) -> Grid:
        return Grid(self.bands)

    @property
    def cells(self) -> tuple[int, int]:
        """The slots [first, end) of all cells."""
        return self.first, self.first + self.grid.cells * (2 if self.mirrored else 1)

    def place(self, rows: int, input: int, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of so many rows of an input go where: numbers of rows, and a slot for each."""
        which, cells = self._places(self.grid, rows, input, start)
        if self.mirrored:
            again, others = self._places(Grid((self.grid.cells,)), rows, input, start)
            which = np.concatenate([which, again])
            cells = np.concatenate([cells, others + self.grid.cells])
        return which, cells + self.first

    def _places(
        self, grid: Grid, rows: int, input: int, start: int
    ) -> tuple[np.ndarray, np.ndarray]:
        if input in self.sides:
            return grid.places(rows, self.sides.index(input), start)
        return np.repeat(np.arange(rows), grid.cells), np.tile(np.arange(grid.cells), rows)

    def homes(self, input: int) -> list[tuple[int, int]]:
        """Cells that together have every row of an input just once, as ranges of slots."""
        if self.mirrored and input == self.sides[1]:
            return [(self.first + self.grid.cells, self.cells[1])]
        if input not in self.sides:
            return [(self.first, self.first + 1)]
        return self.grid.homes(self.sides.index(input), self.first)

    def copies(self, input: int) -> list[tuple[int, int]]:
        """The cells in which rows of an input are only met, and have no results of their own."""
        if not self.mirrored:
            return []
        middle = self.first + self.grid.cells
        return [(middle, self.cells[1]) if input == self.sides[0] else (self.first, middle)]

    def burden(self, rates: Sequence[float]) -> float:
        """The share of all rows that one site has to take in, when the inputs have these rates."""
        other = sum(rate for input, rate in enumerate(rates) if input not in self.sides)
        left, right = (rates[input] for input in self.sides)
        taken = self.grid.sent(left, right) / self.grid.cells + other
        if self.mirrored:
            taken += Grid((self.grid.cells,)).sent(left, right) / self.grid.cells
        return taken / max(sum(rates), 1e-9)


@dataclass(frozen=True)
class NewGrid:
    """The grid that an exchange has from the next epoch on, and where its cells are."""

    grid: Grid
    map: PartitionMap


@dataclass(frozen=True)
class Resettling:
    """What of the state goes to other slots at the end of an epoch, by exchange."""

    scattering: Mapping[str, tuple[Scattered, ...]] = field(default_factory=dict)
    """Slots whose state goes to cells."""
    gathering: Mapping[str, tuple[Scattered, ...]] = field(default_factory=dict)
    """Slots whose state comes back from cells."""
    grids: Mapping[str, NewGrid] = field(default_factory=dict)
    """Exchanges all of whose state goes to the cells of another grid."""

    def __contains__(self, exchange: str) -> bool:
        return any(exchange in some for some in (self.scattering, self.gathering, self.grids))


def choose_grid(cells: int, left: float = 1.0, right: float = 1.0) -> Grid:
    """The grid that sends the fewest rows, for these rates of the inputs.

    >>> print(choose_grid(6), choose_grid(7), choose_grid(4, left=100, right=1), sep=", ")
    2 x 3, 3 + 2 + 2, 4 x 1
    """
    grids = []
    for bands in range(1, cells + 1):
        size, larger = divmod(cells, bands)
        grids.append(Grid((size + 1,) * larger + (size,) * (bands - larger)))
    return min(grids, key=lambda grid: grid.sent(left, right))
