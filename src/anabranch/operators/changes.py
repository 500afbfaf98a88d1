"""Rows that replace earlier ones, with those they replace: so that a filter can tell who has left.

An update aggregate gives, for a group that has changed, the row of now and, marked, the row of before. Both
go through the same stateless steps. Where the one of now comes out, the other is dropped; where only the
one of before does, its group has left the results, and that is what the marked row says.
"""

from __future__ import annotations

import numpy as np
import polars as pl

MARK, PAIR = "__gone", "__pair"
"""Whether a row is one of before, and what it has in common with the one of now."""


def paired(now: pl.DataFrame, before: pl.DataFrame, places: pl.Series) -> pl.DataFrame:
    """Rows of now with rows of before; `places` has for each of these the number of its successor."""
    numbers = pl.Series(PAIR, np.arange(now.height, dtype=np.uint32))
    now = now.with_columns(pl.lit(False).alias(MARK), numbers)
    before = before.with_columns(pl.lit(True).alias(MARK), places.cast(pl.UInt32).alias(PAIR))
    return pl.concat([now, before])


def without_replaced(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows behind their steps: those of now, and those of before whose successors are not there."""
    if PAIR not in rows.columns:
        return rows
    now = rows.filter(~pl.col(MARK))
    left = rows.filter(pl.col(MARK)).join(now.select(PAIR), on=PAIR, how="anti")
    return pl.concat([now, left]).drop(PAIR)
