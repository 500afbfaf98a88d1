"""Grids that follow the rates of their inputs, and the sites: the cells of joins without an equality.

A grid sends left rows to as many sites as a band has cells, right rows to as many as there are bands. When
one input becomes faster than the other, another grid sends fewer bytes; when there are other sites, another
number of cells has a share for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.adapt.cell_actions import Regrid
from anabranch.routing.grid import Grid, choose_grid

WORSE = 1.08
"""How much more than with the best grid may be sent: a grid is not laid anew for less."""
HORIZON = 20
"""Epochs in which a new grid must have saved the bytes of state that it takes to lay it."""
FEWEST = 0.01
"""The least that is expected of an input, against the other one: it may begin to flow."""


@dataclass(frozen=True)
class GridLoad:
    """A grid, and what comes to it."""

    exchange: str
    grid: Grid
    left: float
    """Bytes an epoch of the left input, each row counted once."""
    right: float
    state: float
    """Bytes of its state."""
    measured: bool
    """Whether enough has been measured since it was laid."""


def propose_grids(loads: Iterable[GridLoad], alive: int) -> Iterator[Regrid]:
    """The grids that are to be laid anew, for as many sites as live."""
    for one in loads:
        most = max(one.left, one.right)
        left, right = (max(rate, FEWEST * most) if most else 1.0 for rate in (one.left, one.right))
        best = choose_grid(alive, left, right)
        if best.bands == one.grid.bands:
            continue
        if one.grid.cells != alive:
            cause = f"sites: {one.grid.cells} cells on {alive}"
            yield Regrid(one.exchange, 0, cause, bands=best.bands)
            continue
        now, then = one.grid.sent(left, right), best.sent(left, right)
        if one.measured and now > WORSE * then and HORIZON * (now - then) > one.state:
            cause = f"rates: {left:,.0f} to {right:,.0f} bytes, {now / then - 1:.0%} too many sent"
            yield Regrid(one.exchange, 0, cause, bands=best.bands)
