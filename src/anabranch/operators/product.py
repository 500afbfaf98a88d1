"""Joins without equal keys: every row meets every row of the other input within a window (C1, C3).

The cells of a grid are the partitions; a cell has its share of both inputs (tables `in0`, `in1`) and
looks at all pairs of a new row with another. Rows are kept in the order of their window, by time or by
their number in the input, so that the rows a row can meet are a run of neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from anabranch.language.bounds import all_of
from anabranch.language.expression import columns_of
from anabranch.language.join import Join
from anabranch.language.numbered import PLACE, SEEN
from anabranch.operators.base import (
    END_OF_TIME,
    InOneGeneration,
    Moment,
    RowByRow,
    Spread,
    add_locator,
    gathered,
    time_of,
)
from anabranch.operators.block import Conditions, numbers
from anabranch.operators.due import due_times, span_of
from anabranch.operators.partials import TIME
from anabranch.operators.runs import CHUNK
from anabranch.operators.stateless import is_true
from anabranch.routing.frame import Frame
from anabranch.routing.locator import row_ranges, slot_of_locator
from anabranch.routing.ranges import expand
from anabranch.routing.sorting import distinct
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR
from anabranch.state.table import BY_WATERMARK, GIVEN_BACK, StateTable

BLOCK = 1 << 16
"""Pairs looked at at a time: as many as a core's own cache has room for."""
BLOCK_ROWS = 32
COUNTED = END_OF_TIME + 1
"""Where due times begin that are numbers of rows: beyond all times, for no watermark reaches them."""


