"""Rows x columns of cells in which every row of one input meets every row of another just once (C3).

A row of the left input goes to all cells of one band, a row of the right input to one cell of every band.
StreamCloud needs a square number of sites; here bands may have different numbers of cells, and get left
rows in proportion, so that any number of cells have the same share of all pairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec
import numpy as np

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

    def sent(self, left: float, right: float) -> float:
        """How many rows are sent when so many come from both sides."""
        return left * sum(size * size for size in self.bands) / self.cells + right * len(self.bands)


class Scattered(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A slot with a hot key whose rows meet in the cells of a small grid instead."""

    slot: int
    first: int
    """The slot that is the first of the cells."""
    bands: tuple[int, ...]

    def place(self, rows: int, side: int, start: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of so many rows of one side go where: numbers of rows, and a slot for each."""
        which, cells = Grid(self.bands).places(rows, side, start)
        return which, cells + self.first


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
