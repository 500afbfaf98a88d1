"""One measured run of either side: what is asked of a worker process, and what it answers.

Each run has a process of its own, so that no side finds the other's warm caches, heap or workers, and
so that its memory can be told apart.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from anabranch.bench.measure import MemoryWatch, Peak, load
from anabranch.errors import RunError


class Ours(msgspec.Struct, frozen=True, kw_only=True, tag="anabranch", tag_field="side"):
    """The windowed aggregate, or a join, through Anabranch."""

    data: str
    scratch: str
    files: int = 1
    """Files per epoch."""
    window: int = 60
    """Seconds of a window, or how far apart rows that meet may be."""
    streams: tuple[str, ...] = ()
    """The streams to join, folders in `data`; none for the aggregate."""
    source: str = ""
    """The package of another version, to be measured instead of this one: the folder above `anabranch/`."""
    dataframe: bool = False
    """Read through `spark.readStream.parquet` instead of by our own tasks."""
    cores: int = 2
    overlap: bool = True
    arriving: bool = False
    """Files come one by one while the query runs, each when the results of the one before are there."""
    best: bool = False
    """The largest packet of each source and window instead of the aggregate."""
    nexmark: str = ""
    """A query of Nexmark over `streams` instead of the aggregate or a join."""

    def __str__(self) -> str:
        how = " through a DataFrame" if self.dataframe else ""
        version = f" of {self.source}" if self.source else ""
        return f"Anabranch{version}{how}, {_files(self.files)} an epoch"


class Reference(msgspec.Struct, frozen=True, kw_only=True, tag="spark", tag_field="side"):
    """The windowed aggregate, or a join, through Spark Structured Streaming."""

    data: str
    scratch: str
    files: int = 1
    """Files per trigger."""
    window: int = 60
    streams: tuple[str, ...] = ()
    store: str = "default"
    partitions: int = 2
    memory: str = "8g"
    cores: int = 2
    arriving: bool = False
    tuned: bool = False
    """With the options of the JVM and the serialiser that our own Spark has."""
    best: bool = False
    """The largest packet of each source and window instead of the aggregate."""
    nexmark: str = ""
    """A query of Nexmark over `streams` instead of the aggregate or a join."""

    def __str__(self) -> str:
        tuned = " with our JVM options" if self.tuned else ""
        return (
            f"Spark{tuned}, {self.store} state store, {self.partitions} shuffle partitions, "
            f"{_files(self.files)} a trigger"
        )


Job = Ours | Reference


class EpochTime(msgspec.Struct, frozen=True):
    """An epoch, or a micro-batch."""

    rows: int
    ms: float
    state_rows: int = 0
    ahead_ms: float = 0.0
    """What of its work was done before it began: the longest of its splits, if these were prepared."""
    timeline: dict[str, Any] = {}
    """Of ours, the steps of driver and tasks."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker measured."""

    epochs: list[EpochTime]
    seconds: float
    """From the start of the query to its end, the first epoch with it."""
    steady_rows: int
    steady_seconds: float
    """Without the first epoch: what the rate is made of."""
    java: str = ""
    appeared_ms: list[float] = []
    """From the arrival of a file until its results are visible."""


@dataclass(frozen=True)
class JobOutcome:
    """A run with what was seen from outside."""

    job: Job
    answer: Answer
    peak: Peak
    process_seconds: float
    load_before: list[float]
    load_after: list[float]

    @property
    def rate(self) -> float:
        """Rows per second, the first epoch left out."""
        return self.answer.steady_rows / self.answer.steady_seconds

    @property
    def results(self) -> Path:
        return results_of(self.job)


def results_of(job: Job) -> Path:
    """Where a run leaves its results."""
    return Path(job.scratch) / "results"


def checkpoint_of(job: Job) -> Path:
    """Where a run keeps its state."""
    return Path(job.scratch) / "checkpoint"


def steady(epochs: list[EpochTime]) -> tuple[int, float]:
    """Rows and seconds of all epochs with rows but the first; what was prepared in that one is counted, too.

    Spark ends with a batch without rows that gives out the last window; leaving it out is in its favour.
    """
    counted = [epoch for epoch in epochs[1:] if epoch.rows]
    before = counted[0].ahead_ms if counted else 0.0
    return sum(epoch.rows for epoch in counted), (sum(e.ms for e in counted) + before) / 1000


def run_job(job: Job) -> JobOutcome:
    """Runs a job in a process of its own and watches it; its state is removed, its results stay."""
    scratch = Path(job.scratch)
    scratch.mkdir(parents=True)
    before, began = load(), time.monotonic()
    other = job.source if isinstance(job, Ours) else ""
    environment = {**os.environ, "PYTHONPATH": other} if other else None
    with tempfile.TemporaryFile("w+") as noise:
        process = subprocess.Popen(
            [sys.executable, "-m", "anabranch.bench.worker", msgspec.json.encode(job).decode()],
            stdout=subprocess.PIPE, stderr=noise, text=True, env=environment,
        )  # fmt: skip
        watch = MemoryWatch(process.pid)
        watch.start()
        try:
            output, _ = process.communicate()
        except BaseException:
            process.terminate()  # the JVM ends with the process that started it
            process.wait()
            raise
        finally:
            peak = watch.finish()
        if process.returncode:
            noise.seek(0)
            raise RunError(f"{job} ended with an error:\n{noise.read()[-4000:]}")
    answer = msgspec.json.decode(output.splitlines()[-1], type=Answer)
    shutil.rmtree(checkpoint_of(job), ignore_errors=True)
    return JobOutcome(job, answer, peak, time.monotonic() - began, before, load())


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
