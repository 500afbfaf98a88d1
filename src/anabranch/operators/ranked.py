"""Rows of windows among each other, given when the window closes: numbered, in any order, the best few.

State (table `open`): the rows of open windows, due when they end; with a limit only those that are still
among the best of their group. A row that is not among the best of a part of its group is not among the best
of all of it: senders, epochs and merges of segments each drop what they can.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from anabranch.language.expression import Column, Named
from anabranch.language.over import NUMBERS, SHIFTS, NamedRowCall, can_run
from anabranch.language.ranked import Ranked
from anabranch.operators.around import Lineup, aggregated, numbers, picked, shifted
from anabranch.operators.base import (
    Moment,
    OneInput,
    Spread,
    add_locator,
    no_results,
    results_of,
    time_of,
)
from anabranch.operators.grouping import OPEN, Groups, group
from anabranch.operators.partials import TIME
from anabranch.operators.row_arguments import RowArguments
from anabranch.operators.running import begun, run_up, run_value
from anabranch.operators.stateless import compute
from anabranch.routing.frame import Frame
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, sort_by_locator
from anabranch.state.table import StateTable

_GROUP = "__group"


class RankedRows(OneInput):
    """PARTITION BY a window and keys, ORDER BY anything."""

    spills = True

    def __init__(self, node: Ranked) -> None:
        self.node = node
        self.payload = list(node.input.schema)
        self.span = node.size
        self.keys = [_column(key, f"__k{at}") for at, key in enumerate(node.keys)]
        order = [Named(f"__o{at}", sort.expression) for at, sort in enumerate(node.order)]
        self.order = [_column(part, part.name) for part in order]
        self.asked = RowArguments(node.calls, node.input.schema, self._runs)
        computed = [*zip(self.keys, node.keys, strict=True), *zip(self.order, order, strict=True)]
        self.computed = [
            Named(own, part.expression) for own, part in computed if own.startswith("__")
        ]
        # Rows in the same place are told apart by all they have
        self.content = [name for name in self.payload if name not in self.order]
        self.timed = any(frame.by_time and frame.before is not None for frame in node.frames)
        self.combines = node.limit is not None

    # -- senders ----------------------------------------------------------------------------------

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        assert self.node.input.ordered
        time = time_of(rows, self.node.input.ordered)
        number = time.to_numpy() // self.node.size
        frame = rows.select(self.payload).with_columns(
            *compute(rows, self.computed).get_columns() if self.computed else (),
            *self.asked.arguments(rows),
            pl.Series(DUE, (number + 1) * self.node.size),
            *([time.alias(TIME)] if self.timed else ()),
        )
        return add_locator(frame, self.keys, spread, number)

    def combine(self, frame: Frame) -> pl.DataFrame:
        return self._best(frame.wide())

    def is_combined(self, frame: Frame) -> bool:
        return True  # the best of a part look like any rows

    # -- sites ------------------------------------------------------------------------------------

    def owed(self, state: SiteState, cuts: Sequence[int]) -> Iterable[pl.DataFrame]:
        return ()  # windows of slots that are put aside stay open

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        delta = None if frame is None else self._best(frame.wide())
        # What senders could have left of the rows
        state.groups = 0 if delta is None else delta.height
        after = moment.after
        closing = [] if after is None else state.due(OPEN, moment.before, after)
        if delta is not None:
            over = pl.lit(False) if after is None else pl.col(DUE) <= after
            state.append(OPEN, delta.filter(~over))
            closing.append(delta.filter(over))
        closing = [part for part in closing if part.height]
        if not closing:
            return no_results(self.node.schema)
        rows = pl.concat([part.select(closing[0].columns) for part in closing])
        return self._results(self._lined(rows))

    @property
    def tables(self) -> tuple[StateTable, ...]:
        own = [*self.payload, *(part.name for part in self.computed), *self.asked.columns]
        columns = (*dict.fromkeys(own), *([TIME] if self.timed else ()))
        return (StateTable(OPEN, columns, self._best, open=True),)

    def _best(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that can still be among the best of their group, sorted by locator."""
        if self.node.limit is None:
            return sort_by_locator(rows)
        groups = group(rows, [DUE, *self.keys])
        if self.node.limit.most == 1:
            groups = self._front(groups)
        if groups.count == groups.rows.height and self.node.limit.most > 0:
            return groups.rows
        line = self._ordered(groups)
        return line.rows.filter(pl.Series(self._within(line)))

    def _front(self, groups: Groups) -> Groups:
        """The groups without rows that are behind the first in their order, as far as numbers tell."""
        at, starts = np.arange(groups.rows.height), groups.starts
        for name, sort in zip(self.order, self.node.order, strict=True):
            column = groups.rows[name]
            plain = column.dtype.is_integer() or column.dtype.is_temporal()
            if len(at) == len(starts) or not plain or column.null_count():
                break
            values = column.to_physical().to_numpy()[at]
            first = np.maximum if sort.descending else np.minimum
            lengths = np.diff(starts, append=len(at))
            ahead = values == np.repeat(first.reduceat(values, starts), lengths)
            left = np.add.reduceat(ahead, starts, dtype=np.int64)
            at, starts = at[ahead], np.cumsum(left) - left
        if len(at) == groups.rows.height:
            return groups
        return Groups(groups.rows[pl.Series(at.astype(np.uint32))], starts)

    def _within(self, line: Lineup) -> np.ndarray:
        assert self.node.limit
        found: np.ndarray = numbers(line, self.node.limit.function) <= self.node.limit.most
        return found

    def _lined(self, rows: pl.DataFrame) -> Lineup:
        return self._ordered(group(rows, [DUE, *self.keys]))

    def _ordered(self, groups: Groups) -> Lineup:
        """The rows of each group in their order."""
        ids = pl.Series(_GROUP, groups.ids())
        rows = groups.rows.with_columns(ids)
        descending = [False, *(sort.descending for sort in self.node.order)]
        nulls_last = [False, *(not sort.nulls_first for sort in self.node.order)]
        by = [_GROUP, *self.order]
        ordered = rows.sort(by, descending=descending, nulls_last=nulls_last, maintain_order=True)
        peers = _changes(ordered, by)
        if len(peers) < rows.height and self.content:
            # Only those that share a place: most rows are told apart by where they are in the order
            ordered = _part_peers(ordered, peers, self.content)
        return Lineup(ordered.drop(_GROUP), groups.starts, peers)

    def _runs(self, named: NamedRowCall) -> bool:
        """Whether an aggregate is of all rows up to each one."""
        frame = named.call.frame
        prefix = frame.before is None and not frame.whole
        return prefix and can_run(named.call, self.node.input.schema)

    def _results(self, line: Lineup) -> pl.DataFrame:
        at = np.arange(line.height)
        values: list[pl.Series] = []
        running = [(n, named) for n, named in enumerate(self.node.calls) if self._runs(named)]
        kinds = self.asked.run_kinds(running, line.rows)
        room = [pl.lit(None, kind).alias(name) for name, kind in kinds.items()]
        run = begun(Lineup(line.rows.with_columns(room), line.starts, line.peers))
        for number, named in enumerate(self.node.calls):
            call, (value, default) = named.call, self.asked.names[number]
            if self._runs(named):
                up = line.rows.with_columns(run_up(run, number, named, value, default))
                there = Lineup(up, line.starts, line.peers)
                values.append(run_value(there, at, number, named).alias(named.name))
                continue
            if call.function in NUMBERS:
                values.append(pl.Series(named.name, numbers(line, call.function)))
            elif call.aggregate is None:
                assert value
                found = (
                    shifted(line, call, at, value, default)
                    if call.function in SHIFTS
                    else picked(call, line, at, value)
                )
                values.append(found.alias(named.name))
        for frame, (partials, calls) in self.asked.frames.items():
            values += aggregated(line, frame, at, partials, calls).get_columns()
        rows = line.rows.with_columns(values)
        if self.node.limit is not None:
            rows = rows.filter(pl.Series(self._within(line)))
        return results_of(rows, self.node.schema)


