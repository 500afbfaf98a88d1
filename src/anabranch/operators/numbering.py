"""Numbers the rows of an input in the order of two: what a join within a number of rows goes by.

Every row gets its number in its own input, and how many rows of the other input came before it. All rows
of both come to one site; of the other input only their times. The order is that of time; at equal times
rows of the first input come first, and those of one input as they arrived. So it does not depend on how
the inputs were cut into epochs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import polars as pl

from anabranch.language.numbered import PLACE, SEEN, Numbered
from anabranch.operators.base import (
    InOneGeneration,
    Moment,
    RowByRow,
    Spread,
    add_locator,
    time_of,
)
from anabranch.operators.merger import MERGES, pending
from anabranch.operators.partials import SEQ, TIME
from anabranch.routing.frame import Frame
from anabranch.settings import TRANSPARENT
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, LOCATOR, NEVER
from anabranch.state.table import FOR_GOOD, StateTable

COUNTS = "counts"
_OTHER = "__other"


class Numbering(InOneGeneration, RowByRow):
    """The rows of the first input with their numbers."""

    span = NEVER

    def __init__(
        self, node: Numbered, wanted: Collection[str] | None = None, merger: str = TRANSPARENT
    ) -> None:
        self.node = node
        self.merge = MERGES[merger]
        self.payload = [name for name in node.input.schema if wanted is None or name in wanted]

    def intake(self, rows: pl.DataFrame, spread: Spread, input: int = 0) -> pl.DataFrame:
        ordered = self.node.inputs[input].ordered
        assert ordered
        columns = [time_of(rows, ordered).alias(TIME), rows[SEQ]]
        columns += rows.select([] if input else self.payload).get_columns()
        return add_locator(pl.DataFrame(columns), [], spread)

    def advance(
        self, frames: Sequence[Frame | None], state: SiteState, moment: Moment
    ) -> Iterator[pl.DataFrame]:
        arrived = [
            frame.wide().with_columns(pl.lit(bool(number)).alias(_OTHER))
            for number, frame in enumerate(frames)
            if frame is not None
        ]
        rows = None
        if arrived:
            empty = pl.DataFrame(
                schema={name: self.node.input.schema[name] for name in self.payload}
            )
            names = [LOCATOR, TIME, SEQ, _OTHER, *self.payload]
            rows = pl.concat([*arrived, empty], how="diagonal").select(names)
        ready = self.merge(rows, state, moment)
        if ready is None:
            return
        ready = self._in_order(ready)
        other = ready[_OTHER].to_numpy()
        before = self._counts(state)
        place = before[0] + np.cumsum(~other) - 1
        seen = before[1] + np.cumsum(other)
        head = ready.head(1).select(LOCATOR)
        state.append(
            COUNTS,
            head.with_columns(
                pl.Series(PLACE, [before[0] + int((~other).sum())]),
                pl.Series(SEEN, [before[1] + int(other.sum())]),
                pl.lit(NEVER, pl.Int64).alias(DUE),
            ),
        )
        numbered = ready.with_columns(pl.Series(PLACE, place), pl.Series(SEEN, seen))
        yield numbered.filter(~pl.col(_OTHER)).select(LOCATOR, *self.payload, PLACE, SEEN)

    def _in_order(self, rows: pl.DataFrame) -> pl.DataFrame:
        """With the rows of the first input of the join before those of the second, at the same time."""
        if self.merge is not MERGES[TRANSPARENT]:
            return rows.sort(pl.col(_OTHER) ^ (not self.node.first), maintain_order=True)
        second = rows[_OTHER].to_numpy() ^ (not self.node.first)
        order = np.lexsort((rows[SEQ].to_numpy(), second, rows[TIME].to_numpy()))
        return rows[pl.Series(order.astype(np.uint32))]

    def _counts(self, state: SiteState) -> tuple[int, int]:
        known = state.due(COUNTS, None, NEVER)
        if not known:
            return 0, 0
        most = pl.concat(known).select(pl.col(PLACE).max(), pl.col(SEEN).max()).row(0)
        return int(most[0]), int(most[1])

    @property
    def tables(self) -> tuple[StateTable, ...]:
        counts = StateTable(COUNTS, (PLACE, SEEN), _highest, FOR_GOOD)
        return pending((TIME, SEQ, _OTHER, *self.payload)), counts


def _highest(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.sort(PLACE, SEEN).tail(1)
