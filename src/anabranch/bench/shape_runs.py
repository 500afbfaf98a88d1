"""One run of a join of three streams in one shape, or in those that it chooses, by processor time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.errors import RunError
from anabranch.observe.steps import Steps
from anabranch.session import Session
from anabranch.testing.sources import EpochSource

TREES = ("m-way", "((0,1),2)", "((0,2),1)", "(0,(1,2))")
ADAPTIVE = "adaptive"
"""In place of a shape: the one that is chosen on the way."""
Frames = dict[str, list[pl.DataFrame]]
"""The epochs of each stream."""


@dataclass
class ShapeCourse:
    """What a run did, epoch by epoch."""

    seconds: np.ndarray
    """Of the processor."""
    rows: np.ndarray
    state: list[int]
    """Bytes."""
    lines: list[dict[str, Any]]
    """The changes of shape."""
    digest: tuple[int, ...]
    pairs: np.ndarray
    """Pairs of rows that were looked at."""
    changed: list[list[int]]
    """The epochs that were the first in another shape, in each run."""

    def rate(self, epochs: slice) -> int:
        """Rows a second in some epochs."""
        return round(float(self.rows[epochs].sum() / self.seconds[epochs].sum()))

    def pairs_per_row(self, epochs: slice) -> float:
        """Pairs looked at for a row in some epochs: what a shape does, whatever the machine does beside."""
        return round(float(self.pairs[epochs].sum() / self.rows[epochs].sum()), 2)


def run_in_turn(
    frames: Frames, sql: str, shapes: Sequence[str], repeats: int, steps: Steps
) -> dict[str, ShapeCourse]:
    """All shapes in turn, several times: of a fixed one the least time of each epoch.

    Adaptive runs may change their shapes at different times: of these, the one in the middle is taken.
    """
    found: dict[str, list[ShapeCourse]] = {shape: [] for shape in shapes}
    for repeat in range(repeats):
        for shape, courses in found.items():
            steps.begin(f"{shape}, run {repeat + 1}")
            courses.append(run_shape(frames, sql, shape))
            if courses[-1].digest != courses[0].digest:
                raise RunError(f"Two runs of the join as {shape} have different results.")
    return {shape: _as_one(shape, courses) for shape, courses in found.items()}


def _as_one(shape: str, courses: Sequence[ShapeCourse]) -> ShapeCourse:
    if shape != ADAPTIVE:
        least = np.minimum.reduce([one.seconds for one in courses])
        return replace(courses[0], seconds=least)
    middle = sorted(courses, key=lambda one: float(one.seconds.sum()))[len(courses) // 2]
    return replace(middle, changed=[epochs for one in courses for epochs in one.changed])


def run_shape(frames: Frames, sql: str, shape: str) -> ShapeCourse:
    """Runs the join over all epochs."""
    given = {} if shape == ADAPTIVE else {"join_shape": shape, "plans": "fixed"}
    epochs = len(next(iter(frames.values())))
    settings = {"policy": "none", "fsync": False, "partitions_per_site": 4, "recent_progress": 1000}
    session = Session.in_process(2, {**settings, **given})
    for name, some in frames.items():
        session.stream(name, EpochSource(some), ordered="t")
    session.query("joined", sql)
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
    state = [
        sum(one["memoryUsedBytes"] for one in epoch["stateOperators"])
        for epoch in run.recent_progress
    ]
    pairs = [
        sum(site["pairsCompared"] for site in epoch["customMetrics"]["sites"])
        for epoch in run.recent_progress[:epochs]
    ]
    rows = [sum(some[epoch].height for some in frames.values()) for epoch in range(epochs)]
    lines = [line for line in run.history() if line["kind"] == "replan" and line["accepted"]]
    digest = digest_of(results)
    changed = [[line["epoch"] + 1 for line in lines]]
    return ShapeCourse(
        np.diff(times), np.array(rows), state, lines, digest, np.array(pairs), changed
    )


def digest_of(results: pl.DataFrame) -> tuple[int, ...]:
    """How many rows, and sums that tell whether they are the same."""
    sums = results.select(pl.col("t", "x", "y", "z").cast(pl.Int64).sum())
    mixed = (
        results["t"].cast(pl.Int64) * results["x"] * (results["y"] + 1) * (results["z"] + 7)
    ).sum()
    return results.height, *sums.row(0), int(mixed)


def expected_digest(frames: Frames, sql: str) -> tuple[int, ...]:
    """What DuckDB makes of all rows at once."""
    with connect() as duck:
        for name, some in frames.items():
            duck.register(name, pl.concat(some).to_arrow())
        found = pl.from_arrow(duck.sql(sql).to_arrow_table())
    assert isinstance(found, pl.DataFrame)
    return digest_of(found)