def _column(named: Named, own: str) -> str:
    """The column of the input that an expression is, or one of its own."""
    return named.expression.name if isinstance(named.expression, Column) else own


def _part_peers(rows: pl.DataFrame, peers: np.ndarray, names: Sequence[str]) -> pl.DataFrame:
    """The rows, those that share a place in the order of these columns, smallest first."""
    lengths = np.diff(peers, append=rows.height)
    place = np.repeat(np.arange(len(peers), dtype=np.uint32), lengths)
    where = np.flatnonzero(np.repeat(lengths > 1, lengths))
    shared = rows.select(names)[pl.Series(where.astype(np.uint32))]
    shared = shared.with_columns(pl.Series(_GROUP, place[where]))
    order = np.arange(rows.height, dtype=np.uint32)
    order[where] = where[shared.select(pl.arg_sort_by([_GROUP, *names])).to_series().to_numpy()]
    return rows[pl.Series(order)]


def _changes(rows: pl.DataFrame, names: Sequence[str]) -> np.ndarray:
    """The places at which one of these columns differs from the row before; NULL equals NULL."""
    changed = np.zeros(rows.height, dtype=bool)
    changed[:1] = True
    for name in names:
        column = rows[name]
        changed[1:] |= column[1:].ne_missing(column[:-1]).to_numpy()
    return np.flatnonzero(changed)
