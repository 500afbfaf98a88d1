"""A join on a parallel track (P3): two shapes at once, each result given by one of them.

Rows and combinations are old if a row from before the cut is in them. The old shape takes all that comes and
keeps combinations of all kinds, but its root gives only old ones. The new shape knows nothing from before
the cut, and gives the others. Rows of the inputs are kept once for both; so are the combinations that both
shapes keep, of which the new one sees those that are not old.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from anabranch.language.shape import Inputs
from anabranch.operators.lookup import Remembered, meet
from anabranch.operators.meeting import Meeting
from anabranch.operators.partials import TIME
from anabranch.operators.tree import JoinTree, TreeJoin, note
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, sort_by_locator
from anabranch.state.stretch import Stretches

if TYPE_CHECKING:
    from anabranch.operators.join import SymmetricJoin

OLD = "__old"
Fresh = Mapping[Inputs, pl.DataFrame | None]


def tree_results(
    join: SymmetricJoin, arrived: Sequence[pl.DataFrame | None], state: SiteState, before: int | None,
    upto: int | None,
) -> Iterator[pl.DataFrame]:  # fmt: skip
    """The results of a join in the shape that its slots have, or in both that they have."""
    tree = join.tree(state.shape)
    if state.track is None:
        yield from tree.advance(arrived, state, before, upto)
    else:
        tracks = TwoTracks(tree, join.tree(state.track.shape), state, before)
        yield from tracks.advance(arrived, upto, [*join.schema])


class TwoTracks:
    """The joins of an old and of a new shape, over one state."""

    def __init__(self, old: JoinTree, new: JoinTree, state: SiteState, before: int | None) -> None:
        self._old, self._new, self._state, self._before = old, new, state, before
        aged = [ref for ref in state.refs if state.is_old(ref)]
        recent = [ref for ref in state.refs if not state.is_old(ref)]
        self._recent = replace(state, refs=recent)
        self._all = Aged(replace(state, refs=aged), self._recent)

    def advance(
        self, arrived: Sequence[pl.DataFrame | None], upto: int | None, shown: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        """The results of these rows, of both shapes; what is made of intermediates is remembered."""
        made: dict[Inputs, pl.DataFrame | None] = {
            (i,): None if rows is None else rows.with_columns(pl.lit(False).alias(OLD))
            for i, rows in enumerate(arrived)
        }
        for one in self._old.joins[:-1]:
            rows = made[one.inputs] = self._rows(one, made, self._all)
            if rows is not None:
                lasting = rows if upto is None else rows.filter(pl.col(DUE) > upto)
                self._state.append_older(one.table, lasting.filter(OLD).drop(OLD))
                self._state.append(one.table, lasting.filter(~pl.col(OLD)).drop(OLD))
        yield from self._results(self._old.joins[-1], made, self._all, shown)
        fresh: dict[Inputs, pl.DataFrame | None] = {(i,): rows for i, rows in enumerate(arrived)}
        for one in self._new.joins[:-1]:
            if one.inputs in made:
                fresh[one.inputs] = _recent(made[one.inputs])
                continue
            rows = fresh[one.inputs] = self._rows(one, fresh, self._recent)
            if rows is not None:
                lasting = rows if upto is None else rows.filter(pl.col(DUE) > upto)
                self._state.append(one.table, lasting)
        yield from self._results(self._new.joins[-1], fresh, self._recent, shown)

    def _meet(self, one: TreeJoin, fresh: Fresh, remembered: Remembered) -> Meeting | None:
        if all(fresh[part] is None for part in one.parts):
            return None
        return meet(one.sides(fresh), remembered, self._before, one.bounds)

    def _rows(self, one: TreeJoin, fresh: Fresh, remembered: Remembered) -> pl.DataFrame | None:
        """The new rows of an intermediate, in order; those of the old shape say whether they are old."""
        meeting = self._meet(one, fresh, remembered)
        if meeting is None:
            return None
        found = []
        for chosen in one.combinations(meeting):
            rows = one.kept(meeting, chosen)
            if remembered is self._all:
                rows = rows.with_columns(pl.Series(OLD, _old(meeting, chosen)))
            found.append(rows)
        note(self._state, meeting)
        return sort_by_locator(pl.concat(found), TIME) if found else None

    def _results(
        self, root: TreeJoin, fresh: Fresh, remembered: Remembered, shown: Sequence[str]
    ) -> Iterator[pl.DataFrame]:
        """The results of a root: of the old shape those that are old."""
        meeting = self._meet(root, fresh, remembered)
        if meeting is None:
            return
        names = [LOCATOR, *shown]
        for chosen in root.combinations(meeting, given_by_old if remembered is self._all else None):
            yield root.columns(meeting, chosen, names).select(names)
        note(self._state, meeting)


class Aged:
    """All that is remembered, with a word for each row on whether it is old."""

    def __init__(self, aged: SiteState, recent: SiteState) -> None:
        self._parts = ((aged, True), (recent, False))

    def probe(
        self, table: str, asked: np.ndarray | Stretches, after: int | None
    ) -> list[pl.DataFrame]:
        return [
            rows.with_columns(pl.lit(old).alias(OLD))
            for state, old in self._parts
            for rows in state.probe(table, asked, after)
        ]

    def contains(self, table: str, locators: np.ndarray) -> np.ndarray:
        (aged, _), (recent, _) = self._parts
        found: np.ndarray = aged.contains(table, locators) | recent.contains(table, locators)
        return found


def given_by_old(meeting: Meeting, chosen: list[np.ndarray]) -> np.ndarray:
    """Which combinations the root of the old shape gives: those that are old."""
    return _old(meeting, chosen)


def _old(meeting: Meeting, chosen: list[np.ndarray]) -> np.ndarray:
    """Which combinations have a row from before the cut in them."""
    old = np.zeros(len(chosen[0]), dtype=bool)
    for rows, places in zip(meeting.rows, chosen, strict=True):
        old |= rows[OLD].to_numpy()[places]
    return old


def _recent(rows: pl.DataFrame | None) -> pl.DataFrame | None:
    """The rows that are not old."""
    if rows is None:
        return None
    found = rows.filter(~pl.col(OLD)).drop(OLD)
    return found if found.height else None
