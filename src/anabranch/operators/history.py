"""Operators that see a group's rows one after another: histories (Flux), count windows (StreamCloud).

In which order rows come, and when, is the merger's affair (`merger.py`). Every row of a group gets the next
number; the last k of each group stay (table `kept`).
"""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl

from anabranch.language.groups import Aggregate, History
from anabranch.language.window import END, START, CountWindow
from anabranch.operators.base import (
    NO_KEY,
    InOneGeneration,
    Moment,
    OneInput,
    RowByRow,
    Spread,
    add_locator,
    as_time,
    evaluate,
    no_results,
    results_of,
)
from anabranch.operators.functions import finish, partials_for
from anabranch.operators.grouping import Groups, cuts, group, reduce
from anabranch.operators.merger import MERGES, pending
from anabranch.operators.partials import SEQ, TIME
from anabranch.routing.frame import Frame
from anabranch.routing.ranges import expand
from anabranch.routing.sorting import distinct
from anabranch.settings import TRANSPARENT
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, NEVER
from anabranch.state.table import FOR_GOOD, StateTable

KEPT = "kept"
NUMBER = "__number"
_FRESH = "__fresh"


class OrderedAggregate(InOneGeneration, RowByRow, OneInput):
    """Aggregates over the last rows of a group: on every row, or on every `advance`-th."""

    def __init__(self, node: Aggregate | History, merger: str = TRANSPARENT) -> None:
        assert node.input.ordered
        self.node = node
        self.merge = MERGES[merger]
        self.stamps = node.input.ordered.timestamps
        self.span = NEVER
        self.partials = partials_for(node.aggregates, node.input.schema)
        self.keys = [f"__k{number}" for number in range(len(node.keys))]
        if isinstance(node, History):
            self.rows, self.payload = node.rows, list(node.input.schema)
        else:
            assert isinstance(node.window, CountWindow)
            self.rows, self.payload = node.window.size, []

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        frame = evaluate(self.node, self.partials, rows, in_order=True)
        frame = frame.rename(
            {key.name: own for key, own in zip(self.node.keys, self.keys, strict=True)}
        )
        frame = frame.with_columns(rows.select(self.payload).get_columns())
        return add_locator(frame, self.keys, spread)

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        rows = None if frame is None else frame.wide()
        if rows is not None:
            state.groups = rows[LOCATOR].n_unique()
        ready = self.merge(rows, state, moment)
        return no_results(self.node.schema) if ready is None else self._take(ready, state)

    def _take(self, ready: pl.DataFrame, state: SiteState) -> pl.DataFrame:
        """The results of rows whose turn has come, in their order."""
        locators = distinct(ready[LOCATOR].to_numpy())
        fresh = ready.with_columns(
            pl.lit(NEVER, pl.Int64).alias(DUE),
            pl.lit(0, pl.Int64).alias(NUMBER),
            pl.lit(True).alias(_FRESH),
        )
        known = [
            part.with_columns(pl.lit(False).alias(_FRESH)).select(fresh.columns)
            for part in state.probe(KEPT, locators, None)
        ]
        # Grouping keeps rows of a group as they come: old ones by their numbers, then the new ones
        older = [pl.concat(known).rechunk().sort(NUMBER)] if known else []
        groups = self._numbered(group(pl.concat([*older, fresh]), self.keys))
        rows, starts = groups.rows, groups.starts
        ids = groups.ids()
        ends = np.append(starts[1:], rows.height)
        is_fresh = rows[_FRESH].to_numpy()
        lasting = is_fresh & (np.arange(rows.height) >= ends[ids] - self.rows)
        state.append(KEPT, rows.filter(pl.Series(lasting)).drop(_FRESH))
        return self._results(rows, starts[ids], is_fresh)

    def _numbered(self, groups: Groups) -> Groups:
        """Every row with its number in its group since the beginning of the run."""
        rows, starts, ids = groups.rows, groups.starts, groups.ids()
        number = rows[NUMBER].to_numpy().copy()
        old = ~rows[_FRESH].to_numpy()
        old_count = np.add.reduceat(old.astype(np.int64), starts)
        last_old = np.where(old_count > 0, number[np.maximum(starts + old_count - 1, 0)], -1)
        place = np.arange(rows.height) - starts[ids] - old_count[ids]
        number = np.where(old, number, last_old[ids] + 1 + place)
        return Groups(rows.with_columns(pl.Series(NUMBER, number)), starts)

    def _results(self, rows: pl.DataFrame, first: np.ndarray, fresh: np.ndarray) -> pl.DataFrame:
        """The aggregates of every row that asks for them, over the rows up to it."""
        asks = fresh
        if isinstance(self.node, Aggregate) and isinstance(self.node.window, CountWindow):
            number = rows[NUMBER].to_numpy() - (self.node.window.size - 1)
            asks = fresh & (number >= 0) & (number % self.node.window.advance == 0)
        at = np.flatnonzero(asks)
        low = np.maximum(first[at], at - self.rows + 1)
        length = at - low + 1
        found = [
            self._chunk(rows, at[a:b], low[a:b], length[a:b])
            for a, b in itertools.pairwise(cuts(length))
        ]
        return pl.concat(found) if found else no_results(self.node.schema)

    def _chunk(
        self, rows: pl.DataFrame, at: np.ndarray, low: np.ndarray, length: np.ndarray
    ) -> pl.DataFrame:
        needed = [LOCATOR, TIME, SEQ]
        needed += [partial.argument for partial in self.partials if partial.argument]
        members = rows.select(list(dict.fromkeys(needed)))[expand(low, length)]
        starts = np.cumsum(length) - length
        values = reduce(Groups(members, starts), [], self.partials, merge=False)
        names = [part.name for part in self.node.aggregates]
        values = finish(values, self.partials, names).select(names)
        if isinstance(self.node, History):
            result = rows.select(LOCATOR, *self.payload)[at].with_columns(values.get_columns())
        else:
            pairs = {own: key.name for key, own in zip(self.node.keys, self.keys, strict=True)}
            # By time, also where the merger does not put rows in its order
            time = members[TIME].to_numpy()
            bounds = pl.DataFrame(
                {
                    START: np.minimum.reduceat(time, starts),
                    END: np.maximum.reduceat(time, starts),
                }
            )
            stamped = bounds.select(as_time(pl.all(), self.stamps)).get_columns()
            keys = rows.select(LOCATOR, *self.keys)[at].rename(pairs)
            result = keys.with_columns(*stamped, *values.get_columns())
        return results_of(result, self.node.schema)

    @property
    def tables(self) -> tuple[StateTable, ...]:
        arguments = dict.fromkeys(part.argument for part in self.partials if part.argument)
        keys = self.keys or [NO_KEY]
        columns = (*keys, TIME, SEQ, *arguments, *self.payload)
        kept = StateTable(KEPT, (*columns, NUMBER), self._last_ones, FOR_GOOD)
        return pending(columns), kept

    def _last_ones(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The last rows of each group, as many as its results need."""
        groups = group(rows.rechunk().sort(NUMBER), self.keys)
        ends = np.append(groups.starts[1:], rows.height)[groups.ids()]
        lasting = np.arange(rows.height) >= ends - self.rows
        return groups.rows.filter(pl.Series(lasting))
