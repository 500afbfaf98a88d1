"""Actions on cells: hot keys of joins are scattered over them and gathered, grids are laid anew."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.adapt.actions import Action, Target


@dataclass(frozen=True)
class Scatter(Action):
    """Let the rows of a join's hot slot meet in a small grid of cells, one on each of these sites."""

    slot: int
    sites: tuple[int, ...]

    def words(self) -> str:
        sites = ", ".join(map(str, self.sites))
        return f"scatter slot {self.slot} of {self.exchange} over cells on sites {sites}"

    def apply(self, target: Target) -> None:
        target.scatter(self.exchange, self.slot, self.sites)


@dataclass(frozen=True)
class Unscatter(Action):
    """Let the rows of a scattered slot meet in one place again.

    >>> Unscatter("pairs", 640, "cooled", slot=642).words()
    'gather slot 642 of pairs from its cells'
    """

    slot: int

    def words(self) -> str:
        return f"gather slot {self.slot} of {self.exchange} from its cells"

    def apply(self, target: Target) -> None:
        target.unscatter(self.exchange, self.slot)


@dataclass(frozen=True)
class Regrid(Action):
    """Let the rows of a join without an equality meet in the cells of another grid.

    >>> Regrid("near", 0, "rates", bands=(2, 2, 1)).words()
    'lay the grid of near anew: bands of 2, 2, 1 cells'
    """

    bands: tuple[int, ...]

    def words(self) -> str:
        bands = ", ".join(map(str, self.bands))
        return f"lay the grid of {self.exchange} anew: bands of {bands} cells"

    def apply(self, target: Target) -> None:
        target.regrid(self.exchange, self.bands)
