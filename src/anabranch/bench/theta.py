"""Joins without equal keys over 1 to 6 sites: Figs 7d and 7e of StreamCloud.

Calls that overlap in time and began close to each other, within a window of time and within one of a
fixed number of rows. A site is a Spark task; only as many as there are cores run at the same time, so
rates over all are those of this machine, and what each site has to do is what would scale.
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.grids import run_swapped
from anabranch.bench.measure import load, machine, spread
from anabranch.bench.result import Result, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

SITES = (1, 2, 4, 6)
ROWS = 20_000
"""Rows of each stream in an epoch."""
EPOCHS = 6
SETTLING = 2
"""Epochs that do not count: workers start and windows fill."""
SECONDS_PER_EPOCH = 30
WINDOW_ROWS = 20_000
"""As in the paper's experiment with a window of fixed size."""
WINDOW_SECONDS = 30
PLACES = 2_000
REPEATS = 3
NEAR = """a.time < b.time + b.duration AND b.time < a.time + a.duration
      AND ABS(a.x - b.x) <= 1 AND ABS(a.y - b.y) <= 1"""
WINDOWS = {
    "time": f"ABS(a.time - b.time) <= {WINDOW_SECONDS}",
    "rows": f"WITHIN_ROWS({WINDOW_ROWS})",
}
NOTES = (
    f"Two streams of {ROWS:,} calls an epoch; window of time: {WINDOW_SECONDS} seconds apart at most, "
    f"which is about {2 * ROWS * WINDOW_SECONDS // SECONDS_PER_EPOCH:,} rows; window of rows: the last "
    f"{WINDOW_ROWS:,} of the other stream.",
    "most_over_even is the pairs that the busiest site compares against an even share; pairs_per_row the "
    "pairs that a site compares for each row it receives, which falls with the sites as in Fig 7e; "
    "work_per_site the pairs of the busiest site against those of a single one.",
    "swapped: the rates of the two streams are swapped in the middle, 8 sites in this process. over_best: "
    "bytes received in the last epochs of each half, against a run of that half alone with the grid that "
    "suits it best.",
)


