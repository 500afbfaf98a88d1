"""Aggregates over tumbling and hopping windows, and over everything.

State: one row of partial aggregates per group and window (tumbling) or pane (hopping), due when the
last window that needs it ends. Rows are only appended; parts of the same group meet when the window
closes, or when segments are merged. Session and count windows are in `session.py` and `history.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from anabranch.language.groups import Aggregate
from anabranch.language.lateness import meets_late
from anabranch.language.window import END, START, Everything, Hop, Tumble
from anabranch.operators.base import (
    Moment,
    OneInput,
    Spread,
    add_locator,
    as_time,
    evaluate,
    no_results,
    results_of,
    salted,
    time_of,
)
from anabranch.operators.changes import PAIR, paired
from anabranch.operators.functions import finish, ordered_by_time, partials_for
from anabranch.operators.grouping import MAX_EXPANDED, OPEN, group, reduce
from anabranch.operators.late import FIRST
from anabranch.routing.frame import Frame
from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import locator, slot_of_locator
from anabranch.routing.ranges import expand
from anabranch.routing.sorting import distinct
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, NEVER
from anabranch.state.table import BY_WATERMARK, FOR_GOOD, StateTable

PANE = "__pane"


class WindowedAggregate(OneInput):
    """GROUP BY keys and a window."""

    combines = True

    def __init__(self, node: Aggregate, marked: bool = False) -> None:
        self.node = node
        self.marked = marked
        self.partials = partials_for(node.aggregates, node.input.schema)
        self.keys = [key.name for key in node.keys]
        self.grouping = [DUE, *self.keys]
        match node.window:
            case Tumble(size):
                self.span = size
            case Hop(size, slide):
                self.span = max(slide, size // 8)
                # A late row counts in the last few of its windows only
                self.late = meets_late(node.input)
                self.grouping = [PANE, *([FIRST] if self.late else []), DUE, *self.keys]
            case _:
                self.span = NEVER

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        frame = evaluate(self.node, self.partials, rows, ordered_by_time(self.partials))
        if isinstance(self.node.window, Everything):
            due = np.full(rows.height, NEVER)
            return add_locator(frame.with_columns(pl.Series(DUE, due)), self.keys, spread)
        assert self.node.input.ordered
        time = time_of(rows, self.node.input.ordered).to_numpy()
        if isinstance(self.node.window, Tumble):
            number = time // self.node.window.size
            frame = frame.with_columns(pl.Series(DUE, (number + 1) * self.node.window.size))
            return add_locator(frame, self.keys, spread, number)
        assert isinstance(self.node.window, Hop)
        size, slide = self.node.window.size, self.node.window.slide
        number = time // math.gcd(size, slide)
        due = time // slide * slide + size
        frame = frame.with_columns(pl.Series(PANE, number), pl.Series(DUE, due))
        if self.late:
            frame = frame.with_columns(
                rows[FIRST] if FIRST in rows.columns else pl.lit(-NEVER, pl.Int64).alias(FIRST)
            )
        return add_locator(frame, self.keys, spread, number)

    def combine(self, frame: Frame) -> pl.DataFrame:
        return self._partial(frame, combined=False)

    @property
    def spills(self) -> bool:
        """A window that closes takes in parts of all generations; results of open ones need them at once."""
        return self.node.emit == "final"

    def owed(self, state: SiteState, cuts: Sequence[int]) -> Iterable[pl.DataFrame]:
        return ()  # windows of slots that are put aside stay open

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        delta = None if frame is None else self._partial(frame, self.is_combined(frame))
        state.groups = 0 if delta is None else delta.height
        if self.node.emit == "update":
            return self._update(delta, state, moment)
        if self.node.emit == "once":
            return self._once(delta, state, moment)
        if isinstance(self.node.window, Hop):
            return self._hop(delta, state, moment)
        return self._tumble(delta, state, moment)

    def is_combined(self, frame: Frame) -> bool:
        return bool(self.partials) and self.partials[0].columns[0] in frame.rows.columns

    def _partial(self, frame: Frame, combined: bool) -> pl.DataFrame:
        groups = group(frame.rows, self.grouping, frame.narrowed)
        return reduce(groups, self.grouping, self.partials, merge=combined)

    def _tumble(self, delta: pl.DataFrame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        if moment.after is None:
            self._keep(delta, state)
            return self._results([])
        closing = state.due(OPEN, moment.before, moment.after)
        if delta is None:
            return self._results(closing)
        due = delta[DUE]
        self._keep(delta.filter(due > moment.after), state)
        known = max((_newest(part[DUE]) for part in closing), default=None)
        if known is None:
            return self._results([delta.filter(due <= moment.after)])
        # Windows that began and ended within the epoch have no other parts
        closing.append(delta.filter(due <= min(known, moment.after)))
        whole = delta.filter((due > known) & (due <= moment.after))
        return pl.concat([self._results(closing), self._results([whole])])

    def _update(self, delta: pl.DataFrame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        if delta is None:
            return self._results([])
        kept = state.probe(OPEN, distinct(delta[LOCATOR].to_numpy()), moment.before)
        merged = self._merged(pl.concat([delta, *kept])) if kept else delta
        # A locator may bring a stranger along: only groups of this epoch have changed
        changed = merged.join(delta.select(self.grouping), on=self.grouping, how="semi",
                              nulls_equal=True) if kept else merged  # fmt: skip
        open_still = delta if moment.after is None else delta.filter(pl.col(DUE) > moment.after)
        self._keep(open_still, state)
        if not self.marked:
            return self._finish(changed)
        before = self._merged(pl.concat(kept)) if kept else delta.clear()
        numbered = changed.select(self.grouping).with_row_index(PAIR)
        replaced = before.join(numbered, on=self.grouping, nulls_equal=True, maintain_order="left")
        return paired(self._finish(changed), self._finish(replaced.drop(PAIR)), replaced[PAIR])

    def _once(self, delta: pl.DataFrame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        """The groups that were not there before."""
        if delta is None:
            return self._results([])
        kept = state.probe(OPEN, distinct(delta[LOCATOR].to_numpy()), moment.before)
        known = pl.concat([part.select(self.grouping) for part in kept]) if kept else None
        fresh = delta if known is None else delta.join(
            known, on=self.grouping, how="anti", nulls_equal=True, maintain_order="left"
        )  # fmt: skip
        self._keep(
            fresh if moment.after is None else fresh.filter(pl.col(DUE) > moment.after), state
        )
        return self._finish(fresh)

    def _hop(self, delta: pl.DataFrame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        assert isinstance(self.node.window, Hop)
        size, slide = self.node.window.size, self.node.window.slide
        after = moment.after
        if delta is not None:
            self._keep(delta if after is None else delta.filter(pl.col(DUE) > after), state)
        last = None if after is None else (after - size) // slide
        first = None if moment.before is None else (moment.before - size) // slide + 1
        if last is None or (first is not None and first > last):
            return self._results([])
        # Panes due later than this begin after the last window that closes
        panes = state.due(OPEN, moment.before, last * slide + 2 * size)
        panes += [] if delta is None else [delta]
        if not panes:
            return self._results([])
        rows = pl.concat(panes)
        start = rows[PANE].to_numpy() * math.gcd(size, slide)
        low, high = (start - size) // slide + 1, np.minimum(start // slide, last)
        if first is not None:
            low = np.maximum(low, first)
        if self.late:
            low = np.maximum(low, rows[FIRST].to_numpy())
        return self._close_hops(rows, low, high, self.node.window)

    def _close_hops(
        self, rows: pl.DataFrame, low: np.ndarray, high: np.ndarray, window: Hop
    ) -> pl.DataFrame:
        """Results of the windows numbered low..high that each pane row belongs to."""
        found = []
        keys = [DUE, *self.keys]
        wanted = high >= low
        if not wanted.any():
            return self._results([])
        begin, end = int(low[wanted].min()), int(high[wanted].max())
        step = max(1, MAX_EXPANDED // rows.height)
        # Panes of one window have different locators: regroup by the keys and the window
        hashes = hash_columns([rows[key] for key in self.keys], rows.height)
        partition = slot_of_locator(rows[LOCATOR].to_numpy())
        while begin <= end:
            # Skip over stretches without data, as when time jumps
            begin = int(np.maximum(low[wanted & (high >= begin)], begin).min())
            upto = min(end, begin + step - 1)
            first = np.maximum(low, begin)
            count = np.maximum(np.minimum(high, upto) - first + 1, 0)
            source = np.repeat(np.arange(rows.height), count)
            at = expand(np.zeros(rows.height, dtype=np.int64), count)
            number = np.repeat(first, count) + at
            part = rows[source].with_columns(
                pl.Series(DUE, number * window.slide + window.size),
                pl.Series(LOCATOR, locator(partition[source], salted(hashes[source], number))),
            )
            found.append(reduce(group(part, keys), keys, self.partials, merge=True))
            begin = upto + 1
        return self._finish(pl.concat(found))

    @property
    def tables(self) -> tuple[StateTable, ...]:
        partials = [name for partial in self.partials for name in partial.columns]
        columns = (*(name for name in self.grouping if name not in (LOCATOR, DUE)), *partials)
        # What has been told in full once needs no rows to be told again
        kept = isinstance(self.node.window, Everything)
        told = self.node.emit != "final"
        goes = FOR_GOOD if kept else BY_WATERMARK
        return (StateTable(OPEN, columns, self._merged, goes, open=not told),)

    def _merged(self, rows: pl.DataFrame) -> pl.DataFrame:
        return reduce(group(rows, self.grouping), self.grouping, self.partials, merge=True)

    def _keep(self, rows: pl.DataFrame | None, state: SiteState) -> None:
        if rows is not None:
            state.append(OPEN, rows)

    def _results(self, parts: list[pl.DataFrame]) -> pl.DataFrame:
        filled = [part for part in parts if part.height]
        if not filled:
            return no_results(self.node.schema)
        merged = self._merged(pl.concat(filled)) if len(filled) > 1 else filled[0]
        return self._finish(merged)

    def _finish(self, merged: pl.DataFrame) -> pl.DataFrame:
        rows = finish(merged, self.partials, [part.name for part in self.node.aggregates])
        ordered = self.node.input.ordered
        stamps = ordered is not None and ordered.timestamps
        match self.node.window:
            case Tumble(size, str(index)):
                number = pl.col(DUE) // size - 1
                value = as_time(number, stamps) if size == 1 else number
                rows = rows.with_columns(value.alias(index))
            case Tumble(size) | Hop(size):
                rows = rows.with_columns(
                    as_time(pl.col(DUE) - size, stamps).alias(START),
                    as_time(pl.col(DUE), stamps).alias(END),
                )
        return results_of(rows, self.node.schema)


def _newest(due: pl.Series) -> int:
    newest = due.max()
    assert isinstance(newest, int)
    return newest