class Product(InOneGeneration, RowByRow):
    """All pairs within a window for which a predicate holds."""

    def __init__(self, node: Join, wanted: Collection[str] | None = None) -> None:
        self.node = node
        shown = [name for name in node.schema if wanted is None or name in wanted]
        self.schema = pl.Schema({name: node.schema[name] for name in shown})
        self.read = {name for condition in node.residual for name in columns_of(condition)}
        self.payload = [
            [own for own, name in names.items() if name in self.schema or name in self.read]
            for names in node.names
        ]
        self.span = span_of(node) if node.rows is None else max(1, node.rows // 2)
        self.lasting = COUNTED + (node.rows or 0)

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        if self.node.rows is not None:
            place = rows[PLACE]
            frame = pl.DataFrame([place.alias(TIME), rows[SEEN], (place + self.lasting).alias(DUE)])
        else:
            ordered = self.node.parts[input].ordered
            time = np.zeros(rows.height, dtype=np.int64)
            if ordered is not None:
                time = time_of(rows, ordered).to_numpy() * (ordered.unit or 1)
            frame = pl.DataFrame({TIME: time, DUE: due_times(self.node, input, time)})
        frame = frame.with_columns(rows.select(self.payload[input]).get_columns())
        return add_locator(frame, [], spread)

    def advance(
        self, frames: Sequence[Frame | None], state: SiteState, moment: Moment
    ) -> Iterator[pl.DataFrame]:
        arrived = [
            None if frame is None else in_time(frame.wide()) for number, frame in enumerate(frames)
        ]
        yield from gathered(self._pairs(arrived, state), CHUNK)
        for number, rows in enumerate(arrived):
            if rows is not None:
                after = moment.after
                lasting = rows if after is None else rows.filter(pl.col(DUE) > after)
                state.append(table_of(number), lasting)
        if self.node.rows is not None:
            self._expire(arrived, state)

    def _pairs(
        self, arrived: Sequence[pl.DataFrame | None], state: SiteState
    ) -> Iterator[pl.DataFrame]:
        """The results of every cell that has new rows."""
        for cell in _cells(arrived):
            new = [_of_cell(rows, cell) for rows in arrived]
            for first in (0, 1):
                mine, theirs = new[first], new[1 - first]
                if mine is None:
                    continue
                others = state.of_slot(table_of(1 - first), cell)
                # By time, a pair of new rows is met from the left; by rows, from the later of the two
                if theirs is not None and (first == 0 or self.node.rows is not None):
                    others.append(theirs)
                for other in others:
                    block = _Block(self, first, mine, other)
                    yield from block.results()
                    state.compared += block.compared

    def _expire(self, arrived: Sequence[pl.DataFrame | None], state: SiteState) -> None:
        """Gives back what is further back than rows are counted, by what this cell has heard of."""
        for number in (0, 1):
            own, other = arrived[number], arrived[1 - number]
            counts = [int(rows[name].to_numpy().max()) + more
                      for rows, name, more in ((own, TIME, 1), (other, SEEN, 0))
                      if rows is not None]  # fmt: skip
            if counts:
                state.expire(table_of(number), COUNTED + max(counts) - 1)

    @property
    def tables(self) -> tuple[StateTable, ...]:
        by_rows = self.node.rows is not None
        first = (TIME, SEEN) if by_rows else (TIME,)
        goes = GIVEN_BACK if by_rows else BY_WATERMARK
        return tuple(
            StateTable(table_of(number), (*first, *payload), in_time, goes, number)
            for number, payload in enumerate(self.payload)
        )


def in_time(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of each cell in the order of their times."""
    return rows.sort(LOCATOR, TIME)


def table_of(input: int) -> str:
    """The table with the rows of an input."""
    return f"in{input}"


def _cells(arrived: Sequence[pl.DataFrame | None]) -> list[int]:
    """The cells that have new rows of either input."""
    found = [
        distinct(slot_of_locator(rows[LOCATOR].to_numpy())) for rows in arrived if rows is not None
    ]
    return [int(cell) for cell in distinct(np.concatenate(found))] if found else []


def _of_cell(rows: pl.DataFrame | None, cell: int) -> pl.DataFrame | None:
    if rows is None:
        return None
    cut = row_ranges(rows[LOCATOR].to_numpy(), [(cell, cell + 1)])
    return rows.slice(cut[0][0], cut[0][1] - cut[0][0]) if cut else None


@dataclass
class _Waiting:
    """Pairs of several blocks that wait to be made rows together: one frame costs as much as many pairs."""

    mine: list[np.ndarray] = field(default_factory=list)
    theirs: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    checked: bool = True
    """Whether what arrays can tell is known to hold."""

    def add(self, mine: np.ndarray, theirs: np.ndarray, checked: bool) -> None:
        self.mine.append(mine)
        self.theirs.append(theirs)
        self.count += len(mine)
        self.checked = checked


@dataclass
class _Block:
    """The new rows of one side against rows of the other, in one cell."""

    product: Product
    first: int
    """The input that the new rows belong to."""
    new: pl.DataFrame
    other: pl.DataFrame
    compared: int = 0

    def results(self) -> Iterator[pl.DataFrame]:
        """Joined rows that meet the condition."""
        low, high = self._runs()
        start, end = int(low.min()), int(high.max())
        if start >= end:
            return
        # Of what is remembered, only what the new rows can meet
        self.other = self.other.slice(start, end - start)
        low, high = low - start, high - start
        conditions = Conditions.of(
            self.product.node.residual, self._columns(self.first, self.new),
            self._columns(1 - self.first, self.other),
        )  # fmt: skip
        waiting = _Waiting()
        for rows, others in _blocks(low, high):
            begin = np.clip(low[rows], others.start, others.stop)
            end = np.clip(high[rows], begin, others.stop)
            self.compared += int((end - begin).sum())
            found = conditions.pairs(rows, others) if conditions.quick else None
            if found is None:
                mine = np.repeat(np.arange(rows.start, rows.stop), end - begin)
                theirs = expand(begin, end - begin)
            else:
                mine, theirs = found
                inside = theirs >= begin[mine - rows.start]
                inside &= theirs < end[mine - rows.start]
                mine, theirs = mine[inside], theirs[inside]
            checked = found is not None
            if waiting.count and (checked != waiting.checked or waiting.count >= CHUNK):
                yield from self._joined(waiting, conditions)
                waiting = _Waiting()
            waiting.add(mine, theirs, checked)
        if waiting.count:
            yield from self._joined(waiting, conditions)

    def _runs(self) -> tuple[np.ndarray, np.ndarray]:
        """For each new row the run of rows of the other input that are in its window."""
        if self.product.node.rows is not None:
            seen, places = self.new[SEEN].to_numpy(), self.other[TIME].to_numpy()
            low = np.searchsorted(places, seen - self.product.node.rows, side="left")
            return low, np.searchsorted(places, seen, side="left")
        bounds = self.product.node.bounds
        after, before = bounds[self.first][1 - self.first], bounds[1 - self.first][self.first]
        times, known = self.new[TIME].to_numpy(), self.other[TIME].to_numpy()
        low = np.zeros(len(times), dtype=np.int64)
        high = np.full(len(times), len(known))
        if before is not None:
            low = np.searchsorted(known, times - before, side="left")
        if after is not None:
            high = np.searchsorted(known, times + after, side="right")
        return low, np.maximum(low, high)

    def _columns(self, side: int, rows: pl.DataFrame) -> dict[str, np.ndarray | None]:
        names, read = self.product.node.names[side], self.product.read
        return {names[own]: numbers(rows[own]) for own in names if names[own] in read}

    def _joined(self, pairs: _Waiting, conditions: Conditions) -> Iterator[pl.DataFrame]:
        """Rows of pairs for which the conditions hold that are left, so many at a time."""
        condition = all_of((*(() if pairs.checked else conditions.quick), *conditions.left))
        mine, theirs = np.concatenate(pairs.mine), np.concatenate(pairs.theirs)
        read = set(columns_of(condition)) if condition is not None else set()
        for at in range(0, len(mine), CHUNK):
            rows = self._rows(mine[at : at + CHUNK], theirs[at : at + CHUNK], read)
            if condition is not None:
                rows = rows.filter(is_true(condition, rows))
            yield rows.select(LOCATOR, *self.product.schema)

    def _rows(self, mine: np.ndarray, theirs: np.ndarray, read: set[str]) -> pl.DataFrame:
        wanted = {*self.product.schema, *read}
        rows = self.new.select(LOCATOR)[pl.Series(mine.astype(np.uint32))]
        for side, frame, places in (
            (self.first, self.new, mine),
            (1 - self.first, self.other, theirs),
        ):
            names = {own: n for own, n in self.product.node.names[side].items() if n in wanted}
            if names:
                part = frame.select(list(names))[pl.Series(places.astype(np.uint32))].rename(names)
                rows = rows.with_columns(part.get_columns())
        return rows


def _blocks(low: np.ndarray, high: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Rows, and the others that any of them can meet, not too many pairs at a time."""
    at = 0
    while at < len(low):
        upto = min(at + BLOCK_ROWS, len(low))
        start, end = int(low[at:upto].min()), int(high[at:upto].max())
        for begin in range(start, end, BLOCK // BLOCK_ROWS):
            yield slice(at, upto), slice(begin, min(end, begin + BLOCK // BLOCK_ROWS))
        at = upto
