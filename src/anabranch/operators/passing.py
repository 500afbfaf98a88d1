"""Stateless work as a subquery of its own: rows arrive, meet steps, and go on.

The usual place of stateless steps is the splitter before an exchange, where they cost no hop. This is
for plans that give them sites of their own, or that bring the results of a query to one site.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from anabranch.operators.base import (
    Moment,
    OneInput,
    RowByRow,
    Spread,
    no_results,
)
from anabranch.operators.stateless import Step, apply
from anabranch.routing.frame import Frame
from anabranch.routing.hashing import hash_columns
from anabranch.routing.locator import locator, slot_of
from anabranch.state.group import SiteState
from anabranch.state.segment import LOCATOR, NEVER
from anabranch.state.table import StateTable


class Passing(RowByRow, OneInput):
    """Rows on their way through steps; nothing is remembered."""

    span = NEVER
    spills = True

    def __init__(self, columns: Sequence[str], steps: Sequence[Step], schema: pl.Schema) -> None:
        self.columns = columns
        self.steps = steps
        self.schema = schema

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        if isinstance(spread.placed, np.ndarray):
            partition = spread.placed
        else:
            terms = spread.terms or ()
            partition = slot_of(hash_columns(list(terms), rows.height), spread.slots)
        number = np.arange(rows.height, dtype=np.uint64)
        # The locator first: without a column a frame has no height, and steps may read none
        located = rows.with_columns(pl.Series(LOCATOR, locator(partition, number)))
        return located.select(*self.columns, LOCATOR)

    def step(self, frame: Frame | None, state: SiteState, moment: Moment) -> pl.DataFrame:
        return no_results(self.schema) if frame is None else apply(self.steps, frame.wide())

    def owed(self, state: SiteState, cuts: Sequence[int]) -> Iterable[pl.DataFrame]:
        return ()

    @property
    def tables(self) -> tuple[StateTable, ...]:
        return ()
