"""Joins whose best shape changes on the way: fixed shapes, and the one that follows; nothing is emulated.

Three streams on one key. In the first half B and C bring a twentieth of A's rows; in the second A falls to a
twentieth, and B rises. What A or B gives with C must meet a condition that few pairs do, what A and B give
with each other need not. So at first what B and C make together is worth keeping, later what A and C make;
what A and B make is dear. In-process: what is measured is the join, by the time of its processor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.errors import RunError
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session
from anabranch.testing.sources import EpochSource

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
FAST = ("", "a", "b")
TREES = ("m-way", "((0,1),2)", "((0,2),1)", "(0,(1,2))")
ADAPTIVE = "adaptive"
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
    "rows_per_s is by the time of the processor, so that others on the machine do not count. over_best is "
    "what the adaptive run does against the best of the fixed shapes in that half, the lesser of both; "
    "over_worst what it does over all epochs against the worst of them.",
    "One process, no Spark: two sites, one after the other; nothing is flushed to the disk.",
)


def run_reorder(quick: bool, steps: Steps) -> Result:
    """All fixed shapes and the adaptive run over the same rows; with `quick`, half of the rows."""
    rows = ROWS // 2 if quick else ROWS
    before = load()
    frames = _frames(rows)
    steps.expect(2 + len(TREES))
    steps.begin("DuckDB, all at once")
    expected = _expected(frames)
    runs: dict[str, dict[str, Any]] = {}
    for shape in (*TREES, ADAPTIVE):
        steps.begin(f"{shape}")
        runs[shape] = _run(frames, shape)
    equal = all(run.pop("digest") == expected for run in runs.values())
    halves = [
        max(runs[shape]["halves"][half] for shape in TREES) for half in range(len(EPOCHS) - 1)
    ]
    adaptive = runs[ADAPTIVE]
    over_best = min(mine / best for mine, best in zip(adaptive["halves"], halves, strict=True))
    worst = min(runs[shape]["rows_per_s"] for shape in TREES)
    figures = {
        "quick": quick,
        "rows": sum(frame.height for some in frames.values() for frame in some),
        "results": expected[0],
        "equal": equal,
        "over_best": round(over_best, 3),
        "over_worst": round(adaptive["rows_per_s"] / worst, 3),
        "settling_epochs": SETTLING,
        "runs": runs,
    }
    bars = (
        Bar("over_best", figures["over_best"], ">=", 0.9),
        Bar("over_worst", figures["over_worst"], ">=", 1.3),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("reorder", figures, bars, NOTES, equal, circumstances)


def _frames(rows: int) -> dict[str, list[pl.DataFrame]]:
    """The epochs of each stream."""
    rng = np.random.default_rng(7)
    frames: dict[str, list[pl.DataFrame]] = {name: [] for name in "abc"}
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


def _run(frames: dict[str, list[pl.DataFrame]], shape: str) -> dict[str, Any]:
    """One run: rows a second in each half and over all, the most state, the shapes it came to."""
    given = {} if shape == ADAPTIVE else {"join_shape": shape, "plans": "fixed"}
    epochs = sum(EPOCHS)
    settings = {"policy": "none", "fsync": False, "partitions_per_site": 4, "recent_progress": 1000}
    session = Session.in_process(2, {**settings, **given})
    for name, some in frames.items():
        session.stream(name, EpochSource(some), ordered="t")
    session.query("joined", SQL)
    times = np.zeros(epochs + 1)

    def on_step(step: str, epoch: int) -> None:
        if step == "begin" and epoch <= epochs:
            times[epoch] = time.process_time()

    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        run = session.start(
            sinks={"joined": "memory"},
            checkpoint=Path(scratch) / "c",
            on_step=on_step,
            at_end="close",
        )
        run.await_termination()
        results = run.results("joined")
    if not results.height:
        raise RunError("The join has no results.")
    seconds = np.diff(times)
    rows = np.array(
        [sum(some[epoch].height for some in frames.values()) for epoch in range(epochs)]
    )
    halves = []
    for begin, end in pairwise(np.cumsum(EPOCHS).tolist()):
        counted = slice(begin + SETTLING, end)
        halves.append(round(float(rows[counted].sum() / seconds[counted].sum())))
    told = run.recent_progress
    state = [sum(one["memoryUsedBytes"] for one in epoch["stateOperators"]) for epoch in told]
    lines = [line for line in run.history() if line["kind"] == "replan" and line["accepted"]]
    return {
        "digest": _digest(results),
        "rows_per_s": round(float(rows.sum() / seconds.sum())),
        "halves": halves,
        "state_bytes_most": max(state),
        "changes": [
            {key: line[key] for key in ("epoch", "before", "shape", "costExpected", "costMeasured")}
            | {"partitions": len(line["partitions"])}
            for line in lines
        ],
    }


def _digest(results: pl.DataFrame) -> tuple[int, ...]:
    """How many rows, and sums that tell whether they are the same."""
    sums = results.select(pl.col("t", "x", "y", "z").cast(pl.Int64).sum())
    mixed = (
        results["t"].cast(pl.Int64) * results["x"] * (results["y"] + 1) * (results["z"] + 7)
    ).sum()
    return results.height, *sums.row(0), int(mixed)


def _expected(frames: dict[str, list[pl.DataFrame]]) -> tuple[int, ...]:
    with connect() as duck:
        for name, some in frames.items():
            duck.register(name, pl.concat(some).to_arrow())
        found = pl.from_arrow(duck.sql(SQL).to_arrow_table())
    assert isinstance(found, pl.DataFrame)
    return _digest(found)


def reorder_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    for shape, run in figures["runs"].items():
        first, second = run["halves"]
        yield (
            f"{shape}: {first:,} rows/s in the first half, {second:,} in the second, {run['rows_per_s']:,} "
            f"over all; at most {run['state_bytes_most'] / 1e6:,.1f} MB of state"
        )
    for change in figures["runs"]["adaptive"]["changes"]:
        yield (
            f"after epoch {change['epoch']}: {change['shape']} in place of {change['before']} on "
            f"{change['partitions']} partitions"
        )
    yield (f"{figures['results']:,} results, equal to DuckDB's: {str(figures['equal']).lower()}")
