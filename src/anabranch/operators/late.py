"""Late rows that an operator still has a place for: those of windows that have not closed.

Judged by the sender, by the watermark before the epoch in which a row came. So it does not matter where the
row waits on its way, nor how far its slot has come when it is worked on.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.language.groups import Aggregate
from anabranch.language.node import Node
from anabranch.language.ranked import Ranked
from anabranch.language.stateful import Stateful
from anabranch.language.window import Everything, Hop, Tumble
from anabranch.operators.base import time_of

FIRST = "__first"
"""The first of the hopping windows of a row that it counts in, by number."""


def with_place(node: Node, input: int, rows: pl.DataFrame, watermark: int) -> pl.DataFrame:
    """The rows of one input that a node still takes, given the watermark of the streams.

    Tumbling and hopping windows, and rows of windows among each other, take what falls into a window that is
    open; an aggregate without windows, and stateless work, all of it; every other operator what is not
    older than its own watermark.
    """
    if not isinstance(node, Stateful):
        return rows
    window = node.window if isinstance(node, Aggregate) else None
    ordered = node.inputs[input].ordered
    if ordered is None or isinstance(window, Everything):
        return rows
    mark = ordered.watermark(watermark)
    assert mark is not None
    time = time_of(rows, ordered).to_numpy()
    match window, node:
        case Tumble(size), _:
            due = (time // size + 1) * size
        case Hop(size, slide), _:
            due = time // slide * slide + size
            first = pl.lit((mark - size) // slide + 1, pl.Int64).alias(FIRST)
            rows = rows.with_columns(first)
        case _, Ranked():
            due = (time // node.size + 1) * node.size
        case _:
            due = time + 1
    return rows.filter(pl.Series(np.asarray(due > mark)))
