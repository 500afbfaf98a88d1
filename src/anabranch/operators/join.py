"""Symmetric joins on equal keys: of two inputs in all kinds, of more as one operator (S2).

State: the rows of every input (tables `in0`, `in1`, …), each until no row still to come can meet it. An
epoch's rows look for the locators they share with what is remembered of the other inputs, and there for
the times within the bounds: rows lie by locator and then by time. Nothing of the combinations in between
is kept, unless the slots have a shape with intermediates (`tree.py`). Rows of an outer side wait until the
watermark says that nothing can meet them any more; which of the remembered ones have met something is in
tables `met0`, `met1`, by their values: rows that are alike have met the same.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from anabranch.language.expression import Named
from anabranch.language.join import FILTERING, Join
from anabranch.language.shape import MOST_INPUTS, JoinShape
from anabranch.operators.base import (
    END_OF_TIME,
    Moment,
    RowByRow,
    Spread,
    add_locator,
    gathered,
    time_of,
)
from anabranch.operators.due import due_times, span_of
from anabranch.operators.lookup import meet
from anabranch.operators.meeting import Meeting, Side
from anabranch.operators.met import MET, JoinInput, MetRecord, at_home, without
from anabranch.operators.owed import owed_by
from anabranch.operators.partials import TIME
from anabranch.operators.residual import Residual
from anabranch.operators.runs import CHUNK
from anabranch.operators.stateless import compute
from anabranch.operators.tracks import tree_results
from anabranch.operators.tree import JoinTree, intermediates
from anabranch.routing.frame import Frame, widen
from anabranch.routing.locator import in_turn
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, NEVER, sort_by_locator
from anabranch.state.table import StateTable

PRESERVED = {"left": (0,), "right": (1,), "full": (0, 1), "anti": (0,)}
"""The inputs whose rows have results also where they meet nothing."""


class SymmetricJoin(RowByRow):
    """Combinations of rows of all inputs with equal keys, within their bounds of time."""

    def __init__(self, node: Join, wanted: Collection[str] | None = None) -> None:
        self.node = node
        self.preserved = PRESERVED.get(node.kind, ())
        shown = [name for name in node.schema if wanted is None or name in wanted]
        self.schema = pl.Schema({name: node.schema[name] for name in shown})
        self.condition = Residual(node.residual, node.schema)
        self.read = self.condition.read
        self.inlets = tuple(
            self._inlet(number, {*shown, *self.read}) for number in range(len(node.parts))
        )
        self.span = span_of(node)
        self._trees: dict[str | JoinShape, JoinTree] = {}

    def _inlet(self, number: int, wanted: set[str]) -> JoinInput:
        names = self.node.names[number]
        payload = tuple(own for own, shown in names.items() if shown in wanted)
        keys = tuple(Named(f"__k{place}", key) for place, key in enumerate(self.node.keys[number]))
        compared = tuple(own for own in payload if names[own] in self.read)
        identity = (*(key.name for key in keys), TIME, *compared)
        return JoinInput(number, keys, payload, {own: names[own] for own in payload}, identity)

    # -- split side -------------------------------------------------------------------------------

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        inlet = self.inlets[input]
        ordered = self.node.parts[input].ordered
        frame = compute(rows, inlet.keys)
        if ordered is None:
            time = pl.zeros(rows.height, pl.Int64, eager=True)
        else:
            time = time_of(rows, ordered) * (ordered.unit or 1)
        due = due_times(self.node, input, time.to_numpy())
        columns = [time.alias(TIME), pl.Series(DUE, due), *rows.select(inlet.payload).get_columns()]
        frame = frame.with_columns(columns)
        names = [key.name for key in inlet.keys]
        frame = add_locator(frame, names, spread)
        if input not in self.preserved:
            return frame.drop_nulls(names)
        return _dealt_out(frame, names, spread.slots) if spread.anywhere else frame

    # -- site side --------------------------------------------------------------------------------

    def advance(
        self, frames: Sequence[Frame | None], state: SiteState, moment: Moment
    ) -> Iterator[pl.DataFrame]:
        # What falls due comes segment by segment and range by range, in many small frames
        yield from gathered(self._results(frames, state, moment), CHUNK)

    def _results(
        self, frames: Sequence[Frame | None], state: SiteState, moment: Moment
    ) -> Iterator[pl.DataFrame]:
        upto = None
        if moment.after is not None:
            upto = NEVER if moment.after >= END_OF_TIME else moment.after
        arrived = []
        for inlet, frame in zip(self.inlets, frames, strict=True):
            rows = None if frame is None else widen(by_time(frame.rows), frame.narrowed)
            if rows is not None and inlet.number in self.preserved:
                keyless = pl.any_horizontal(pl.col(key.name).is_null() for key in inlet.keys)
                yield from self._alone(inlet, at_home(rows.filter(keyless), inlet, state))
                rows = rows.filter(~keyless).with_columns(pl.lit(False).alias(MET))
            arrived.append(rows if rows is not None and rows.height else None)
        if state.shape or state.track:
            yield from tree_results(self, arrived, state, moment.before, upto)
            for inlet in self.inlets:
                self._keep(inlet, MetRecord(arrived, None, state, moment.before), state, upto)
            return
        meeting = meet(self.sides(arrived), state, moment.before, self.node.bounds)
        record = MetRecord(arrived, meeting, state, moment.before)
        if meeting is not None:
            yield from self._combinations(meeting, record, state)
            state.compared += meeting.pairs
            state.warnings += meeting.warnings()
        if self.node.kind == "semi":
            for rows in (record.fresh_met(0), record.first_met(self.inlets[0])):
                yield from self._alone(self.inlets[0], rows)
        for inlet in self.inlets:
            if inlet.number in self.preserved and upto is not None:
                yield from self._unmet(inlet, record, state, moment.before, upto)
        for inlet in self.inlets:
            self._keep(inlet, record, state, upto)

    def tree(self, shape: str | JoinShape) -> JoinTree:
        """What runs a shape, the flat one as one join; or the shape of some of the inputs."""
        if shape not in self._trees:
            self._trees[shape] = JoinTree(self, shape)
        return self._trees[shape]

    @property
    def shapes(self) -> bool:
        """Whether it can run in more than one shape: inner joins of three inputs and more."""
        return self.node.kind == "inner" and 2 < len(self.inlets) <= MOST_INPUTS

    @property
    def spills(self) -> bool:
        """Rows of an outer side would have to know of what is put aside; so would those of a semi-join."""
        return self.node.kind == "inner"

    def owed(self, state: SiteState, cuts: Sequence[int]) -> Iterator[pl.DataFrame]:
        return owed_by(self, state, cuts)

    def sides(self, arrived: Sequence[pl.DataFrame | None]) -> list[Side]:
        """The inputs with rows of each, in order."""
        return [
            Side(inlet.table, [key.name for key in inlet.keys], rows)
            for inlet, rows in zip(self.inlets, arrived, strict=True)
        ]

    def in_order(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Rows of an input as they are remembered."""
        return by_time(rows)

    def joined(
        self, meeting: Meeting, combinations: Iterable[list[np.ndarray]]
    ) -> Iterator[pl.DataFrame]:
        """The joined rows of these combinations of a meeting, if they meet the condition."""
        for chosen in combinations:
            held = self._held(meeting, chosen)
            if len(held[0]):
                yield self._shown(meeting, held)

    def _combinations(
        self, meeting: Meeting, record: MetRecord, state: SiteState
    ) -> Iterator[pl.DataFrame]:
        """The joined rows; for joins that only filter, only what has met something is noted."""
        if self.node.kind in FILTERING:
            check = functools.partial(self._held, meeting) if self.condition else None
            record.met[0] = meeting.met(check)
            return
        for chosen in meeting.combinations():
            held = self._held(meeting, chosen)
            if self.preserved:
                record.note(held)
            if len(held[0]):
                yield at_home(self._shown(meeting, held), self.inlets[0], state)

    def _shown(self, meeting: Meeting, chosen: list[np.ndarray]) -> pl.DataFrame:
        """The combinations as results."""
        names = [LOCATOR, *self.schema]
        return self._joined(meeting, chosen, names).select(names)

    def _held(self, meeting: Meeting, chosen: list[np.ndarray]) -> list[np.ndarray]:
        """The combinations for which the condition holds, told by the columns that it reads alone."""
        if not self.condition:
            return chosen
        # A condition that reads nothing still holds, or not, for each of them
        rows = self._joined(meeting, chosen, self.read or {LOCATOR})
        passed = self.condition.holds(rows)
        if passed.all():
            return chosen
        kept = np.flatnonzero(passed)
        return [places[kept] for places in chosen]

    def _joined(
        self, meeting: Meeting, chosen: list[np.ndarray], names: Collection[str]
    ) -> pl.DataFrame:
        """These columns of the combinations; the locator is that of the first input."""
        columns: list[pl.Series] = []
        for inlet, frame, places in zip(self.inlets, meeting.rows, chosen, strict=True):
            wanted = [own for own, name in inlet.names.items() if name in names]
            if inlet.number == 0 and LOCATOR in names:
                wanted.append(LOCATOR)
            if wanted:
                rows = frame.select(wanted)[pl.Series(places)]
                columns += rows.rename(inlet.names, strict=False).get_columns()
        return pl.DataFrame(columns)

    def _unmet(
        self, inlet: JoinInput, record: MetRecord, state: SiteState, before: int | None, upto: int
    ) -> Iterator[pl.DataFrame]:
        """The rows that nothing can meet any more, and nothing has."""
        met = [*state.due(inlet.met, before, upto), record.first_met(inlet)]
        for rows in gathered(state.due(inlet.table, before, upto), CHUNK):
            unmet = without(rows.filter(~pl.col(MET)), met, inlet)
            yield from self._alone(inlet, at_home(unmet, inlet, state))
        fresh = record.fresh(inlet.number)
        if fresh is not None:
            unmet = fresh.filter(~pl.col(MET) & (pl.col(DUE) <= upto))
            yield from self._alone(inlet, at_home(unmet, inlet, state))

    def _alone(self, inlet: JoinInput, rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Rows of one input as results, with NULL in place of the others."""
        if rows.height == 0:
            return
        own = {name: column for column, name in inlet.names.items()}
        yield rows.select(
            LOCATOR,
            *(
                pl.col(own[name]).cast(kind).alias(name)
                if name in own
                else pl.lit(None, kind).alias(name)
                for name, kind in self.schema.items()
            ),
        )

    def _keep(
        self, inlet: JoinInput, record: MetRecord, state: SiteState, upto: int | None
    ) -> None:
        marked = bool(self.preserved) or self.node.kind in FILTERING
        rows = record.fresh(inlet.number) if marked else record.arrived[inlet.number]
        if rows is not None:
            lasting = rows if upto is None else rows.filter(pl.col(DUE) > upto)
            if self.node.kind in FILTERING and inlet.number == 0:
                lasting = lasting.filter(~pl.col(MET))
            state.append(
                inlet.table,
                lasting if inlet.number in self.preserved else lasting.drop(MET, strict=False),
            )
        if inlet.number in self.preserved or (self.node.kind == "semi" and inlet.number == 0):
            met = record.first_met(inlet).select(LOCATOR, DUE, *inlet.identity)
            met = met.unique(maintain_order=True)
            state.append(inlet.met, met if upto is None else met.filter(pl.col(DUE) > upto))

    @functools.cached_property
    def tables(self) -> tuple[StateTable, ...]:
        kinds = []
        for inlet in self.inlets:
            preserved = inlet.number in self.preserved
            keys = tuple(key.name for key in inlet.keys)
            columns = (*keys, TIME, *inlet.payload, *((MET,) if preserved else ()))
            kinds.append(
                StateTable(inlet.table, columns, by_time, input=inlet.number, open=preserved)
            )
            if preserved or (self.node.kind == "semi" and inlet.number == 0):
                sources = tuple(other.table for other in self.inlets)
                kinds.append(
                    StateTable(
                        inlet.met, inlet.identity, by_time, derived_from=sources,
                        told_by_values=True,
                    )
                )  # fmt: skip
        return (*kinds, *(intermediates(self, by_time) if self.shapes else ()))


def by_time(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of each key in the order of their times."""
    return sort_by_locator(rows, TIME)


def _dealt_out(frame: pl.DataFrame, keys: list[str], slots: int) -> pl.DataFrame:
    """The rows without a key in turn on all slots: else they would all come to one."""
    if not any(frame[key].null_count() for key in keys):
        return frame
    turns = pl.Series(in_turn(frame.height, slots)) * (1 << 48)
    keyless = pl.any_horizontal(pl.col(key).is_null() for key in keys)
    return frame.with_columns(pl.when(keyless).then(turns).otherwise(LOCATOR).alias(LOCATOR))
