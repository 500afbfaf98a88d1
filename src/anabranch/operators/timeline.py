"""Rows of a group in the order of time, each with values of those around it: LAG, LEAD, running sums, RANGE.

The merger (`merger.py`) hands rows on once the watermark has passed them. State: `pending`, what the merger
holds back; `kept`, the last rows of each group, as many as later ones look back at, each with its number and
what has run up to it; `recent`, where RANGE looks back a length of time, the rows of that time. Where rows
wait for following ones, a row is answered when these have come, or when the input has ended.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.language.expression import Named
from anabranch.language.over import NUMBERS, SHIFTS, NamedRowCall
from anabranch.language.timeline import Timeline, runs_on
from anabranch.operators.around import Lineup, aggregated, picked, shifted
from anabranch.operators.base import (
    END_OF_TIME,
    InOneGeneration,
    Moment,
    OneInput,
    RowByRow,
    Spread,
    add_locator,
    no_results,
    results_of,
    time_of,
)
from anabranch.operators.grouping import Groups, group
from anabranch.operators.merger import MERGES, pending
from anabranch.operators.partials import SEQ, TIME
from anabranch.operators.row_arguments import RowArguments
from anabranch.operators.running import Underway, columns_of, run_up, run_value
from anabranch.operators.stateless import compute
from anabranch.routing.frame import Frame
from anabranch.routing.sorting import distinct
from anabranch.settings import TRANSPARENT
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, NEVER, sort_by_locator
from anabranch.state.table import FOR_GOOD, StateTable

KEPT, RECENT = "kept", "recent"
NUMBER, FRESH, FIRST, NO_KEY = "__number", "__fresh", "__first", "__row"


class TimelineRows(InOneGeneration, RowByRow, OneInput):
    """PARTITION BY keys ORDER BY time."""

    def __init__(self, node: Timeline, merger: str = TRANSPARENT) -> None:
        assert node.input.ordered
        self.node = node
        self.merge = MERGES[merger]
        self.span = max(1, node.length // 2) if node.length else NEVER
        self.payload = list(node.input.schema)
        self.keys = [f"__k{number}" for number in range(len(node.keys))]
        self.asked = RowArguments(node.calls, node.input.schema, runs_on)
        self.running = [
            (number, named) for number, named in enumerate(node.calls) if runs_on(named)
        ]
        self.runs = [name for number, named in self.running for name in columns_of(number, named)]
        self.rows = max(1, node.preceding + node.following)
        self.over = node.input.ordered.watermark(END_OF_TIME)

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        assert self.node.input.ordered
        pairs = zip(self.keys, self.node.keys, strict=True)
        keys = [Named(own, key.expression) for own, key in pairs]
        if self.node.first is not None:
            keys.append(Named(FIRST, self.node.first))
        frame = rows.select(self.payload).with_columns(
            *compute(rows, keys).get_columns() if keys else (),
            *self.asked.arguments(rows),
            time_of(rows, self.node.input.ordered).alias(TIME),
            rows[SEQ],
        )
        return add_locator(frame, self.keys, spread)

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        rows = None if frame is None else frame.wide()
        if rows is not None:
            state.groups = rows[LOCATOR].n_unique()
        ready = self.merge(rows, state, moment)
        ends = self.node.following and moment.after is not None and moment.after >= (self.over or 0)
        if ready is not None and self.node.first is not None:
            order = np.lexsort((ready[SEQ], ready[FIRST], ready[TIME]))
            ready = ready[pl.Series(order.astype(np.uint32))]
        if ready is None and not ends:
            return no_results(self.node.schema)
        return self._take(ready, state, moment, bool(ends))

    def _take(
        self, ready: pl.DataFrame | None, state: SiteState, moment: Moment, ends: bool
    ) -> pl.DataFrame:
        """The results of rows whose turn has come; at the end also of those that waited for others."""
        known = self._known(ready, state, moment, ends)
        fresh = None if ready is None else self._begun(ready)
        parts = [part for part in (known, fresh) if part is not None and part.height]
        if not parts:
            return no_results(self.node.schema)
        columns = parts[-1].columns
        # Grouping keeps rows of a group as they come: old ones by their numbers, then the new ones
        groups = group(pl.concat([part.select(columns) for part in parts]), self.keys)
        run = self._numbered(groups)
        line = run.line
        for number, named in self.running:
            names = self.asked.names[number]
            values = run_up(run, number, named, *names)
            line = Lineup(line.rows.with_columns(values), line.starts, line.peers)
        self._remember(line, run, state, moment)
        at = np.flatnonzero(self._answered(run, ends))
        return self._results(line, run, at) if len(at) else no_results(self.node.schema)

    # -- state ------------------------------------------------------------------------------------

    def _known(
        self, ready: pl.DataFrame | None, state: SiteState, moment: Moment, ends: bool
    ) -> pl.DataFrame | None:
        """The rows of earlier epochs that these groups still need, each once, by their numbers."""
        if ends:
            parts = [frame for _, frame in state.frames(KEPT)]
        else:
            assert ready is not None
            locators = distinct(ready[LOCATOR].to_numpy())
            parts = state.probe(KEPT, locators, None)
            if self.node.length:
                parts += state.probe(RECENT, locators, moment.before)
        if not parts:
            return None
        columns = [name for name in parts[0].columns if name != DUE]
        rows = pl.concat([part.select(columns) for part in parts]).rechunk()
        rows = rows.with_columns(pl.lit(False).alias(FRESH)).sort(NUMBER)
        if not self.node.length:
            return rows
        return rows.unique([LOCATOR, *self.keys, NUMBER], keep="first", maintain_order=True)

    def _begun(self, ready: pl.DataFrame) -> pl.DataFrame:
        """New rows, with place for what has run up to them."""
        kinds = self.asked.run_kinds(self.running, ready)
        return ready.with_columns(
            *(pl.lit(None, kind).alias(name) for name, kind in kinds.items()),
            pl.lit(0, pl.Int64).alias(NUMBER),
            pl.lit(True).alias(FRESH),
        )

    def _numbered(self, groups: Groups) -> Underway:
        """The rows with their numbers in their groups since the beginning of the run."""
        rows, starts, ids = groups.rows, groups.starts, groups.ids()
        old = ~rows[FRESH].to_numpy()
        count = np.add.reduceat(old.astype(np.int64), starts)
        last = np.where(count > 0, starts + count - 1, -1)
        number = rows[NUMBER].to_numpy()
        before = np.where(count > 0, number[np.maximum(last, 0)], -1)
        place = np.arange(rows.height) - starts[ids] - count[ids]
        number = np.where(old, number, before[ids] + 1 + place)
        rows = rows.with_columns(pl.Series(NUMBER, number))
        time = rows[TIME].to_numpy()
        opens = np.ones(rows.height, dtype=bool)
        opens[1:] = time[1:] != time[:-1]
        opens[starts] = True
        line = Lineup(rows, starts, np.flatnonzero(opens))
        return Underway(line, old, number, ids, last[ids])

    def _remember(self, line: Lineup, run: Underway, state: SiteState, moment: Moment) -> None:
        own = line.rows.drop(FRESH)
        lasting = ~run.old & (np.arange(line.height) >= line.end() - self.rows)
        never = pl.lit(NEVER, pl.Int64).alias(DUE)
        state.append(KEPT, own.filter(pl.Series(lasting)).with_columns(never))
        if self.node.length:
            due = (pl.col(TIME) + self.node.length + 1).alias(DUE)
            recent = own.filter(pl.Series(~run.old)).with_columns(due)
            if moment.after is not None:
                recent = recent.filter(pl.col(DUE) > moment.after)
            state.append(RECENT, recent)

    def _answered(self, run: Underway, ends: bool) -> np.ndarray:
        """Which rows have got all that they waited for in this epoch."""
        waits = self.node.following
        if not waits:
            return ~run.old
        last_old = np.where(run.last_old >= 0, run.number[np.maximum(run.last_old, 0)], -1)
        last = run.number[run.line.end() - 1]
        newest = last if ends else last - waits
        found: np.ndarray = (run.number > last_old - waits) & (run.number <= newest)
        return found

    # -- results ----------------------------------------------------------------------------------

    def _results(self, line: Lineup, run: Underway, at: np.ndarray) -> pl.DataFrame:
        values: list[pl.Series] = []
        for number, named in enumerate(self.node.calls):
            found = self._value(line, run, at, number, named)
            values += [] if found is None else [found.alias(named.name)]
        for frame, (partials, calls) in self.asked.frames.items():
            values += aggregated(line, frame, at, partials, calls).get_columns()
        rows = line.rows.select(LOCATOR, *self.payload)[pl.Series(at.astype(np.uint32))]
        return results_of(rows.with_columns(values), self.node.schema)

    def _value(
        self, line: Lineup, run: Underway, at: np.ndarray, number: int, named: NamedRowCall
    ) -> pl.Series | None:
        """The values of one call; None for aggregates of bounded frames."""
        call, (value, default) = named.call, self.asked.names[number]
        if runs_on(named):
            return run_value(line, at, number, named)
        if call.function in NUMBERS:
            place = at if call.function == "row_number" else line.peer_first()[at]
            return pl.Series(run.number[place] + 1)
        if call.aggregate is not None:
            return None
        assert value
        if call.function in SHIFTS:
            return shifted(line, call, at, value, default)
        return picked(call, line, at, value)

    @property
    def tables(self) -> tuple[StateTable, ...]:
        own = [*(self.keys or [NO_KEY]), *([FIRST] if self.node.first is not None else ())]
        columns = tuple(dict.fromkeys((*own, TIME, SEQ, *self.asked.columns, *self.payload)))
        numbered = (*columns, NUMBER, *self.runs)
        waits = self.node.following > 0
        kept = StateTable(KEPT, numbered, self._last_ones, FOR_GOOD, open=waits)
        recent = StateTable(RECENT, numbered, sort_by_locator)
        return pending(columns), kept, *((recent,) if self.node.length else ())

    def _last_ones(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The last rows of each group, as many as its results need."""
        groups = group(rows.rechunk().sort(NUMBER), self.keys)
        ends = np.append(groups.starts[1:], rows.height)[groups.ids()]
        lasting = np.arange(rows.height) >= ends - self.rows
        return groups.rows.filter(pl.Series(lasting))
