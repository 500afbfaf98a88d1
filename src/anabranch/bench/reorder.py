"""Joins whose best shape changes on the way: fixed shapes, and the one that follows; nothing is emulated.

Three streams on one key. In the first half B and C bring a twentieth of A's rows; in the second A falls to a
twentieth, and B rises. What A or B gives with C must meet a condition that few pairs do, what A and B give
with each other need not. So at first what B and C make together is worth keeping, later what A and C make;
what A and B make is dear. In-process: what is measured is the join, by the time of its processor.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.matches import MATCHES, by_matches
from anabranch.bench.matches import REPEATS as REPEATS_OF_MATCHES
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.bench.shape_runs import (
    ADAPTIVE,
    TREES,
    Frames,
    ShapeCourse,
    expected_digest,
    run_in_turn,
)
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

ROWS = 60_000
"""Rows of a fast stream in an epoch; slow ones have a twentieth."""
SLOWER = 20
KEYS = 1_200
EPOCHS = (2, 18, 18)
"""Epochs in which all streams are slow, then A alone is fast, then B alone."""
SETTLING = 9
"""Epochs of each half that are not counted: state of the time before is still there, and shapes change."""
SECONDS = 100
"""What an epoch covers; rows meet within so many epochs on either side."""
REACH = 5
REPEATS = 3
"""Runs of each shape, in turn; of each epoch the least time counts, for others only add to it."""
FAST = ("", "a", "b")
SQL = (
    "SELECT a.t AS t, a.v AS x, b.v AS y, c.v AS z FROM a "
    f"JOIN b ON a.k = b.k AND b.t BETWEEN a.t - {REACH * SECONDS} AND a.t + {REACH * SECONDS} "
    f"JOIN c ON a.k = c.k AND c.t BETWEEN a.t - {REACH * SECONDS} AND a.t + {REACH * SECONDS} "
    "AND b.v > c.v + 93 AND a.v > c.v + 80"
)
NOTES = (
    f"{KEYS} keys; rows meet within {REACH} epochs on either side. Of pairs of B and C one in 476 "
    "suits, of A and C one in 53, of A and B all.",
    f"The first {SETTLING} epochs of each half are not counted: state of the time before is still there.",
    f"rows_per_s is by the time of the processor, of each epoch of a fixed shape the least of {REPEATS} "
    "runs in turn: what else the machine does only adds to it. Of the adaptive runs, which may change at "
    "different times, it is that of the one in the middle, as it was. over_best is what the adaptive run "
    "does against the best of the fixed shapes in that half, the lesser of both; over_worst what it does "
    "over all epochs against the worst of them. pairs_per_row says what shapes do whatever the machine does; "
    "settled_after the epochs of each half until the last change of shape was there, in the run where "
    "that took longest in that half.",
    "matches: streams of one rate, where a row meets so many of each other one; of pairs of B and C one in "
    "476 suits. time_over_best is the time of the adaptive run against the fastest fixed shape: shapes are "
    "chosen for time, and state is told beside it.",
    "One process, no Spark: two sites, one after the other; nothing is flushed to the disk.",
)


def run_reorder(quick: bool, steps: Steps) -> Result:
    """All fixed shapes and the adaptive run over the same rows; with `quick`, half of the rows."""
    rows = ROWS // 2 if quick else ROWS
    before = load()
    frames = _frames(rows)
    repeats = 2 if quick else REPEATS
    shapes = (*TREES, ADAPTIVE)
    steps.expect(1 + len(MATCHES) + len(shapes) * (repeats + REPEATS_OF_MATCHES * len(MATCHES)))
    steps.begin("DuckDB, all at once")
    expected = expected_digest(frames, SQL)
    courses = run_in_turn(frames, SQL, shapes, repeats, steps)
    runs = {shape: _figures(course) for shape, course in courses.items()}
    equal = all(run.pop("digest") == expected for run in runs.values())
    halves = [
        max(runs[shape]["halves"][half] for shape in TREES) for half in range(len(EPOCHS) - 1)
    ]
    adaptive = runs[ADAPTIVE]
    over_best = min(mine / best for mine, best in zip(adaptive["halves"], halves, strict=True))
    worst = min(runs[shape]["rows_per_s"] for shape in TREES)
    matches = by_matches(quick, steps)
    equal &= all(one["equal"] for one in matches.values())
    figures = {
        "quick": quick,
        "rows": sum(frame.height for some in frames.values() for frame in some),
        "results": expected[0],
        "equal": equal,
        "over_best": round(over_best, 3),
        "over_worst": round(adaptive["rows_per_s"] / worst, 3),
        "settling_epochs": SETTLING,
        "settled_after": adaptive["settled_after"],
        "runs": runs,
        "matches": matches,
    }
    bars = (
        Bar("over_best", figures["over_best"], ">=", 0.9),
        Bar("over_worst", figures["over_worst"], ">=", 1.3),
        *(
            Bar(f"matches.{number}.time_over_best", one["time_over_best"], "<=", 1.2)
            for number, one in matches.items()
        ),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("reorder", figures, bars, NOTES, equal, circumstances)


def _frames(rows: int) -> Frames:
    """The epochs of each stream."""
    rng = np.random.default_rng(7)
    frames: Frames = {name: [] for name in "abc"}
    begin = 0
    for epochs, fast in zip(EPOCHS, FAST, strict=True):
        for epoch in range(begin, begin + epochs):
            for name, made in frames.items():
                count = rows if name in fast else rows // SLOWER
                times = rng.integers(epoch * SECONDS, (epoch + 1) * SECONDS, count)
                values = rng.integers(0, 100, count)
                keys = rng.integers(0, KEYS, count)
                made.append(pl.DataFrame({"t": np.sort(times), "k": keys, "v": values}))
        begin += epochs
    return frames


def _figures(course: ShapeCourse) -> dict[str, Any]:
    """Of one shape: rows a second in each half and over all, the most state, the shapes it came to."""
    halves = list(pairwise(np.cumsum(EPOCHS).tolist()))
    settled = [slice(begin + SETTLING, end) for begin, end in halves]
    changed = [epoch for epochs in course.changed for epoch in epochs]
    return {
        "digest": course.digest,
        "rows_per_s": course.rate(slice(None)),
        "halves": list(map(course.rate, settled)),
        "pairs_per_row": list(map(course.pairs_per_row, settled)),
        "settled_after": [
            max((epoch - begin for epoch in changed if begin <= epoch < end), default=0)
            for begin, end in halves
        ],
        "state_bytes_most": max(course.state),
        "changes": [
            {key: line[key] for key in ("epoch", "before", "shape", "costExpected", "costMeasured")}
            | {"partitions": len(line["partitions"])}
            for line in course.lines
        ],
    }


def reorder_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    for shape, run in figures["runs"].items():
        first, second = run["halves"]
        pairs = " and ".join(f"{one:,}" for one in run["pairs_per_row"])
        yield (
            f"{shape}: {first:,} rows/s in the first half, {second:,} in the second, {run['rows_per_s']:,} "
            f"over all; {pairs} pairs looked at for a row; at most {run['state_bytes_most'] / 1e6:,.1f} MB "
            "of state"
        )
    for change in figures["runs"]["adaptive"]["changes"]:
        yield (
            f"after epoch {change['epoch']}: {change['shape']} in place of {change['before']} on "
            f"{change['partitions']} partitions"
        )
    yield f"settled after {' and '.join(map(str, figures['settled_after']))} epochs"
    for number, one in figures["matches"].items():
        told = ", ".join(
            f"{shape} {run['rows_per_s']:,} rows/s and {run['state_bytes'] / 1e6:.1f} MB"
            for shape, run in one["runs"].items()
        )
        yield f"{number} matches a row: {told}"
    yield (f"{figures['results']:,} results, equal to DuckDB's: {str(figures['equal']).lower()}")
