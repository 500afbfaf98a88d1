"""Rows of a hot slot on their way to its cells and back, and rows of a grid on their way to another one.

Senders place the rows of an epoch; what is remembered is settled anew at the end of one, by the sites that
have it: they write it where it is read from the next epoch on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from anabranch.routing.grid import Grid, Scattered
from anabranch.routing.locator import locator, slot_of_locator
from anabranch.routing.ranges import intersect
from anabranch.routing.reach import within
from anabranch.state.group import Masked, SiteState
from anabranch.state.segment import LOCATOR, Ranges
from anabranch.state.table import StateTable


def scatter(rows: pl.DataFrame, scattered: Scattered, input: int, start: int) -> pl.DataFrame:
    """The rows, those of a scattered slot in its cells, some of them several times."""
    mine = _within(rows, [(scattered.slot, scattered.slot + 1)])
    if not mine.any():
        return rows
    which, cells = scattered.place(int(mine.sum()), input, start)
    taken = _placed(rows.filter(pl.Series(mine))[pl.Series(which.astype(np.uint32))], cells)
    return pl.concat([rows.filter(pl.Series(~mine)), taken])


def scatter_state(state: SiteState, declared: StateTable, scattered: Scattered) -> None:
    """Takes what is remembered of a slot to its cells, as of the next epoch."""
    slot = [(scattered.slot, scattered.slot + 1)]
    if declared.input is None:
        # What rows have met is told by their values, so it holds in every cell
        cells = np.arange(*scattered.cells)
        _settle(state, declared, slot, lambda rows: _in_all(rows, slot, cells))
    else:
        input = declared.input
        _settle(state, declared, slot, lambda rows: scatter(rows, scattered, input, 0))
    state.cells = sorted({*state.cells, scattered.cells})


def gather_state(state: SiteState, declared: StateTable, scattered: Scattered) -> None:
    """Takes what this site remembers in cells of a slot back to it, as of the next epoch: each row once."""
    cells = [scattered.cells]
    homes = cells if declared.input is None else scattered.homes(declared.input)

    def back(rows: pl.DataFrame) -> pl.DataFrame:
        mine, taken = _within(rows, cells), rows.filter(pl.Series(_within(rows, homes)))
        slots = np.full(taken.height, scattered.slot)
        return pl.concat([rows.filter(pl.Series(~mine)), _placed(taken, slots)])

    _settle(state, declared, cells, back)
    state.cells = sorted({*state.cells, (scattered.slot, scattered.slot + 1)})


def regrid_state(state: SiteState, declared: StateTable, before: Grid, after: Grid) -> None:
    """Takes what this site remembers in cells of a grid to those of another one, as of the next epoch."""
    side = declared.input or 0
    homes = before.homes(side)
    # So that few rows of each of many cells do not all begin with the same cell
    start = state.epoch + (state.owned[0][0] if state.owned else 0)

    def over(rows: pl.DataFrame) -> pl.DataFrame:
        taken = rows.filter(pl.Series(_within(rows, homes)))
        which, cells = after.places(taken.height, side, start)
        return _placed(taken[pl.Series(which.astype(np.uint32))], cells)

    _settle(state, declared, state.owned, over)
    state.elsewhere = [(0, after.cells)]


def _settle(
    state: SiteState, declared: StateTable, slots: Ranges,
    put: Callable[[pl.DataFrame], pl.DataFrame],
) -> None:  # fmt: skip
    """Takes what is in these slots out of a table, and puts it back with what is new, elsewhere."""
    table = declared.name
    rows: list[pl.DataFrame] = []
    for ref, wanted in state.mine(table):
        cut = intersect(wanted, slots)
        if cut:
            rows += state.read(ref, cut)
            state.expired.append(Masked(ref.file, ref.batch, tuple(cut)))
            state.since[table] = min(ref.born[0], state.since.get(table, state.epoch))
    for frame in state.new.pop(table, []):
        rows.append(frame.select(rows[0].columns) if rows else frame)
    if rows:
        state.append(table, declared.merge(put(pl.concat(rows))))


def _in_all(rows: pl.DataFrame, slot: Ranges, cells: np.ndarray) -> pl.DataFrame:
    mine = _within(rows, slot)
    taken = rows.filter(pl.Series(mine))
    every = [_placed(taken, np.full(taken.height, cell)) for cell in cells.tolist()]
    return pl.concat([rows.filter(pl.Series(~mine)), *every])


def _within(rows: pl.DataFrame, slots: Sequence[tuple[int, int]]) -> np.ndarray:
    return within(slot_of_locator(rows[LOCATOR].to_numpy()), slots)


def _placed(rows: pl.DataFrame, slots: np.ndarray) -> pl.DataFrame:
    """The rows, each in one of these slots."""
    moved = locator(slots.astype(np.uint64), rows[LOCATOR].to_numpy())
    return rows.with_columns(pl.Series(LOCATOR, moved)).select(rows.columns)
