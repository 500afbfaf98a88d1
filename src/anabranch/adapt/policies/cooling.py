"""Hot keys that have cooled: what was scattered over cells comes together again.

Cells cost copies of rows, and where there are any, nothing of the join can be put aside. A key that has had
few rows for some epochs is one slot again; so is one that has far fewer cells than there are sites by now: it
is scattered over more of them if it is hot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from anabranch.adapt.cell_actions import Unscatter
from anabranch.adapt.policies.heat import MOST_CELLS

COOLING = 8
"""Epochs in a row in which a key has few rows before it is gathered."""
TOO_FEW = 0.6
"""A key with less than this many cells for each site is scattered anew."""


@dataclass(frozen=True)
class CellLoad:
    """What came to the cells of a scattered slot in an epoch."""

    COOL: ClassVar[float] = 0.4
    """Half of what makes a slot hot: a key in between stays as it is."""

    exchange: str
    slot: int
    share: float
    """Its rows, each counted once, against those that one site should have."""
    cool: int
    """For how many epochs in a row that has been little."""
    cells: int


def propose_cooling(loads: Iterable[CellLoad], alive: int) -> Iterator[Unscatter]:
    """What is to be brought together again."""
    for one in loads:
        if one.cool >= COOLING:
            cause = f"cooled: {one.share:.0%} of what one site should have"
            yield Unscatter(one.exchange, one.slot, cause, slot=one.slot)
        elif one.cells < TOO_FEW * min(alive, MOST_CELLS):
            cause = f"{one.cells} cells on {alive} sites"
            yield Unscatter(one.exchange, one.slot, cause, slot=one.slot)
