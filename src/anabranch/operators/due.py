"""How long the rows of a join are kept: until no row still to come can meet them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anabranch.language.join import Join
from anabranch.state.segment import NEVER


def due_times(node: Join, number: int, time: np.ndarray) -> np.ndarray:
    """The watermark of the streams from which on no row can come that a row of this time meets."""
    return due_together(node, {number: time})


def due_together(node: Join, times: Mapping[int, np.ndarray]) -> np.ndarray:
    """The same for combinations of rows of some inputs, by the time of each of their rows."""
    count = len(next(iter(times.values())))
    due = np.full(count, -NEVER)
    for other, part in enumerate(node.parts):
        if other in times:
            continue
        bounds = [(time, node.bounds[number][other]) for number, time in times.items()]
        latest = [time + most for time, most in bounds if most is not None]
        if not latest or part.ordered is None or part.ordered.unit is None:
            return np.full(count, NEVER)
        # What meets the combination meets all of its rows
        reached = np.minimum.reduce(latest) // part.ordered.unit + 1
        due = np.maximum(due, part.ordered.source_time(reached))
    return due


def all_go(node: Join) -> bool:
    """Whether the rows of every input go at some time."""
    zero = np.zeros(1, dtype=np.int64)
    return all(due_times(node, number, zero)[0] < NEVER for number in range(len(node.parts)))


def span_of(node: Join) -> int:
    """The due times that may share a segment: half of how far apart rows can be that meet."""
    if not node.bounded:
        return NEVER
    inputs = range(len(node.parts))
    bounds = node.bounds
    reach = max((bounds[i][j] or 0) + (bounds[j][i] or 0) for i in inputs for j in inputs if i != j)
    units = [part.ordered.unit or 1 for part in node.parts if part.ordered]
    return max(1, reach // 2, *units)
