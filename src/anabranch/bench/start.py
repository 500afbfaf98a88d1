"""From the command to the first result: `anabranch run` of a small file, and a script of Spark's as well.

Cold: every run has new processes. Results are there when a reader would see them: ours when the folder of an
epoch has its name, Spark's when its log of the sink names a file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from anabranch.bench.data import w1
from anabranch.bench.jobs import Reference, results_of
from anabranch.bench.measure import load, machine, spread
from anabranch.bench.result import Result, describe_spread
from anabranch.errors import RunError
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

ROWS, WINDOW = 1000, 10
"""A file covers 20 s: at least its first window closes when it has been read."""
REPEATS = 5
LONGEST = 300.0
"""Seconds after which a side is given up."""
NOTES = (
    "Seconds from the start of the process until the first result can be read. The sides take turns, each "
    "time in new processes; the files of both are in the page cache.",
    "first_epoch_seconds: our first epoch, as its progress report has it; the median.",
)


def run_start(quick: bool, steps: Steps) -> Result:
    """Times both sides; with `quick`, each once."""
    repeats = 1 if quick else REPEATS
    steps.expect(2 * repeats)
    before = load()
    ours, spark, first = [], [], []
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        data = Path(scratch) / "data"
        for _ in w1(ROWS, 1).write(data):
            pass
        for number in range(repeats):
            steps.begin(f"Anabranch, run {number + 1}")
            seconds, told = _ours(data, Path(scratch) / f"ours-{number}")
            ours.append(seconds)
            first.append(told)
            steps.begin(f"Spark, run {number + 1}")
            spark.append(_spark(data, Path(scratch) / f"spark-{number}"))
    mine, theirs, epoch = spread(ours), spread(spark), spread(first)
    ratio = round(mine.median / theirs.median, 3)
    figures: dict[str, Any] = {
        "quick": quick,
        "ratio": ratio,
        "seconds": round(mine.median, 3),
        "spark_seconds": round(theirs.median, 3),
        "first_epoch_seconds": round(epoch.median, 3),
        "ours": describe_spread(mine),
        "spark": describe_spread(theirs),
    }
    bars = (
        Bar("ratio", ratio, "<=", 0.7),
        Bar("first_epoch_seconds", figures["first_epoch_seconds"], "<=", 1.5),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("start", figures, bars, NOTES, circumstances=circumstances)


def _ours(data: Path, folder: Path) -> tuple[float, float]:
    """Seconds to the first result, and those of the first epoch."""
    folder.mkdir()
    results = folder / "results"
    spec = folder / "start.sql"
    spec.write_text(
        f"CREATE STREAM tcp ORDERED BY time WITH (path = '{data}');\n"
        f"CREATE QUERY flows AS SELECT tb, srcIP, destIP, COUNT(*) AS cnt, SUM(len) AS bytes FROM tcp "
        f"GROUP BY time / {WINDOW} AS tb, srcIP, destIP;\n"
        f"CREATE SINK flows TO '{results}';\n"
    )
    command = [sys.executable, "-m", "anabranch", "run", str(spec), "--json"]
    command += ["--checkpoint", str(folder / "checkpoint")]
    seconds, output = _timed(command, lambda: any(results.glob("epoch=*/*.parquet")))
    reports = [json.loads(line) for line in output.splitlines()]
    epochs = [report for report in reports if "durationMs" in report]
    return seconds, epochs[0]["durationMs"]["triggerExecution"] / 1000


def _spark(data: Path, folder: Path) -> float:
    folder.mkdir()
    job = Reference(data=str(data), scratch=str(folder), window=WINDOW)
    log = results_of(job) / "_spark_metadata"
    command = [sys.executable, "-m", "anabranch.bench.worker", msgspec.json.encode(job).decode()]

    def visible() -> bool:
        return any('"path"' in entry.read_text() for entry in log.glob("[0-9]*"))

    return _timed(command, visible)[0]


def _timed(command: list[str], visible: Callable[[], bool]) -> tuple[float, str]:
    """Seconds until something is visible, and what the command has printed in the end."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as noise:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=printed, stderr=noise, env=os.environ)
        seconds = None
        try:
            while seconds is None and time.monotonic() - began < LONGEST:
                if visible():
                    seconds = time.monotonic() - began
                elif process.poll() is not None:
                    break
                time.sleep(0.005)
            process.wait(LONGEST)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        if seconds is None and visible():
            seconds = time.monotonic() - began
        if seconds is None or process.returncode:
            noise.seek(0)
            raise RunError(f"{' '.join(command)} gave no result:\n{noise.read()[-4000:]}")
        printed.seek(0)
        return seconds, printed.read()
