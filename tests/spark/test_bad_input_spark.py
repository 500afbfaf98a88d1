"""Bad input, full disks and sinks on a real Spark: a few of what `tests/unit` has for the twin."""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from anabranch import Session
from anabranch.errors import RunError, SourceError, StateError
from anabranch.sinks.spark import SparkSink
from anabranch.testing.corruption import Damage
from helpers import (
    SCHEMA,
    Stage,
    orphans,
    plain,
    read_results,
    sample,
    source_metrics,
    sums,
    visible_epochs,
)

pytestmark = pytest.mark.spark

GOOD = [sample(number) for number in range(4)]


def stop_at_file_2(stage: Stage, content: pl.DataFrame | bytes | str, *words: str) -> None:
    for number in range(4):
        stage.write(number, content if number == 2 else None)
    message = stage.refused(SourceError)
    for word in ("Stream 'rows'", str(stage.path(2)), "Mend or remove the file", *words):
        assert word in message
    assert "Traceback" not in message
    stage.check_whole(last_epoch=1)
    assert visible_epochs(stage.out) == [1]
    stage.write(2)
    stage.finish()
    assert stage.results() == stage.expected(*GOOD)


def test_missing_column(tmp_path: Path, spark: SparkSession) -> None:
    stop_at_file_2(Stage(tmp_path, spark=spark), sample(2).drop("v"), "column 'v' is missing")


