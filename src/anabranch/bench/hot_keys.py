"""Joins of which one key has nine tenths of all rows, on eight emulated sites: how soon all are as busy.

The key appears after some epochs of even keys. Every row that a site takes in costs it a fixed time, which is
slept; sites run one after another in this process. The engine, the controller and its settings are those of
any run: it sees measured times. What is judged is the emulated service, beyond the noise of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.engine.faults import Burden
from anabranch.session import Session

SITES = 8
SECONDS_PER_ROW = 100e-6
EVEN = 4
"""Epochs before the key appears."""
EPOCHS = 16
DRIFTING = 28
"""Epochs in which one key slowly takes the place of another."""
EVEN_ENOUGH = 1.25
SOON = 5
"""Epochs after which all sites must be about as busy."""
HOT, NEXT, KEYS = 7, 8, 5_000
SHARE = 0.9
TICKS = 1_000
"""Units of time of an epoch; rows that meet are at most one apart, so a row meets few."""
COLUMNS = "a.time AS t, a.k AS k, a.v AS v"
TWO = "AS b ON a.k = b.k AND ABS(a.time - b.time) <= 1"
THREE = TWO + " JOIN c AS c ON a.k = c.k AND ABS(a.time - c.time) <= 1"
PAIRS = f"SELECT {COLUMNS}, b.v AS w FROM a JOIN b {TWO}"
QUERIES = {
    "two_way": {"rows": PAIRS},
    "three_way": {"rows": f"SELECT {COLUMNS}, b.v AS w, c.v AS x FROM a JOIN b {THREE}"},
    "left": {"rows": f"SELECT {COLUMNS}, b.v AS w FROM a LEFT JOIN b {TWO}"},
    "drift": {"rows": PAIRS},
    "one_of_eight": {
        f"rows{n}": f"SELECT {COLUMNS}, b.v AS w FROM s{2 * n} AS a JOIN s{2 * n + 1} {TWO}"
        for n in range(4)
    },
}
ROWS = {
    "two_way": {"a": 7_000, "b": 1_000},
    "three_way": {"a": 6_000, "b": 1_000, "c": 1_000},
    "left": {"a": 7_000, "b": 1_000},
    "drift": {"a": 7_000, "b": 1_000},
    "one_of_eight": dict.fromkeys([f"s{n}" for n in range(8)], 1_000),
}
"""Rows of each stream in an epoch."""
WORK = tuple(QUERIES)


@dataclass(frozen=True)
class HotRun:
    """What became of one kind of work."""

    service: list[float]
    """The emulated service of the busiest site against the mean, epoch by epoch."""
    busy: list[float]
    """The same of the measured times."""
    scattered: int
    unscattered: int
    equal: bool

    def figures(self) -> dict[str, Any]:
        """What a reader wants to know of it."""
        after = self.service[EVEN:]
        uneven = "".join("x" if value > EVEN_ENOUGH else " " for value in after)
        return {
            "busiest_over_mean": round(median(after[SOON:]), 3),
            "worst": round(max(after[SOON:]), 3),
            "at_first": round(max(after[:SOON]), 3),
            # Epochs in a row, since the key appeared, in which it was more
            "settled_after": max(map(len, uneven.split()), default=0),
            "busy_over_mean": round(median(self.busy[EVEN + SOON :]), 3),
            "scattered": self.scattered,
            "unscattered": self.unscattered,
            "equal": self.equal,
            "epochs": [round(value, 2) for value in self.service],
        }


def run_hot_keys(work: str, part: int, folder: Path) -> HotRun:
    """Runs one kind of work with this part of its rows."""
    epochs = DRIFTING if work == "drift" else EPOCHS
    frames = {
        name: _frames(work, name, rows // part, epochs, seed)
        for seed, (name, rows) in enumerate(ROWS[work].items())
    }
    for name, some in frames.items():
        (folder / name).mkdir(parents=True)
        for number, rows in enumerate(some):
            rows.write_parquet(folder / name / f"{number:04d}.parquet")
    settings = {"max_files_per_epoch": 1, "recent_progress": epochs + 1, "fsync": False}
    session = Session.in_process(SITES, settings)
    for name in frames:
        session.stream(name, path=folder / name, ordered="time")
    for name, text in QUERIES[work].items():
        session.query(name, text)
    service = {site: Burden(part * SECONDS_PER_ROW) for site in range(SITES)}
    run = session.start(
        sinks=dict.fromkeys(QUERIES[work], "memory"), at_end="close", burdens=lambda epoch: service
    )
    run.await_termination()
    told = run.recent_progress[:epochs]
    kinds = [line["kind"] for line in run.history() if line["accepted"]]
    return HotRun(
        _uneven(told, "rowsIn"),
        _uneven(told, "busySeconds"),
        kinds.count("scatter"),
        kinds.count("unscatter"),
        all(_right(frames, text, run.results(name)) for name, text in QUERIES[work].items()),
    )


def _uneven(told: list[dict[str, Any]], what: str) -> list[float]:
    """The most that a site has of something against the mean, epoch by epoch."""
    found = [[float(site[what]) for site in epoch["customMetrics"]["sites"]] for epoch in told]
    return [max(some) * len(some) / sum(some) for some in found]


def _frames(work: str, name: str, rows: int, epochs: int, seed: int) -> list[pl.DataFrame]:
    random = np.random.default_rng(seed)
    made = []
    for epoch in range(epochs):
        keys = random.integers(100, KEYS, rows)
        if epoch >= EVEN and (work != "one_of_eight" or name in ("s0", "s1")):
            # Of a drift, the part of the hot rows that have the next key by now
            begun = max(0, epoch - EVEN - SOON)
            gone = begun / (epochs - EVEN - SOON - 1) if work == "drift" else 0.0
            hot = np.where(random.random(rows) < gone, NEXT, HOT)
            keys = np.where(random.random(rows) < SHARE, hot, keys)
        times = np.sort(random.integers(epoch * TICKS, (epoch + 1) * TICKS, rows))
        made.append(
            pl.DataFrame({"time": times, "k": keys, "v": random.integers(0, 1 << 30, rows)})
        )
    return made


def _right(frames: Mapping[str, list[pl.DataFrame]], text: str, found: pl.DataFrame) -> bool:
    """Whether the results are those of DuckDB, in any order."""
    # Rows beside the three times that are near them: an equality, or DuckDB looks at all pairs of the key
    beside = "(SELECT *, unnest([time - 1, time, time + 1]) AS near FROM {})"
    text = re.sub(r"JOIN (\w+) AS", lambda named: f"JOIN {beside.format(named[1])} AS", text)
    text = re.sub(r"ABS\(a.time - (.).time\) <= 1", r"a.time = \1.near", text)
    with connect() as duck:
        for name, some in frames.items():
            duck.register(name, pl.concat(some))
        expected: pl.DataFrame = duck.sql(text).pl()
    order = found.columns
    same: bool = found.sort(order).equals(expected.select(order).cast(found.schema).sort(order))
    return same
