"""Anabranch's side: the windowed aggregate, from a path or from a DataFrame, and the joins."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from anabranch import Session, col, count, sum_
from anabranch.bench.arriving import arrivals, epochs_seen
from anabranch.bench.jobs import Answer, EpochTime, Ours, checkpoint_of, results_of, steady
from anabranch.bench.join_oracle import join_text
from anabranch.bench.nexmark_queries import QUERIES, UNBOUNDED
from anabranch.engine.run import Run
from anabranch.errors import RunError

UNLIMITED = 1 << 40
STREAM, QUERY = "tcp", "results"
BEST = (
    "SELECT time // 60 AS tb, srcIP, len, time, destIP FROM tcp QUALIFY ROW_NUMBER() OVER (PARTITION BY "
    "time // 60, srcIP ORDER BY len DESC, time DESC, destIP DESC) = 1"
)


def run_ours(job: Ours) -> Answer:
    """Runs the aggregate or the join over all files and reports its epochs."""
    session = Session.local(
        cores=job.cores,
        settings={
            "max_files_per_epoch": job.files,
            "max_bytes_per_epoch": UNLIMITED,
            "max_rows_per_epoch": UNLIMITED,
            "recent_progress": 1000,
            # Another version that is measured may not have it
            **({} if job.overlap else {"overlap": False}),
            **({"allow_unbounded_state": True} if job.nexmark in UNBOUNDED else {}),
        },
    )
    try:
        if job.arriving:
            return _from_arriving(session, job)
        return _from_dataframe(session, job) if job.dataframe else _from_path(session, job)
    finally:
        session.stop()


def register_files(session: Session, job: Ours) -> None:
    """The streams of a job, over the files of its folder."""
    if job.streams:
        ordered = "date_time" if job.nexmark else "time"
        for name in job.streams:
            session.stream(name, path=Path(job.data) / name, ordered=ordered)
    else:
        session.stream(STREAM, path=job.data, ordered="time")


def _from_path(session: Session, job: Ours) -> Answer:
    register_files(session, job)
    began = time.monotonic()
    run = start_ours(session, job, "available-now")
    run.await_termination()
    seconds = time.monotonic() - began
    epochs = _epochs(run.recent_progress)
    rows, steady_seconds = steady(epochs)
    return Answer(epochs=epochs, seconds=seconds, steady_rows=rows, steady_seconds=steady_seconds)


def _from_arriving(session: Session, job: Ours) -> Answer:
    """Files that come one by one into a folder that is watched."""
    files, folder = sorted(Path(job.data).glob("*.parquet")), Path(job.scratch) / "arriving"
    folder.mkdir()
    schema = pl.Schema(pl.read_parquet_schema(files[0]))
    session.stream(STREAM, path=folder, format="parquet", schema=schema, ordered="time")
    began = time.monotonic()
    run = start_ours(session, job, "continuous")
    results = results_of(job)
    times = arrivals(
        files, folder, lambda: epochs_seen(results), lambda: run.await_termination(0.0)
    )
    seconds = time.monotonic() - began
    run.stop()
    epochs = _epochs(run.recent_progress)
    rows, steady_seconds = steady(epochs)
    return Answer(
        epochs=epochs, seconds=seconds, steady_rows=rows, steady_seconds=steady_seconds,
        appeared_ms=times,
    )  # fmt: skip


def _from_dataframe(session: Session, job: Ours) -> Answer:
    """The first file alone, then all others at once.

    Spark hands batches over while an epoch is running. If all files were there from the start, some
    would be read while the first epoch, which does not count, warms up; so they come only after it,
    and the clock runs from then to the end of the last epoch.
    """
    assert session.spark is not None
    files = sorted(Path(job.data).glob("*.parquet"))
    folder = Path(job.scratch) / "arriving"
    folder.mkdir()
    _arrive(files[: job.files], folder)
    frame = (
        session.spark.readStream.schema(session.spark.read.parquet(job.data).schema)
        .option("maxFilesPerTrigger", job.files)
        .parquet(str(folder))
    )
    session.stream(STREAM, frame, ordered="time")
    began = time.monotonic()
    run = start_ours(session, job, "continuous")
    first = sum(pq.read_metadata(path).num_rows for path in files[: job.files])
    rest = sum(pq.read_metadata(path).num_rows for path in files[job.files :])
    _wait_for(run, first)
    opened = time.monotonic()
    _arrive(files[job.files :], folder)
    _wait_for(run, first + rest)
    ended = time.monotonic()
    run.stop()
    return Answer(
        epochs=_epochs(run.recent_progress), seconds=ended - began, steady_rows=rest,
        steady_seconds=ended - opened,
    )  # fmt: skip


def start_ours(session: Session, job: Ours, trigger: str) -> Run:
    """Starts the query of a job."""
    if job.nexmark:
        session.query(QUERY, QUERIES[job.nexmark].text)
    elif job.streams:
        session.query(QUERY, join_text(job.streams, job.window))
    elif job.best:
        session.query(QUERY, BEST)
    else:
        session.query(
            QUERY,
            session.from_stream(STREAM)
            .group_by((col("time") // job.window).alias("tb"), "srcIP", "destIP")
            .agg(count().alias("cnt"), sum_("len").alias("bytes")),
        )
    return session.start(
        sinks={QUERY: results_of(job)}, checkpoint=checkpoint_of(job), trigger=trigger
    )


def _arrive(files: list[Path], folder: Path) -> None:
    for path in files:
        os.link(path, folder / path.name)


def _wait_for(run: Run, rows: int) -> None:
    """Waits until the run has committed so many rows."""
    while sum(progress["numInputRows"] for progress in run.recent_progress) < rows:
        if run.await_termination(0.01):
            raise RunError(f"The run ended before it had {rows} rows.")


def _epochs(progress: list[dict[str, Any]]) -> list[EpochTime]:
    return [
        EpochTime(
            told["numInputRows"],
            float(told["durationMs"]["triggerExecution"]),
            sum(operator["numRowsTotal"] for operator in told["stateOperators"]),
            _ahead(told["customMetrics"].get("timeline", {})),
            told["customMetrics"].get("timeline", {}),
        )
        for told in progress
    ]


def _ahead(timeline: dict[str, Any]) -> float:
    """The milliseconds of the longest of the splits that began before their epoch."""
    early = [split for split in timeline.get("splits", ()) if split["at"] < 0]
    return max((sum(split["steps"].values()) for split in early), default=0.0)
