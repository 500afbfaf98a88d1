"""Late rows of streams that leave them out of closed windows only: to whom they still go.

They travel apart from the others, each reader's on their own: what one query leaves out another may take.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from anabranch.engine.outbox import Outbox
from anabranch.engine.watermarks import closed_before
from anabranch.operators.changes import without_replaced
from anabranch.operators.late import with_place
from anabranch.operators.stateless import apply
from anabranch.routing.frame import Inlet

_NUMBER = "__late"


def route_late(outbox: Outbox, stream: str, rows: pl.DataFrame, lane: int | None) -> pl.Series:
    """Takes late rows along every path; for each row whether some operator had no place for it at all."""
    plan = outbox.orders.plan
    numbered = rows.with_columns(
        pl.int_range(rows.height, dtype=pl.Int64, eager=True).alias(_NUMBER)
    )
    came: dict[Inlet, np.ndarray] = {}
    stayed: dict[Inlet, np.ndarray] = {}
    for subquery, path in plan.reading(stream):
        inlet = subquery.name, path.input
        stepped = without_replaced(apply(path.steps, numbered))
        read = subquery.node.inputs[path.input].streams if subquery.node.inputs else {stream}
        closed = closed_before(outbox.orders, read)
        kept = stepped
        if closed is not None:
            kept = with_place(subquery.node, path.input, stepped, closed)
        for marks, some in ((came, stepped), (stayed, kept)):
            marks.setdefault(inlet, np.zeros(rows.height, bool))[some[_NUMBER].to_numpy()] = True
        outbox.take(subquery, path, kept.drop(_NUMBER), lane)
    left = np.zeros(rows.height, bool)
    for inlet, found in came.items():
        left |= found & ~stayed[inlet]
    return pl.Series(left)
