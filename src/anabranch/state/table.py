"""State tables, declared: what an operator remembers under a name, when its rows go, how they are merged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

BY_WATERMARK = "by watermark"
"""Rows go when the watermark has passed their due time: whatever reads them has had them by then."""
GIVEN_BACK = "given back"
"""The operator says which rows have done their work."""
FOR_GOOD = "for good"
"""Rows stay, as few as merging makes them."""


@dataclass(frozen=True)
class StateTable:
    """What an operator remembers under one name."""

    name: str
    columns: tuple[str, ...]
    """What its rows have besides locator and due time."""
    merge: Callable[[pl.DataFrame], pl.DataFrame]
    """Rows of several segments as those of one: sorted by locator, and fewer where that can be."""
    goes: str = BY_WATERMARK
    input: int | None = None
    """The input whose rows these are, one by one as they came; they can be dealt out to cells."""
    open: bool = False
    """Whether its rows may have results of their own although nothing more comes."""
    derived_from: tuple[str, ...] = ()
    """Tables of the same operator that it could be made of again."""
    told_by_values: bool = False
    """Whether its rows say something about all that are like them: then each cell can have all of it."""
    between: bool = False
    """Whether its rows are combinations that lie between inputs and results: they are made again at need."""

    @property
    def scatters(self) -> bool:
        """Whether rows of a slot can be taken to cells."""
        return self.input is not None or self.told_by_values


def inputs_by_table(tables: Sequence[StateTable]) -> dict[str, tuple[int, ...]]:
    """The inputs that the rows of each table are of, or are combinations of; without those of no input."""
    own = {table.name: (table.input,) for table in tables if table.input is not None}
    return own | {
        table.name: tuple(input for source in table.derived_from for input in own[source])
        for table in tables
        if table.between
    }
