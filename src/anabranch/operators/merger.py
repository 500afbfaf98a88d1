"""Input mergers (StreamCloud): how the rows of all senders come to an operator that depends on their order.

- *transparent*: in the order of time, then of arrival. A row waits, as state (table `pending`), until
  the watermark has passed it: no sender can have an earlier one then. So the results are those of one
  site that reads everything, however rows were cut into pieces, epochs and senders. A sender that has
  nothing to send must not hold up the others. StreamCloud's senders make up dummy rows with their time;
  here every split tells every site in every epoch how far its streams have come, and a stream that has
  been idle for long no longer counts.
- *best-effort*: as they come. Nothing waits and nothing is sorted, so results appear in the epoch of their
  rows, but depend on how rows were cut and on the number of sites. Within an epoch senders come in turn,
  so a task that is run again gives the same.

Only histories, count windows and joins within a number of rows need a merger. Other aggregates do not depend
on the order of rows: first and last, too, go by time and arrival whatever the merger, within the rows they
are taken of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import polars as pl

from anabranch.operators.base import Moment
from anabranch.operators.partials import SEQ, TIME
from anabranch.settings import BEST_EFFORT, TRANSPARENT
from anabranch.state.group import SiteState
from anabranch.state.segment import DUE, sort_by_locator
from anabranch.state.table import StateTable

PENDING = "pending"
"""The table of rows that wait for the watermark."""


def pending(columns: tuple[str, ...]) -> StateTable:
    """That table, for rows with these columns."""
    return StateTable(PENDING, columns, sort_by_locator, open=True)


Merger: TypeAlias = Callable[[pl.DataFrame | None, SiteState, Moment], pl.DataFrame | None]
"""From the rows of an epoch to those whose turn has come, in their order; None if there are none."""


def merge_transparently(
    rows: pl.DataFrame | None, state: SiteState, moment: Moment
) -> pl.DataFrame | None:
    """Rows the watermark has passed, these and older ones, by time and arrival; the others wait."""
    ready: list[pl.DataFrame] = []
    if moment.after is not None:
        ready = [part.drop(DUE) for part in state.due(PENDING, moment.before, moment.after)]
    if rows is not None:
        passed = pl.lit(False) if moment.after is None else pl.col(TIME) < moment.after
        held = rows.filter(~passed).with_columns((pl.col(TIME) + 1).alias(DUE))
        state.append(PENDING, sort_by_locator(held))
        ready.append(rows.filter(passed))
    ready = [part for part in ready if part.height]
    if not ready:
        return None
    # In one chunk: of several, Polars 2.1 gathers lists of strings into arrays that Arrow refuses
    merged = pl.concat([part.select(ready[0].columns) for part in ready]).rechunk()
    order = np.lexsort((merged[SEQ].to_numpy(), merged[TIME].to_numpy()))
    return merged[pl.Series(order.astype(np.uint32))]


def merge_as_they_come(
    rows: pl.DataFrame | None, state: SiteState, moment: Moment
) -> pl.DataFrame | None:
    """The rows of the epoch, at once, as their senders sent them."""
    return rows


MERGES: Mapping[str, Merger] = {TRANSPARENT: merge_transparently, BEST_EFFORT: merge_as_they_come}
