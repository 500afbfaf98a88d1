"""Epoch time of a stream whose folder has thousands of files that were read long ago."""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from anabranch.bench.data import Packets
from anabranch.session import Session

ROWS = 200_000
"""Of a file whose epoch is timed."""
TIMED = 12
SETTLING = 2
"""Epochs that do not count."""
SMALL = 10
"""Rows of a file that has only to be there."""
QUERY = "SELECT tb, destIP, SUM(len) AS bytes FROM tcp GROUP BY time/60 AS tb, destIP"


def time_files(session: Session, folder: Path, seen: int, rows: int) -> tuple[float, bool]:
    """The median epoch in ms of files that come after so many others, and whether all rows were read."""
    packets = Packets((SMALL,) * seen + (rows,) * TIMED, seconds_per_file=1)
    whole = folder / "whole"
    list(packets.write(whole))
    data, files = folder / "data", sorted(whole.iterdir())
    data.mkdir()
    # Written first and linked then, so that the first run sees none of those that are timed
    _link(files[:seen], data)
    first = _run(session, data, folder / "checkpoint", at_once=seen)
    _link(files[seen:], data)
    timed = _run(session, data, folder / "checkpoint", at_once=1)
    times = [float(epoch["durationMs"]["triggerExecution"]) for epoch in timed]
    read = sum(epoch["numInputRows"] for epoch in [*first, *timed])
    right = read == sum(pq.read_metadata(path).num_rows for path in files) and len(times) == TIMED
    return median(times[SETTLING:]), right


def _link(files: list[Path], folder: Path) -> None:
    for path in files:
        os.link(path, folder / path.name)


def _run(session: Session, data: Path, checkpoint: Path, at_once: int) -> list[dict[str, Any]]:
    fresh = Session(
        session.spark, 2, {"max_files_per_epoch": at_once, "recent_progress": 1000, "fsync": False}
    )
    fresh.stream("tcp", path=data, ordered="time", file_order="name")
    fresh.query("bytes", QUERY)
    run = fresh.start(sinks={"bytes": lambda rows, epoch: None}, checkpoint=checkpoint)
    run.await_termination()
    return run.recent_progress
