"""`anabranch warm`: has the classes of Spark kept, so that the next runs on this machine start sooner."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from anabranch.engine.class_archive import CACHE, DUMPED, QUIET, archive_path
from anabranch.errors import RunError

WINDOWED = "SELECT tb, k, COUNT(*) AS n, SUM(v) AS total FROM warming GROUP BY time / 10 AS tb, k"
"""A query with an exchange: what runs load for an epoch."""


def warm() -> Path:
    """Runs a small query and keeps the classes that it took; where."""
    path = archive_path()
    if path is None:
        raise RunError(
            "There is no place to keep Spark's classes: Java or PySpark was not found, or the folder has a "
            f"space in its name. Install Java 17 or newer, and set {CACHE} to a folder without spaces."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        _run(f"{DUMPED}{unfinished} {QUIET}")
        if not unfinished.is_file():
            raise RunError(
                f"Java has not kept Spark's classes in '{path.parent}'. It must be Java 17 or newer, "
                "and the folder needs about 150 MB of space."
            )
        # At once: a JVM that starts now maps the old file or the new one
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def _run(option: str) -> None:
    """One epoch on a Spark of its own, whose JVM has ended when this returns."""
    import polars as pl

    from anabranch.engine.local import end_java
    from anabranch.session import Session

    session = Session.local(conf={"spark.driver.extraJavaOptions": option})
    try:
        with TemporaryDirectory(prefix="anabranch-warm-") as scratch:
            rows = pl.DataFrame({"time": range(100), "k": [1, 2] * 50, "v": range(100)})
            (Path(scratch) / "rows").mkdir()
            rows.write_parquet(Path(scratch) / "rows" / "0.parquet")
            session.stream("warming", path=Path(scratch) / "rows", ordered="time")
            session.query("warmed", WINDOWED)
            run = session.start(
                sinks={"warmed": Path(scratch) / "results"},
                checkpoint=Path(scratch) / "checkpoint", trigger="available-now",
            )  # fmt: skip
            run.await_termination()
    finally:
        session.stop()
        end_java()
