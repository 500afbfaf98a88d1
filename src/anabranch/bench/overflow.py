"""Joins without bounds whose state is several times the memory there is; nothing is emulated.

Anabranch with state that is put aside, Anabranch without, and Spark Structured Streaming with RocksDB, each
in a control group of the same limit.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.bench.confined import Confinement, missing, run_confined
from anabranch.bench.duck import connect
from anabranch.bench.growing import STREAMS, EpochDone, Growing, growing_text, read_epochs
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

GB = 1 << 30
LIMIT, TIMES = 5 * GB // 4, 4.1
"""Bytes of the group, and how many times as much state a run is to have."""
TEXT = 1000
"""Bytes of the text in each row."""
EPOCH_ROWS = 20_000
"""Rows of all streams in an epoch."""
JOINS = {"two_way": 2, "three_way": 3}
PATIENCE, LONGEST = 3.2, 400
"""How many times as slow as our run with spilling others are before they are given up; that one is after so
many seconds."""
LETTERS = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8
)
NOTES = (
    f"Each run is a process, with all it starts, in a control group of {LIMIT / GB:g} GB (memory controller, "
    f"first edition, no swap); state is at least 4 times as much. Rows have a text of {TEXT} random "
    "letters, which the join compares. Joins have no bounds: nothing is ever purged.",
    "rows_per_s is over the whole run, with the clean-up; rows_per_s_reading up to the end of the input. "
    f"Others are given up once ours would be done and they are {PATIENCE:g} times as slow: as state grows no "
    "run gets faster. Their rate is what it was until then. peak_bytes is what processes kept for "
    "themselves, most_bytes what the group held, with what was cached of files.",
    "Spark has the same heap as our JVM, RocksDB with its defaults and as many shuffle partitions as cores.",
)


def run_overflow(quick: bool, steps: Steps) -> Result:
    """Both joins three ways."""
    before = load()
    reason = missing()
    if reason is not None:
        figures: dict[str, Any] = {"quick": quick, "skipped": f"Not measured: {reason}."}
        return Result("overflow", figures, (), NOTES, True, machine())
    times = 0.5 if quick else TIMES
    steps.expect(len(JOINS) * 4)
    figures = {"quick": quick, "limit_bytes": LIMIT}
    with TemporaryDirectory(prefix="anabranch-bench-", dir="/var/tmp") as scratch:
        for name, inputs in JOINS.items():
            figures[name] = _join(name, inputs, times, Path(scratch) / name, steps)
    found = [figures[name] for name in JOINS]
    ours = [one["spilling"] for one in found]
    figures["equal"] = all(one["equal"] for one in ours)
    figures["within_limit"] = all(
        one["exit"] == "done" and not one["killed"] and one["most_bytes"] <= LIMIT for one in ours
    )
    figures["state_over_limit"] = round(min(one["state_bytes"] for one in ours) / LIMIT, 2)
    figures["over_no_spill"] = min(one["over_no_spill"] for one in found)
    bars = (
        Bar("equal", float(figures["equal"]), ">=", 1),
        Bar("within_limit", float(figures["within_limit"]), ">=", 1),
        Bar("state_over_limit", figures["state_over_limit"], ">=", 4),
        Bar("over_no_spill", figures["over_no_spill"], ">=", 3),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("overflow", figures, bars, NOTES, figures["equal"], circumstances)


def _join(name: str, inputs: int, times: float, folder: Path, steps: Steps) -> dict[str, Any]:
    steps.begin(f"{name}: writing {times * LIMIT / GB:.1f} GB of rows")
    _write(folder / "data", inputs, round(times * LIMIT / (TEXT + 60)))
    jobs = {
        "spilling": Growing(side="anabranch", data=f"{folder}/data", scratch=f"{folder}/ours", inputs=inputs),
        "no_spill": Growing(
            side="anabranch", data=f"{folder}/data", scratch=f"{folder}/none", inputs=inputs, spills=False
        ),
        "spark": Growing(side="spark", data=f"{folder}/data", scratch=f"{folder}/spark", inputs=inputs),
    }  # fmt: skip
    found: dict[str, Any] = {}
    for side, job in jobs.items():
        steps.begin(f"{name}: {side.replace('_', ' ')}")
        found[side] = _run(job, _slower_than(found.get("spilling"), job))
    expected = _digest_of_join(jobs["spilling"])
    for side, job in jobs.items():
        found[side]["equal"] = found[side]["exit"] == "done" and _digest(job) == expected
    shutil.rmtree(folder)
    ours, none = found["spilling"], found["no_spill"]
    died = none["exit"] in ("killed", "failed")
    over = (
        ours["rows_per_s"] / none["rows_per_s"] if none["rows_per_s"] and not died else float("inf")
    )
    return {**found, "over_no_spill": round(over, 2) if over < 1e9 else 1e9, "results": expected[0]}


def _slower_than(ours: dict[str, Any] | None, job: Growing) -> Callable[[float], bool]:
    """Tells after how many seconds a run is to be given up, given ours with spilling, if there is one."""
    if ours is None:
        return lambda seconds: seconds > LONGEST
    return lambda seconds: hopeless(seconds, ours["seconds"], ours["rows"], read_epochs(job))


def hopeless(seconds: float, took: float, rows: int, epochs: Sequence[EpochDone]) -> bool:
    """Whether a run is far slower than one that took so long for so many rows.

    >>> slow = [EpochDone(at=50, rows=25, results=0, state_bytes=0)]
    >>> hopeless(99, 100, 100, slow), hopeless(101, 100, 100, slow)
    (False, True)
    """
    done = sum(epoch.rows for epoch in epochs)
    return seconds > took and done * took * PATIENCE < rows * seconds


def _run(job: Growing, give_up: Callable[[float], bool]) -> dict[str, Any]:
    Path(job.scratch).mkdir()
    command = [sys.executable, "-m", "anabranch.bench.growing", msgspec.json.encode(job).decode()]
    outcome = run_confined(command, LIMIT, give_up, Path(job.scratch) / "noise")
    shutil.rmtree(Path(job.scratch) / "checkpoint", ignore_errors=True)
    return describe_run(outcome, read_epochs(job))


def describe_run(outcome: Confinement, epochs: list[EpochDone]) -> dict[str, Any]:
    """What a run did, by what it told and by what was seen from outside."""
    reading = [epoch for epoch in epochs if epoch.rows]
    rows = sum(epoch.rows for epoch in epochs)
    read_by = reading[-1].at if reading else 0.0
    # A run that was given up, or died, may have worked on its last epoch until then
    whole = epochs[-1].at if epochs and outcome.exit == "done" else outcome.seconds
    return {
        "exit": outcome.exit,
        "seconds": round(outcome.seconds, 1),
        "rows": rows,
        "rows_per_s": round(rows / whole) if rows else 0,
        "rows_per_s_reading": round(rows / read_by) if rows else 0,
        "results_early": sum(epoch.results for epoch in reading),
        "results": sum(epoch.results for epoch in epochs),
        "cleanup_seconds": round(whole - read_by, 1),
        "state_bytes": max((epoch.state_bytes for epoch in epochs), default=0),
        "aside_bytes": max((epoch.aside_bytes for epoch in epochs), default=0),
        "peak_bytes": outcome.peak_bytes,
        "most_bytes": outcome.most_bytes,
        "major_faults": outcome.major_faults,
        "killed": outcome.killed,
        **({"noise": outcome.noise[-600:]} if outcome.exit == "failed" else {}),
    }


def _write(folder: Path, inputs: int, rows: int) -> None:
    """Files of the first streams, with so many rows together; a row meets about two of each other."""
    random = np.random.default_rng(5)
    each = EPOCH_ROWS // inputs
    keys = max(1, rows // inputs // 2)
    for name in STREAMS[:inputs]:
        (folder / name).mkdir(parents=True)
    for number in range(-(-rows // EPOCH_ROWS)):
        for name in STREAMS[:inputs]:
            letters = LETTERS[random.integers(0, 64, each * TEXT, dtype=np.uint8)]
            offsets = np.arange(0, (each + 1) * TEXT, TEXT, dtype=np.int32)
            text = pa.StringArray.from_buffers(each, pa.py_buffer(offsets), pa.py_buffer(letters))
            table = pa.table(
                {
                    "time": np.full(each, number, dtype=np.int64),
                    "k": random.integers(0, keys, each),
                    "v": text,
                }
            )
            path = folder / name / f"{number:05d}.parquet"
            pq.write_table(table, path, compression="none", use_dictionary=False)


def _digest_of_join(job: Growing) -> tuple[int, int]:
    views = ", ".join(f"{name} AS (FROM '{job.data}/{name}/*.parquet')" for name in job.streams)
    return _digested(f"WITH {views} {growing_text(job.streams)}", job)


def _digest(job: Growing) -> tuple[int, int]:
    files = f"'{job.results}/**/*.parquet'"
    return _digested(f"FROM read_parquet({files}, hive_partitioning = false)", job)


def _digested(query: str, job: Growing) -> tuple[int, int]:
    columns = ", ".join(["k", *(f"{name}_time" for name in job.streams)])
    with connect() as duck:
        found = duck.execute(
            f"SELECT count(*), coalesce(sum(hash({columns})::HUGEINT), 0) FROM ({query})"
        ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])