def test_truncated_file(tmp_path: Path, spark: SparkSession) -> None:
    stage = Stage(tmp_path, "arrow", spark=spark)
    whole = stage.write(2).read_bytes()
    stop_at_file_2(stage, whole[: len(whole) // 2], "cannot be read as arrow")


def test_dead_letters(tmp_path: Path, spark: SparkSession) -> None:
    """Bad lines and late rows of the same file, kept and counted; the rest of it is read."""
    stage = Stage(tmp_path, "csv", spark=spark)
    late = pl.DataFrame({"time": [2, 3], "k": ["key-1", None], "v": [5, 6]}, SCHEMA)
    content = pl.concat([sample(2), late]).write_csv() + "25,key-1\nsoon,key-1,7\n"
    for number in range(4):
        stage.write(number, content if number == 2 else None)
    session = stage.session(on_bad="dead-letter", on_late="dead-letter")
    counted = source_metrics(stage.finish(session, dead_letter=stage.dead))
    assert stage.results() == stage.expected(*GOOD)
    assert (counted["badRowsTotal"], counted["badFilesTotal"], counted["lateRowsTotal"]) == (
        2,
        0,
        2,
    )
    (lines,) = stage.dead.glob("bad/rows/epoch=000000000002/*.lines.jsonl")
    kept = [json.loads(line)["line"] for line in lines.read_text().splitlines()]
    assert kept == ["25,key-1", "soon,key-1,7"]
    (rows,) = stage.dead.glob("late/rows/epoch=000000000002/*.parquet")
    assert plain(pl.read_parquet(rows, hive_partitioning=False)) == plain(late)


def test_missing_segment(tmp_path: Path, spark: SparkSession) -> None:
    stage = Stage(tmp_path, spark=spark)
    for number in range(2):
        stage.write(number)
    stage.run()
    stage.write(2)
    path = stage.checkpoint / sorted(stage.manifest().files())[0]
    whole = path.read_bytes()
    path.unlink()
    assert f"The state segment '{path}'" in stage.refused(StateError)
    path.write_bytes(whole)
    stage.finish()
    assert stage.results() == stage.expected(*GOOD[:3])


@pytest.mark.parametrize("what", ["state", "results"])
def test_full_disk(tmp_path: Path, small_disk: Path, spark: SparkSession, what: str) -> None:
    stage = Stage(tmp_path, spark=spark)
    if what == "state":
        stage.checkpoint = small_disk / "checkpoint"
    else:
        stage.out = small_disk / "out"
    frames = [
        pl.DataFrame({"time": number * 10, "k": map(str, range(4000)), "v": 1}, SCHEMA)
        for number in range(4)
    ]
    for number, rows in enumerate(frames):
        stage.write(number, rows)
    ballast = small_disk / "ballast"

    def fill(step: str, epoch: int) -> None:
        if (step, epoch) == ("before-tasks", 2):
            left = os.statvfs(small_disk)
            ballast.write_bytes(bytes(left.f_bavail * left.f_frsize))

    message = stage.refused(StateError if what == "state" else RunError, on_step=fill)
    assert "No space left on device" in message
    assert "not counted" in message
    stage.check_whole(last_epoch=1)
    ballast.unlink()
    stage.finish()
    assert stage.results() == stage.expected(*frames)
    assert orphans(stage.checkpoint) == set()


def test_any_spark_writer(tmp_path: Path, spark: SparkSession) -> None:
    """A function of (DataFrame, epoch); one that fails is given the whole epoch again."""
    stage = Stage(tmp_path, spark=spark)
    for number in range(4):
        stage.write(number)
    broken = True

    def write(rows: DataFrame, epoch: int) -> None:
        if broken and epoch == 2:
            raise OSError("no such table")
        rows.write.parquet(str(stage.out / f"epoch={epoch:012d}"))

    message = stage.refused(RunError, sinks={"sums": SparkSink(spark, write)})
    for word in ("Spark writer", "epoch 2", "no such table", "handed over again"):
        assert word in message
    broken = False
    stage.finish(sinks={"sums": SparkSink(spark, write)})
    assert visible_epochs(stage.out) == [1, 2, 3, 4]
    assert stage.results() == stage.expected(*GOOD)


def test_foreach_memory_and_null_keys(tmp_path: Path, spark: SparkSession) -> None:
    stage = Stage(tmp_path, "json", spark=spark)
    for number in range(4):
        stage.write(number)
    session = stage.session()
    session.query("again", sums(session.from_stream("rows")))
    received: dict[int, pa.Table] = {}

    def take(rows: pa.Table, epoch: int) -> None:
        assert epoch not in received
        received[epoch] = rows

    run = stage.finish(session, sinks={"sums": take, "again": "memory"})
    assert plain(pl.concat(map(pl.from_arrow, received.values()))) == stage.expected(*GOOD)
    assert plain(run.results("again")) == stage.expected(*GOOD)
    assert sum(row[1] is None for row in plain(run.results("again"))) == 4


def test_a_streaming_dataframe(tmp_path: Path, spark: SparkSession) -> None:
    """Started twice from one session and checkpoint; late rows are kept with all their columns."""
    stage = Stage(tmp_path, spark=spark)
    settings: dict[str, Any] = {"fsync": False}
    session = Session(spark, 2, settings)
    schema = "time long, k string, v long"
    frame = (
        spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(stage.input))
    )
    rows = session.stream("rows", frame, ordered="time", on_late="dead-letter")
    session.query("times", rows.select("time"))
    session.query("sums", sums(rows.select("time", "k", "v")))
    late = pl.DataFrame({"time": [1], "k": ["late"], "v": [7]}, SCHEMA)
    sinks = {"times": stage.root / "times", "sums": stage.out}
    options: dict[str, Any] = {"sinks": sinks, "dead_letter": stage.dead}
    for number in range(2):
        stage.write(number)
    stage.run(session, **options)
    for number in range(2, 4):
        stage.write(number, pl.concat([sample(number), late]) if number == 3 else None)
    stage.finish(session, **options)
    assert stage.results() == stage.expected(*GOOD)
    (kept,) = stage.dead.glob("late/rows/epoch=*/*.parquet")
    assert plain(pl.read_parquet(kept, hive_partitioning=False)) == plain(late)


def test_a_flipped_bit_in_a_landed_batch_is_found_and_named(
    tmp_path: Path, spark: SparkSession
) -> None:
    stage = Stage(tmp_path, spark=spark)
    session = Session(spark, 2, {"fsync": False})
    frame = spark.readStream.schema("time long, k string, v long").parquet(str(stage.input))
    session.query("sums", sums(session.stream("rows", frame, ordered="time")))
    stage.write(0)
    flipped: list[Path] = []

    def flip(step: str, epoch: int) -> None:
        if step == "before-tasks":
            (landed,) = stage.checkpoint.glob("landing/rows/batch-*/*.arrow")
            Damage(landed, landed.stat().st_size // 2, 2).flip()
            flipped.append(landed)
            assert stat.S_IMODE(landed.stat().st_mode) == 0o600
            assert stat.S_IMODE((landed.parents[1] / "_spark").stat().st_mode) == 0o700

    message = stage.refused(StateError, session, on_step=flip)
    assert f"have landed in '{flipped[0]}' cannot be read: its checksum" in message


def test_a_landed_batch_under_another_number_is_refused(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It is whole, but its rows would count twice."""
    stage = Stage(tmp_path, spark=spark)
    session = Session(spark, 2, {"fsync": False})
    frame = spark.readStream.schema("time long, k string, v long").parquet(str(stage.input))
    session.query("sums", sums(session.stream("rows", frame, ordered="time")))
    stage.write(0)
    copies: list[Path] = []

    def copy(step: str, epoch: int) -> None:
        if step == "before-tasks":
            (landed,) = stage.checkpoint.glob("landing/rows/batch-*")
            copies.append(landed.with_name(f"batch-{1:012d}"))
            shutil.copytree(landed, copies[0])

    message = stage.refused(StateError, session, on_step=copy)
    assert f"'{copies[0]}' holds batch 0" in message


def test_a_query_of_spark_that_began_anew_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    """Its batches have the numbers of others, which were consumed: they would be passed over."""
    stage = Stage(tmp_path, spark=spark)

    def session() -> Session:
        made = Session(spark, 2, {"fsync": False})
        frame = spark.readStream.schema("time long, k string, v long").parquet(str(stage.input))
        made.query("sums", sums(made.stream("rows", frame, ordered="time")))
        return made

    stage.write(0)
    stage.run(session())
    shutil.rmtree(stage.checkpoint / "landing" / "rows" / "_spark")
    stage.write(1)
    message = stage.refused(SourceError, session())
    assert "has consumed batches up to 0" in message
    assert "is gone" in message


def test_a_query_that_is_added_finds_its_columns_in_what_had_landed(
    tmp_path: Path, spark: SparkSession
) -> None:
    """A batch lands before its epoch, when nobody asked for what is asked for then."""
    stage = Stage(tmp_path, spark=spark)

    def session(*columns: str) -> Session:
        made = Session(spark, 2, {"fsync": False})
        schema = "time long, k string, v long"
        frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        rows = made.stream("rows", frame.parquet(str(stage.input)), ordered="time")
        for column in columns:
            made.query(column, rows.select("time", column))
        return made

    def stop(step: str, epoch: int) -> None:
        if step == "after-publish":
            while not (stage.checkpoint / "landing" / "rows" / "batch-000000000001").exists():
                time.sleep(0.01)
            raise RuntimeError("the process is gone")

    for number in range(3):
        stage.write(number)
    stage.refused(RunError, session("k"), sinks={"k": stage.root / "k"}, on_step=stop)
    sinks = {"k": stage.root / "k", "v": stage.root / "v"}
    stage.run(session("k", "v"), sinks=sinks, changed="keep-same")
    found = {name: plain(read_results(stage.root / name)) for name in "kv"}
    wanted = pl.concat(GOOD[:3])
    assert found["k"] == plain(wanted.select("time", "k"))
    assert found["v"] == plain(pl.concat(GOOD[1:3]).select("time", "v"))
