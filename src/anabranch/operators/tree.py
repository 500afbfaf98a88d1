"""A join of several inputs as a tree: what lies between its inputs and its results is kept (P1).

Every join of the tree is symmetric: its new rows are the combinations of its parts with a new row in them,
and each is made once. Those of an intermediate are new rows of the join above it, in the same epoch, and go
to a table of their own until no row of the other inputs can meet them. So the tables of a tree hold all
combinations of the rows that its inputs remember, whichever way they came to be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.language.bounds import Bounds
from anabranch.language.expression import Expression, columns_of
from anabranch.language.shape import (
    M_WAY,
    Inputs,
    JoinShape,
    inputs_of,
    read_shape,
    subsets,
)
from anabranch.operators.base import gathered
from anabranch.operators.due import due_together
from anabranch.operators.lookup import meet
from anabranch.operators.meeting import Meeting, Side
from anabranch.operators.partials import TIME
from anabranch.operators.residual import Residual, can_raise
from anabranch.operators.runs import CHUNK
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, sort_by_locator
from anabranch.state.table import StateTable

if TYPE_CHECKING:
    from anabranch.operators.join import SymmetricJoin


Given = Callable[[Meeting, list[np.ndarray]], np.ndarray]
"""Which combinations of a meeting are asked for."""


def table_of(inputs: Inputs) -> str:
    """The table of the rows of an input, or of the combinations of several."""
    return f"{'in' if len(inputs) == 1 else 'mid'}{''.join(map(str, inputs))}"


def time_column(number: int, inputs: Inputs) -> str:
    """Where rows of these inputs have the time of one of them; they lie by that of the first."""
    return TIME if number == inputs[0] else f"{TIME}{number}"


def intermediates(
    join: SymmetricJoin, merge: Callable[[pl.DataFrame], pl.DataFrame]
) -> Iterator[StateTable]:
    """The tables of all combinations that the shapes of a join may keep."""
    keys = tuple(key.name for key in join.inlets[0].keys)
    numbers = tuple(range(len(join.inlets)))
    for some in subsets(numbers):
        if some != numbers:
            payload = (name for i in some for name in join.inlets[i].names.values())
            columns = (*keys, *(time_column(i, some) for i in some), *payload)
            sources = tuple(join.inlets[i].table for i in some)
            yield StateTable(table_of(some), columns, merge, derived_from=sources, between=True)


class TreeJoin:
    """One join of a tree: of inputs and of intermediates."""

    def __init__(self, join: SymmetricJoin, shape: JoinShape) -> None:
        self._join = join
        self.inputs = shape.inputs
        self.table = table_of(shape.inputs)
        self.parts = tuple(inputs_of(part) for part in shape.parts)
        self.keys = [key.name for key in join.inlets[0].keys]
        limits = join.node.bounds
        self.bounds: Bounds = tuple(
            tuple(limits[mine[0]][other[0]] for other in self.parts) for mine in self.parts
        )
        self.limits = list(self._beyond(limits))
        self.condition = Residual(self._conjuncts(), join.node.schema)

    def _beyond(self, limits: Bounds) -> Iterator[tuple[int, int, int]]:
        """For two inputs of different parts how much later the second can be, where no lookup says so."""
        for at, mine in enumerate(self.parts):
            for other in self.parts[:at] + self.parts[at + 1 :]:
                for i in mine:
                    for j in other:
                        most = limits[i][j]
                        if most is not None and (i, j) != (mine[0], other[0]):
                            yield i, j, most

    def _conjuncts(self) -> list[Expression]:
        """What must hold of its rows that does not have to hold of a part of it already."""
        whole = len(self.inputs) == len(self._join.inlets)
        return [
            one
            for one in self._join.node.residual
            if (whole or self._tells(one, self.inputs))
            and not any(self._tells(one, part) for part in self.parts if len(part) > 1)
        ]

    def _tells(self, condition: Expression, inputs: Inputs) -> bool:
        """Whether a condition is about these inputs alone, and can be asked of what is in no result yet."""
        if can_raise(condition, self._join.node.schema):
            return False
        shown = {name for i in inputs for name in self._join.inlets[i].names.values()}
        read = set(columns_of(condition))
        return bool(read) and read <= shown

    def sides(self, fresh: Mapping[Inputs, pl.DataFrame | None]) -> list[Side]:
        """Its parts with their rows of this epoch."""
        return [Side(table_of(part), self.keys, fresh[part]) for part in self.parts]

    def combinations(
        self, meeting: Meeting, given: Given | None = None
    ) -> Iterator[list[np.ndarray]]:
        """The combinations of a meeting of its parts that its rows are; if asked for, only some of them."""
        for chosen in meeting.combinations():
            if given is not None:
                asked = given(meeting, chosen)
                chosen = [places[asked] for places in chosen]
            held = np.ones(len(chosen[0]), dtype=bool)
            for i, j, most in self.limits:
                held &= self._time(meeting, chosen, j) - self._time(meeting, chosen, i) <= most
            some = chosen if held.all() else [places[held] for places in chosen]
            if self.condition and len(some[0]):
                rows = self.columns(meeting, some, self.condition.read)
                passed = self.condition.holds(rows)
                some = some if passed.all() else [places[passed] for places in some]
            if len(some[0]):
                yield some

    def _time(self, meeting: Meeting, chosen: list[np.ndarray], number: int) -> np.ndarray:
        at = next(at for at, part in enumerate(self.parts) if number in part)
        times = meeting.rows[at][time_column(number, self.parts[at])].to_numpy()
        found: np.ndarray = times[chosen[at]]
        return found

    def columns(
        self, meeting: Meeting, chosen: list[np.ndarray], names: Collection[str]
    ) -> pl.DataFrame:
        """These columns of the combinations, as results call them; the locator is that of the first part."""
        found: list[pl.Series] = []
        for at, (part, frame, places) in enumerate(
            zip(self.parts, meeting.rows, chosen, strict=True)
        ):
            shown = self._shown(part)
            wanted = [own for own, name in shown.items() if name in names]
            if at == 0:
                wanted += [name for name in (LOCATOR, *self.keys) if name in names]
            if wanted:
                found += (
                    frame.select(wanted)[pl.Series(places)]
                    .rename(shown, strict=False)
                    .get_columns()
                )
        if not found:
            return self.columns(meeting, chosen, {LOCATOR})
        return pl.DataFrame(found)

    def _shown(self, part: Inputs) -> Mapping[str, str]:
        """The columns of a part and what they are called in results: intermediates have those names."""
        if len(part) == 1:
            return self._join.inlets[part[0]].names
        return {name: name for i in part for name in self._join.inlets[i].names.values()}

    def kept(self, meeting: Meeting, chosen: list[np.ndarray]) -> pl.DataFrame:
        """The combinations as rows of an intermediate."""
        names = {
            LOCATOR, *self.keys,
            *(name for i in self.inputs for name in self._join.inlets[i].names.values()),
        }  # fmt: skip
        times = {number: self._time(meeting, chosen, number) for number in self.inputs}
        return self.columns(meeting, chosen, names).with_columns(
            pl.Series(DUE, due_together(self._join.node, times)),
            *(pl.Series(time_column(i, self.inputs), time) for i, time in times.items()),
        )

    def all_rows(self, state: SiteState, before: int | None) -> Iterator[pl.DataFrame]:
        """All its rows, made anew of what is remembered of its parts, so many at a time."""
        fresh = {part: _lasting(state, table_of(part), before) for part in self.parts}
        nothing = replace(state, refs=[], opened={})
        meeting = meet(self.sides(fresh), nothing, None, self.bounds)
        if meeting is None:
            return
        made = (self.kept(meeting, chosen) for chosen in self.combinations(meeting))
        for rows in gathered(made, CHUNK):
            kept = rows if before is None else rows.filter(pl.col(DUE) > before)
            if kept.height:
                yield sort_by_locator(kept, TIME)
        state.compared += meeting.pairs


class JoinTree:
    """All joins of a tree, each after those that it is made of."""

    def __init__(self, join: SymmetricJoin, shape: str | JoinShape) -> None:
        self._join = join
        if isinstance(shape, str):
            shape = read_shape(shape or M_WAY, len(join.inlets))
        self.joins = [TreeJoin(join, one) for one in shape.joins]

    def advance(
        self, arrived: Sequence[pl.DataFrame | None], state: SiteState, before: int | None,
        upto: int | None,
    ) -> Iterator[pl.DataFrame]:  # fmt: skip
        """The results of these rows; what is made of intermediates on the way is remembered."""
        fresh: dict[Inputs, pl.DataFrame | None] = {(i,): rows for i, rows in enumerate(arrived)}
        *below, root = self.joins
        for one in below:
            made = list(self._rows(one, fresh, state, before))
            rows = sort_by_locator(pl.concat(made), TIME) if made else None
            fresh[one.inputs] = rows
            if rows is not None:
                state.append(one.table, rows if upto is None else rows.filter(pl.col(DUE) > upto))
        shown = [LOCATOR, *self._join.schema]
        meeting = self._meet(root, fresh, state, before)
        if meeting is not None:
            for chosen in root.combinations(meeting):
                yield root.columns(meeting, chosen, shown).select(shown)
            note(state, meeting)

    def _meet(
        self, one: TreeJoin, fresh: Mapping[Inputs, pl.DataFrame | None], state: SiteState,
        before: int | None,
    ) -> Meeting | None:  # fmt: skip
        if all(fresh[part] is None for part in one.parts):
            return None
        return meet(one.sides(fresh), state, before, one.bounds)

    def _rows(
        self, one: TreeJoin, fresh: Mapping[Inputs, pl.DataFrame | None], state: SiteState,
        before: int | None,
    ) -> Iterator[pl.DataFrame]:  # fmt: skip
        meeting = self._meet(one, fresh, state, before)
        if meeting is not None:
            for chosen in one.combinations(meeting):
                yield one.kept(meeting, chosen)
            note(state, meeting)


def _lasting(state: SiteState, table: str, before: int | None) -> pl.DataFrame | None:
    """All rows of a table that can still meet something."""
    frames = [frame for _, frame in state.frames(table)]
    if not frames:
        return None
    rows = pl.concat([frame.select(frames[0].columns) for frame in frames])
    rows = rows if before is None else rows.filter(pl.col(DUE) > before)
    return sort_by_locator(rows, TIME) if rows.height else None


def note(state: SiteState, meeting: Meeting) -> None:
    """Takes over what a meeting has looked at, and has to say."""
    state.compared += meeting.pairs
    state.warnings += meeting.warnings()
