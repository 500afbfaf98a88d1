"""The process of one run of `bench overflow`: a join without bounds, through Anabranch or through Spark.

`python -m anabranch.bench.growing '{"side": "anabranch", …}'`. What it has done so far is in a file, a line
of JSON for each epoch: the process may not live to tell.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import msgspec

STREAMS = ("a", "b", "c")
QUERY = "joined"
HEAP = "500m"
"""Of the JVM, on both sides: hardly more than Spark asks for. Ours needs it to pass bytes on."""


class Growing(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of the process."""

    side: str
    """"anabranch" or "spark"."""
    data: str
    scratch: str
    inputs: int
    spills: bool = True
    cores: int = 2
    heap: str = HEAP

    @property
    def streams(self) -> tuple[str, ...]:
        return STREAMS[: self.inputs]

    @property
    def results(self) -> Path:
        return Path(self.scratch) / "results"

    @property
    def epochs(self) -> Path:
        return Path(self.scratch) / "epochs.jsonl"


class EpochDone(msgspec.Struct, frozen=True, kw_only=True):
    """What one epoch has done."""

    at: float
    """Seconds since the query began."""
    rows: int
    results: int
    state_bytes: int
    aside_bytes: int = 0


def growing_text(streams: tuple[str, ...]) -> str:
    """The streams joined on `k`, without a bound; their texts are compared, so they have to be kept.

    >>> print(growing_text(("a", "b")))
    SELECT a.k, a.time AS a_time, b.time AS b_time
    FROM a
    JOIN b ON a.k = b.k AND a.v <> b.v
    """
    first, *others = streams
    times = ", ".join(f"{name}.time AS {name}_time" for name in streams)
    lines = [f"SELECT {first}.k, {times}", f"FROM {first}"]
    lines += [f"JOIN {name} ON {first}.k = {name}.k AND {first}.v <> {name}.v" for name in others]
    return "\n".join(lines)


def read_epochs(job: Growing) -> list[EpochDone]:
    """What a process has told before it ended."""
    if not job.epochs.exists():
        return []
    lines = job.epochs.read_bytes().splitlines(keepends=True)
    return [msgspec.json.decode(line, type=EpochDone) for line in lines if line.endswith(b"\n")]


def _ours(job: Growing) -> None:
    from anabranch import Session
    from anabranch.settings import AUTO

    session = Session.local(
        cores=job.cores, conf={"spark.driver.memory": job.heap},
        settings={
            "max_files_per_epoch": 1,
            "allow_unbounded_state": True,
            "site_memory_bytes": AUTO if job.spills else None,
            "recent_progress": 100_000,
        },
    )  # fmt: skip
    for name in job.streams:
        session.stream(name, path=Path(job.data) / name, ordered="time")
    session.query(QUERY, growing_text(job.streams))
    began = time.monotonic()
    run = session.start(
        sinks={QUERY: job.results}, checkpoint=Path(job.scratch) / "checkpoint", at_end="close"
    )
    told = 0
    with job.epochs.open("wb", buffering=0) as out:
        ended = False
        while not ended:
            ended = run.await_termination(0.05)
            done = run.recent_progress
            for progress in done[told:]:
                out.write(msgspec.json.encode(_of_ours(progress, time.monotonic() - began)) + b"\n")
            told = len(done)
    session.stop()


def _of_ours(progress: dict[str, Any], at: float) -> EpochDone:
    memory = progress["customMetrics"]["adaptation"]["memory"]
    return EpochDone(
        at=at,
        rows=progress["numInputRows"],
        results=progress["sinks"][0]["numOutputRows"],
        state_bytes=sum(one["memoryUsedBytes"] for one in progress["stateOperators"]),
        aside_bytes=sum(site["aside"] for site in memory),
    )


def _spark(job: Growing) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from anabranch.bench.jobs import Reference
    from anabranch.bench.spark_reference import reference_spark

    spark = reference_spark(
        Reference(
            data=job.data, scratch=job.scratch, store="RocksDB", memory=job.heap, cores=job.cores
        )
    )
    whole = None
    for name in job.streams:
        folder = f"{job.data}/{name}"
        rows = (
            spark.readStream.schema(spark.read.parquet(folder).schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(folder)
            .select(*(F.col(column).alias(f"{name}_{column}") for column in ("k", "time", "v")))
        )
        first = job.streams[0]
        equal = f"{first}_k = {name}_k AND {first}_v <> {name}_v"
        whole = rows if whole is None else whole.join(rows, F.expr(equal))
    assert whole is not None
    times = [f"{name}_time" for name in job.streams]
    began = time.monotonic()

    class Tell(StreamingQueryListener):
        """Writes a line for each batch."""

        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            progress = event.progress
            line = EpochDone(
                at=time.monotonic() - began, rows=progress.numInputRows,
                results=max(0, progress.sink.numOutputRows),
                state_bytes=sum(one.memoryUsedBytes for one in progress.stateOperators),
            )  # fmt: skip
            with job.epochs.open("ab") as out:
                out.write(msgspec.json.encode(line) + b"\n")

        def onQueryTerminated(self, event: Any) -> None:
            pass

    spark.streams.addListener(Tell())
    query = (
        whole.select(F.col("a_k").alias("k"), *times)
        .writeStream.format("parquet")
        .option("checkpointLocation", f"{job.scratch}/checkpoint")
        .trigger(availableNow=True)
        .start(str(job.results))
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.argv[1], type=Growing)
    _ours(asked) if asked.side == "anabranch" else _spark(asked)
