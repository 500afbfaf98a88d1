"""Aggregates over session windows: a group's rows with less than `gap` between neighbours.

State: partial sessions (start, last, partial aggregates), due at last + gap. When some fall due, the
other parts of the same groups are looked up: a chain of parts that reaches beyond the watermark is
still open, and its due parts are carried on to the time the chain is due. So the cost of an epoch
follows the sessions that grew or ended, not those that are open.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.language.groups import Aggregate
from anabranch.language.window import END, START, SessionGap
from anabranch.operators.base import (
    InOneGeneration,
    Moment,
    OneInput,
    Spread,
    add_locator,
    as_time,
    evaluate,
    no_results,
    results_of,
    time_of,
)
from anabranch.operators.functions import finish, ordered_by_time, partials_for
from anabranch.operators.grouping import GROUP, OPEN, Groups, group, reduce
from anabranch.operators.partials import TIME
from anabranch.routing.frame import Frame
from anabranch.routing.sorting import distinct
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR
from anabranch.state.table import StateTable

FIRST, LAST = "__first", "__last"
_REACH = "__reach"


class SessionAggregate(InOneGeneration, OneInput):
    """GROUP BY keys and a session window."""

    combines = True

    def __init__(self, node: Aggregate) -> None:
        assert isinstance(node.window, SessionGap)
        assert node.input.ordered
        self.node = node
        self.gap = node.window.gap
        self.span = self.gap
        self.stamps = node.input.ordered.timestamps
        self.partials = partials_for(node.aggregates, node.input.schema)
        self.keys = [key.name for key in node.keys]

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        assert self.node.input.ordered
        frame = evaluate(self.node, self.partials, rows, ordered_by_time(self.partials))
        if TIME not in frame.columns:
            frame = frame.with_columns(time_of(rows, self.node.input.ordered).alias(TIME))
        return add_locator(frame, self.keys, spread)

    def combine(self, frame: Frame) -> pl.DataFrame:
        return self._sessions(frame.wide(), merge=False)

    def is_combined(self, frame: Frame) -> bool:
        return FIRST in frame.rows.columns

    def _sessions(self, rows: pl.DataFrame, merge: bool) -> pl.DataFrame:
        """Rows or partial sessions joined into (partial) sessions, in locator order."""
        if not merge:
            time = pl.col(TIME)
            rows = rows.with_columns(
                time.alias(FIRST), time.alias(LAST), (time + self.gap).alias(DUE)
            )
        chains = self._chains(rows)
        heads = chains.rows[chains.starts]
        ids = pl.Series(GROUP, chains.ids()).set_sorted()
        bounds = (
            chains.rows.select(FIRST, LAST, DUE)
            .with_columns(ids)
            .group_by(GROUP, maintain_order=True)
            .agg(pl.col(FIRST).min(), pl.col(LAST).max(), pl.col(DUE).max())
            .drop(GROUP)
        )
        parts = reduce(chains, [], self.partials, merge)
        columns = [*bounds.get_columns(), *parts.drop(LOCATOR).get_columns()]
        names = [name for partial in self.partials for name in partial.columns]
        return heads.with_columns(columns).select(LOCATOR, DUE, *self.keys, FIRST, LAST, *names)

    def _chains(self, rows: pl.DataFrame) -> Groups:
        """Groups of rows that belong to one session as far as these rows tell."""
        grouped = group(rows, self.keys)
        ids = grouped.ids()
        first = grouped.rows[FIRST].to_numpy()
        order = np.lexsort((first, ids))
        ordered = grouped.rows[order].with_columns(pl.Series(GROUP, ids[order]))
        # Sorted by start, a row joins the session if it starts before all earlier ones are over
        reach = ordered.select(
            pl.col(LAST).cum_max().shift(1).over(GROUP).alias(_REACH)
        ).to_series()
        begins = ((ordered[FIRST] - reach) >= self.gap).fill_null(True).to_numpy()
        return Groups(ordered.drop(GROUP), np.flatnonzero(begins))

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        empty = no_results(self.node.schema)
        rows = frame.wide() if frame else None
        delta = None if rows is None else self._sessions(rows, merge=FIRST in rows.columns)
        state.groups = 0 if delta is None else delta.height
        if moment.after is None:
            if delta is not None:
                state.append(OPEN, delta)
            return empty
        due = state.due(OPEN, moment.before, moment.after)
        later = None
        if delta is not None:
            over = pl.col(DUE) <= moment.after
            due.append(delta.filter(over))
            later = delta.filter(~over)
            state.append(OPEN, later)
        due = [part for part in due if part.height]
        if not due:
            return empty
        locators = distinct(np.concatenate([part[LOCATOR].to_numpy() for part in due]))
        near = state.probe(OPEN, locators, moment.after)
        if later is not None:
            known = pl.Series(np.isin(later[LOCATOR].to_numpy(), locators))
            near.append(later.filter(known))
        chains = self._chains(pl.concat([*due, *near]))
        ids = chains.ids()
        reach = np.maximum.reduceat(chains.rows[DUE].to_numpy(), chains.starts)
        closed = pl.Series(reach <= moment.after)[ids]
        self._carry(chains.rows.with_columns(pl.Series(_REACH, reach[ids])), ids, moment, state)
        finished = chains.rows.filter(closed)
        return self._finish(finished) if finished.height else empty

    def _carry(self, rows: pl.DataFrame, ids: np.ndarray, moment: Moment, state: SiteState) -> None:
        """Keeps the due parts of sessions that go on until the time their session is due."""
        waiting = (pl.col(DUE) <= moment.after) & (pl.col(_REACH) > moment.after)
        tagged = rows.with_columns(pl.Series(GROUP, ids))
        carried = tagged.filter(waiting).with_columns(pl.col(_REACH).alias(DUE))
        if carried.height == 0:
            return
        number = carried[GROUP].to_numpy()
        starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
        groups = Groups(carried, starts)
        bounds = pl.DataFrame(
            {
                FIRST: np.minimum.reduceat(carried[FIRST].to_numpy(), starts),
                LAST: np.maximum.reduceat(carried[LAST].to_numpy(), starts),
            }
        )
        parts = reduce(groups, [DUE, *self.keys], self.partials, merge=True)
        merged = parts.with_columns(bounds.get_columns())
        names = [name for partial in self.partials for name in partial.columns]
        state.append(OPEN, merged.select(LOCATOR, DUE, *self.keys, FIRST, LAST, *names))

    @property
    def tables(self) -> tuple[StateTable, ...]:
        partials = [name for partial in self.partials for name in partial.columns]
        columns = (*self.keys, FIRST, LAST, *partials)
        return (StateTable(OPEN, columns, self._joined, open=True),)

    def _joined(self, rows: pl.DataFrame) -> pl.DataFrame:
        return self._sessions(rows, merge=True)

    def _finish(self, rows: pl.DataFrame) -> pl.DataFrame:
        merged = self._sessions(rows, merge=True)
        results = finish(merged, self.partials, [part.name for part in self.node.aggregates])
        results = results.with_columns(
            as_time(pl.col(FIRST), self.stamps).alias(START),
            as_time(pl.col(LAST) + self.gap, self.stamps).alias(END),
        )
        return results_of(results, self.node.schema)
