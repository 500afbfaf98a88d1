"""Bugs of state and of joins that `planted.py` plants: what is kept, merged, purged, owed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from anabranch.control import shapes
from anabranch.engine import remembering
from anabranch.operators import owed, tracks
from anabranch.operators.join import SymmetricJoin
from anabranch.operators.looked_up import LookedUp
from anabranch.operators.ranked import RankedRows
from anabranch.operators.timeline import NUMBER, TimelineRows
from anabranch.operators.tree import TreeJoin
from anabranch.routing.grid import Scattered
from anabranch.routing.shaped import Track
from anabranch.state.segment import LOCATOR
from anabranch.state.shelf import Shelf
from anabranch.state.table import StateTable
from anabranch.testing.bug import Bug, Wrong, nothing


def _one_segment_less(right: Wrong) -> Wrong:
    def careless(*arguments: Any) -> Any:
        written, masked = right(*arguments)
        return written[1:], masked

    return careless


def _purged_early(right: Wrong) -> Wrong:
    def eager(self: Shelf, added: Any, masked: Any, passed: int | None, *spared: Any) -> Any:
        return right(self, added, masked, None if passed is None else passed + 2, *spared)

    return eager


def _merged_goes_on(right: Wrong) -> Wrong:
    def forgetful(self: Shelf, added: Any, masked: Any, *others: Any) -> Any:
        return right(self, added, (), *others)

    return forgetful


def _spared_nothing(right: Wrong) -> Wrong:
    def eager(self: Shelf, added: Any, masked: Any, passed: int | None, *spared: Any) -> Any:
        return right(self, added, masked, passed)

    return eager


def _of_any_generation(right: Wrong) -> Wrong:
    return lambda meeting: meeting.combinations()


def _given_twice(right: Wrong) -> Wrong:
    def again(*arguments: Any) -> Iterator[pl.DataFrame]:
        for rows in right(*arguments):
            yield rows
            yield rows.head(1)

    return again


def _in_all_cells(right: Wrong) -> Wrong:
    return lambda self, input: [self.cells]


def _best_of_part_is_best(right: Wrong) -> Wrong:
    """Takes only the very first of each part of a group for the best of it."""

    def hasty(self: RankedRows, rows: pl.DataFrame) -> pl.DataFrame:
        found: pl.DataFrame = right(self, rows)
        return found if self.node.limit is None else found.unique(LOCATOR, maintain_order=True)

    return hasty


def _oldest_are_last(right: Wrong) -> Wrong:
    def confused(self: TimelineRows, rows: pl.DataFrame) -> pl.DataFrame:
        found: pl.DataFrame = right(self, rows.with_columns(-pl.col(NUMBER)))
        return found.with_columns(-pl.col(NUMBER))

    return confused


def _last_is_enough(right: Wrong) -> Wrong:
    def sparing(self: TimelineRows, rows: pl.DataFrame) -> pl.DataFrame:
        found: pl.DataFrame = right(self, rows)
        return found.unique([LOCATOR, *self.keys], keep="last", maintain_order=True)

    return sparing


def _merged_to_one(right: Any) -> Any:
    """Of the best rows of a group, a merge of segments keeps the first alone."""

    def hasty(self: RankedRows) -> tuple[StateTable, ...]:
        def first_of(rows: pl.DataFrame) -> pl.DataFrame:
            found = self._best(rows)
            return found if self.node.limit is None else found.unique(LOCATOR, maintain_order=True)

        return tuple(replace(table, merge=first_of) for table in right.fget(self))

    return property(hasty)


def _last_row_missing(right: Wrong) -> Wrong:
    return lambda *arguments: right(*arguments).slice(0, right(*arguments).height - 1)


def _nothing_masked(right: Wrong) -> Wrong:
    def careless(*arguments: Any) -> Any:
        written, _ = right(*arguments)
        return written, []

    return careless


def _all_given(right: Wrong) -> Wrong:
    def careless(meeting: Any, chosen: list[np.ndarray]) -> np.ndarray:
        return np.ones(len(chosen[0]), dtype=bool)

    return careless


def _newest_overlooked(right: Wrong) -> Wrong:
    def hasty(known: tuple[Track, ...], remembered: Any) -> Any:
        earlier = [Track(one.first, one.end, one.shape, one.cut - 1) for one in known]
        return right(earlier, remembered)

    return hasty


STATE_BUGS = (
    Bug("best-rows-forgotten", "of the best rows of a window, each part of the input keeps one alone",
        ((RankedRows, "_best"),), _best_of_part_is_best),
    Bug("best-rows-merged-to-one", "of the best rows of a window, a merge of segments keeps one alone",
        ((RankedRows, "tables"),), _merged_to_one),
    Bug("kept-rows-merged-to-oldest", "of the rows of a group, a merge keeps the first, not the last",
        ((TimelineRows, "_last_ones"),), _oldest_are_last),
    Bug("kept-rows-merged-to-one", "of the rows of a group, a merge keeps one, however many are needed",
        ((TimelineRows, "_last_ones"),), _last_is_enough),
    Bug("kept-rows-forgotten", "the rows of a group begin anew with every epoch",
        ((TimelineRows, "_known"),), nothing(None)),
    Bug("merge-forgets-segment", "the first segment that compaction writes is not remembered",
        ((remembering, "compact"),), _one_segment_less),
    Bug("mask-not-applied", "segments that were merged into others go on counting",
        ((Shelf, "change"),), _merged_goes_on),
    Bug("due-row-purged-early", "state is given back two units before it is due",
        ((Shelf, "change"),), _purged_early),
    Bug("outer-row-twice", "a row of an outer side that met nothing is given twice",
        ((SymmetricJoin, "_unmet"),), _given_twice),
    Bug("owed-pairs-forgotten", "what rows of different generations give with each other is not given",
        ((SymmetricJoin, "owed"),), nothing(())),
    Bug("owed-pairs-repeated", "what rows of one generation have given is given again at the clean-up",
        ((owed, "_of_several_generations"),), _of_any_generation),
    Bug("owed-rows-purged", "rows that are due go although they owe results",
        ((Shelf, "change"),), _spared_nothing),
    Bug("gathered-state-left", "the state of a key that has cooled stays in its cells",
        ((remembering, "gather_state"),), nothing(None)),
    Bug("gathered-rows-doubled", "every cell gives back what it has of a key that has cooled",
        ((Scattered, "homes"),), _in_all_cells),
    Bug("grid-state-left", "the state of a grid that is laid anew does not go to its new cells",
        ((remembering, "regrid_state"),), nothing(None)),
    Bug("intermediate-not-made-again", "a join gets another shape, and what it lacks for it is not made",
        ((TreeJoin, "all_rows"),), nothing(())),
    Bug("intermediate-left-behind", "a join gets another shape, and what does not match it goes on counting",
        ((remembering, "reshape"),), _nothing_masked),
    Bug("new-rows-on-both-tracks", "on a track the old shape gives what new rows give with each other, too",
        ((tracks, "given_by_old"),), _all_given),
    Bug("track-ended-early", "a track ends an epoch before the rows from before its cut are gone",
        ((shapes, "remaining_slots"),), _newest_overlooked),
    Bug("table-row-missing", "rows are joined with a table that lacks its last row",
        ((LookedUp, "_content"),), _last_row_missing),
    Bug("scattered-state-left", "the state of a hot key does not go to its cells",
        ((remembering, "scatter_state"),), nothing(None)),
)  # fmt: skip