def run_theta(quick: bool, steps: Steps) -> Result:
    """Both windows at all numbers of sites in turn; with `quick`, a tenth of the rows, once."""
    rows, repeats = (ROWS // 10, 1) if quick else (ROWS, REPEATS)
    steps.expect(2 + repeats * len(SITES) * len(WINDOWS))
    before = load()
    runs: dict[tuple[str, int], list[dict[str, Any]]] = {}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        steps.begin(f"Writing {2 * rows * EPOCHS:,} rows")
        expected = _write(Path(scratch), rows)
        for repeat in range(repeats):
            for window in WINDOWS:
                for sites in SITES:
                    steps.begin(f"window of {window}, {sites} sites, run {repeat + 1}")
                    runs.setdefault((window, sites), []).append(_run(window, sites, Path(scratch)))
    found = {key: some[0]["results"] for key, some in runs.items()}
    equal = all(run["results"] == found[key] for key, some in runs.items() for run in some)
    equal &= all(found["time", sites] == expected for sites in SITES)
    equal &= len({found["rows", sites] for sites in SITES}) == 1
    figures: dict[str, Any] = {"quick": quick, "equal": equal, "results": {"expected": expected}}
    for window in WINDOWS:
        alone = runs[window, 1][0]["most"]
        figures[window] = {
            str(sites): _figures(runs[window, sites], sites, alone) for sites in SITES
        }
    figures["results"] |= {window: found[window, 1] for window in WINDOWS}
    figures["most_over_even"] = max(
        figures[window][str(sites)]["most_over_even"] for window in WINDOWS for sites in SITES
    )
    figures["work_per_site"] = figures["rows"][str(SITES[-1])]["work_per_site"]
    figures["pairs_per_row"] = round(
        figures["rows"]["1"]["pairs_per_row"] / figures["rows"][str(SITES[-1])]["pairs_per_row"], 3
    )
    steps.begin("rates that are swapped")
    figures["swapped"] = run_swapped(rows // 2)
    figures["equal"] = equal = equal and figures["swapped"]["equal"]
    figures["over_best"] = max(figures["swapped"]["over_best"])
    bars = (
        Bar("over_best", figures["over_best"], "<=", 1.15),
        Bar("most_over_even", figures["most_over_even"], "<=", 1.1),
        Bar("work_per_site", figures["work_per_site"], "<=", round(1.1 / SITES[-1], 4)),
        Bar("pairs_per_row", figures["pairs_per_row"], ">", 2.0),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("theta", figures, bars, NOTES, equal, circumstances)


def _figures(runs: list[dict[str, Any]], sites: int, alone: int) -> dict[str, Any]:
    first = runs[0]
    return {
        "grid": first["grid"],
        "pairs_per_s": round(median(run["pairs_per_s"] for run in runs)),
        "spread": describe_spread(spread([run["pairs_per_s"] for run in runs])),
        "rows_per_s": round(median(run["rows_per_s"] for run in runs)),
        "pairs": first["pairs"],
        "most_over_even": round(first["most"] * sites / first["pairs"], 4),
        "pairs_per_row": round(first["pairs"] / first["received"], 1),
        "work_per_site": round(first["most"] / alone, 4),
    }


def _write(folder: Path, rows: int) -> int:
    """The files, and how many pairs DuckDB finds in them within the window of time."""
    for seed, name in enumerate(("a", "b")):
        (folder / name).mkdir()
        for number in range(EPOCHS):
            random = np.random.default_rng(2 * number + seed)
            start = number * SECONDS_PER_EPOCH
            calls = {
                "time": np.sort(random.integers(start, start + SECONDS_PER_EPOCH, rows)),
                "duration": random.integers(1, 120, rows),
                "x": random.integers(0, PLACES, rows),
                "y": random.integers(0, PLACES, rows),
            }
            path = folder / name / f"{number:04d}.parquet"
            pl.DataFrame(calls).write_parquet(path)
            os.utime(path, (number, number))
    with connect() as duck:
        for name in ("a", "b"):
            duck.execute(f"CREATE VIEW {name} AS FROM '{folder}/{name}/*.parquet'")
        # Each b beside the three values of a.x that are near: an equality, which DuckDB can hash
        beside = "(SELECT *, unnest([x - 1, x, x + 1]) AS near FROM b) AS b"
        where = f"a.x = b.near AND {NEAR} AND {WINDOWS['time']}"
        found = duck.sql(f"SELECT count(*) FROM a, {beside} WHERE {where}").fetchall()
        return int(found[0][0])


def _run(window: str, sites: int, folder: Path) -> dict[str, Any]:
    # What is measured is the grid as it is laid out: on a busy machine the controller would move cells
    session = Session.local(sites=sites, settings={"max_files_per_epoch": 1, "policy": "none"})
    try:
        for name in ("a", "b"):
            session.stream(name, path=folder / name, ordered="time")
        query = f"SELECT a.time, a.x, b.x AS other FROM a JOIN b ON {NEAR} AND {WINDOWS[window]}"
        session.query("near", query)
        run = session.start(sinks={"near": "memory"}, at_end="close")
        run.await_termination()
        # At the end rows come out that waited for the watermark, and another kind of epoch with them
        told = run.recent_progress[SETTLING:EPOCHS]
        results = run.results("near").height
    finally:
        session.stop()
    seconds = sum(epoch["durationMs"]["triggerExecution"] for epoch in told) / 1000
    compared: dict[int, int] = {}
    for epoch in told:
        for site in epoch["customMetrics"]["sites"]:
            known = compared.get(site["site"], 0)
            compared[site["site"]] = known + site["pairsCompared"]
    pairs = sum(compared.values())
    joins = [
        operator["customMetrics"]
        for epoch in told
        for operator in epoch["stateOperators"]
        if operator["operatorName"] == "near@1"
    ]
    return {
        "results": results,
        "grid": joins[0]["grid"],
        "pairs": pairs,
        "most": max(compared.values()),
        "received": sum(metrics["rowsReceived"] for metrics in joins),
        "pairs_per_s": pairs / seconds,
        "rows_per_s": sum(epoch["numInputRows"] for epoch in told) / seconds,
    }
