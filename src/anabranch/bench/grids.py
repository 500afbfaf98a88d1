"""A join without an equality whose inputs swap their rates: what its grid makes each site receive."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.session import Session

SITES = 8
HALF = 10
"""Epochs before the rates are swapped, and after."""
LAST = 4
"""Epochs of each half that count: by then the grid is laid."""
SLOWER = 16
"""How many times as many rows one stream has as the other."""
TICKS = 1_000
QUERY = """SELECT a.time AS t, a.v AS v, b.v AS w FROM a JOIN b
    ON ABS(a.time - b.time) <= 2 AND a.v < b.v AND b.v < a.v + 1000"""


def run_swapped(rows: int) -> dict[str, Any]:
    """Both halves in one run that adapts, and each in one with the grid that suits it and stays."""
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        folder = Path(scratch)
        rates = [(rows, rows // SLOWER)] * HALF + [(rows // SLOWER, rows)] * HALF
        _write(folder / "all", rates, 0)
        _write(folder / "first", rates[:HALF], 0)
        _write(folder / "second", rates[HALF:], HALF)
        received, grids, results = _run(folder / "all", "hybrid")
        halves = [_run(folder / name, "none") for name in ("first", "second")]
        with connect() as duck:
            for name in ("a", "b"):
                duck.execute(f"CREATE VIEW {name} AS FROM '{folder}/all/{name}/*.parquet'")
            (expected,) = duck.sql(f"SELECT count(*), sum(v), sum(w) FROM ({QUERY})").fetchall()
    ends = (slice(HALF - LAST, HALF), slice(2 * HALF - LAST, 2 * HALF))
    best = [sum(found[0][HALF - LAST : HALF]) for found in halves]
    return {
        "rates": [f"{rows} to {rows // SLOWER}", f"{rows // SLOWER} to {rows}"],
        "over_best": [
            round(sum(received[end]) / least, 3) for end, least in zip(ends, best, strict=True)
        ],
        "grids": {"adaptive": _changes(grids), "best": [found[1][-1] for found in halves]},
        "bytes_per_site": [round(sum(received[end]) / LAST / SITES) for end in ends],
        "equal": results == tuple(int(value) for value in expected),
    }


def _changes(grids: Sequence[list[int]]) -> dict[int, list[int]]:
    """The grids of a run, each with its first epoch."""
    return {at: grid for at, grid in enumerate(grids) if at == 0 or grids[at - 1] != grid}


def _write(folder: Path, rates: Sequence[tuple[int, int]], first: int) -> None:
    for side, name in enumerate(("a", "b")):
        (folder / name).mkdir(parents=True)
        for epoch, counts in enumerate(rates, first):
            random = np.random.default_rng(2 * epoch + side)
            calls = {
                "time": np.sort(random.integers(epoch * TICKS, (epoch + 1) * TICKS, counts[side])),
                "v": random.integers(0, 1 << 20, counts[side]),
            }
            pl.DataFrame(calls).write_parquet(folder / name / f"{epoch:04d}.parquet")


def _run(folder: Path, policy: str) -> tuple[list[int], list[list[int]], tuple[int, ...]]:
    """The bytes received in each epoch, the grid of each, and a digest of the results."""
    settings = {"max_files_per_epoch": 1, "recent_progress": 100, "policy": policy, "fsync": False}
    session = Session.in_process(SITES, settings)
    for name in ("a", "b"):
        session.stream(name, path=folder / name, ordered="time")
    session.query("near", QUERY)
    run = session.start(sinks={"near": "memory"}, at_end="close")
    run.await_termination()
    joins = [epoch["stateOperators"][0]["customMetrics"] for epoch in run.recent_progress]
    found = run.results("near")
    digest = (found.height, int(found["v"].sum()), int(found["w"].sum()))
    return [join["bytesReceived"] for join in joins], [join["grid"] for join in joins], digest
