"""Rows of a hot slot on their way to its cells: each to one band of them, those of the other input to all."""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.routing.grid import Scattered
from anabranch.routing.locator import locator, slot_of_locator
from anabranch.state.segment import LOCATOR


def scatter(rows: pl.DataFrame, scattered: Scattered, side: int, start: int) -> pl.DataFrame:
    """The rows, those of a scattered slot in its cells, some of them several times."""
    locators = rows[LOCATOR].to_numpy()
    mine = slot_of_locator(locators) == np.uint64(scattered.slot)
    if not mine.any():
        return rows
    which, cells = scattered.place(int(mine.sum()), side, start)
    taken = rows.filter(pl.Series(mine))[pl.Series(which.astype(np.uint32))]
    moved = locator(cells.astype(np.uint64), taken[LOCATOR].to_numpy())
    taken = taken.with_columns(pl.Series(LOCATOR, moved)).select(rows.columns)
    return pl.concat([rows.filter(pl.Series(~mine)), taken])
