"""The same DataFrame object run by Spark and by Anabranch: the rows are equal."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from programs.inputs import LATE_FILES, Inputs, write_inputs, write_readings
from programs.written import APPEND, LATE, UPDATE, WITHIN, clicked, seen, signals
from pyspark.sql import functions as F

from anabranch import Session, accelerate
from anabranch.errors import AnabranchError

pytestmark = pytest.mark.spark

USUAL = (
    "new_columns", "two_streams_together", "counts_by_window", "counts_by_window_and_slide",
    "start_and_end", "arithmetic_of_aggregates", "sessions", "an_inner_join", "an_outer_join",
    "casts", "a_watermark_on_a_computed_time",
)  # fmt: skip
"""Programs for every `make test`; the others take their time in `make test-all`."""


@pytest.fixture(scope="module")
def inputs(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inputs]:
    folder = tmp_path_factory.mktemp("programs")
    write_inputs(folder)
    before = {
        name: spark.conf.get(name)
        for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
    }
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    try:
        yield Inputs(spark, folder)
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def by_spark(frame: Any, mode: str) -> list[tuple[Any, ...]]:
    """What Spark gives, a window as its start and its end; of updates the last of each group."""
    name = f"told_{uuid.uuid4().hex[:8]}"
    query = (
        frame.writeStream.format("memory")
        .queryName(name)
        .outputMode(mode)
        .trigger(availableNow=True)
    ).start()
    query.awaitTermination()
    return [plain(row) for row in frame.sparkSession.table(name).collect()]


def plain(row: Any) -> tuple[Any, ...]:
    values: list[Any] = []
    for value in row:
        values += plain(value) if isinstance(value, tuple) else [normal(value)]
    return tuple(values)


def normal(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, float) and not math.isnan(value):
        return float(f"{value:.9g}")
    return value


def by_us(frame: Any, mode: str, settings: dict[str, Any] | None = None) -> pl.DataFrame:
    settings = {"allow_unbounded_state": mode == "update", **(settings or {})}
    session = Session(frame.sparkSession, sites=2, settings=settings)
    session.query("q", frame, mode=mode)
    run = session.start(sinks={"q": "memory"})
    assert run.await_termination(120)
    return run.results("q")


def last_of_each(rows: list[tuple[Any, ...]], keys: int) -> set[tuple[Any, ...]]:
    return set({row[:keys]: row for row in rows}.values())


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in USUAL else pytest.mark.soak) for name in APPEND],
)
def test_a_program_gives_what_spark_gives(inputs: Inputs, name: str) -> None:
    frame = APPEND[name](inputs)
    ours = by_us(frame, "append")
    expected = by_spark(frame, "append")
    assert expected, "the program gives nothing"
    assert Counter(map(plain, ours.rows())) == Counter(expected)


@pytest.mark.parametrize(
    ("name", "keys"), [("running_counts", 1), ("running_windows", 3), ("running_sums_of_some", 1)]
)
def test_groups_that_change_end_as_in_spark(inputs: Inputs, name: str, keys: int) -> None:
    frame = UPDATE[name](inputs)
    ours = [plain(row) for row in by_us(frame, "update").drop("gone", strict=False).rows()]
    expected = by_spark(frame, "update")
    assert expected
    assert last_of_each(ours, keys) == last_of_each(expected, keys)


def test_late_rows_count_where_they_count_in_spark(inputs: Inputs, tmp_path: Path) -> None:
    """A file at a time, each after Spark has closed what the one before it had made due."""
    here = Inputs(inputs.spark, tmp_path)
    write_readings(tmp_path, 0)
    frames = {name: (mode, program(here)) for name, (mode, program) in LATE.items()}
    queries = [
        frame.writeStream.format("memory").queryName(name).outputMode(mode).start()
        for name, (mode, frame) in frames.items()
    ]
    for number in range(len(LATE_FILES)):
        if number:
            write_readings(tmp_path, number)
        for query in queries:
            query.processAllAvailable()
    for query in queries:
        query.stop()
    for name, (mode, frame) in frames.items():
        expected = [plain(row) for row in inputs.spark.table(name).collect()]
        rows = by_us(frame, mode, {"max_files_per_epoch": 1}).drop("gone", strict=False).rows()
        ours = [plain(row) for row in rows]
        if mode == "update":
            keys = len(expected[0]) - (1 if name == "late_rows_without_windows" else 2)
            assert last_of_each(ours, keys) == last_of_each(expected, keys), name
        else:
            assert Counter(ours) == Counter(expected), name


def test_one_line_changes(inputs: Inputs, tmp_path: Path) -> None:
    counted = APPEND["counts_by_window"](inputs)
    writer = (
        accelerate(counted)
        .writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", tmp_path / "ckpt")
        .queryName("counts")
        .trigger(availableNow=True)
    )
    query = writer.start(str(tmp_path / "out"))
    assert query.awaitTermination(120)
    assert query.lastProgress is not None
    assert not query.isActive
    assert query.exception() is None
    parts = pl.read_parquet(tmp_path / "out" / "*" / "*.parquet")
    assert Counter(map(plain, parts.rows())) == Counter(by_spark(counted, "append"))


def test_batches_of_a_program_are_dataframes(inputs: Inputs) -> None:
    batches: list[tuple[int, list[Any]]] = []
    writer = (
        accelerate(APPEND["having"](inputs))
        .writeStream.foreachBatch(lambda frame, epoch: batches.append((epoch, frame.collect())))
        .trigger(availableNow=True)
    )
    with pytest.warns(UserWarning, match="No checkpointLocation is given"):
        query = writer.start()
    assert query.awaitTermination(120)
    rows = [plain(row) for _, batch in batches for row in batch]
    assert Counter(rows) == Counter(by_spark(APPEND["having"](inputs), "append"))


REFUSED = {
    "Add the column of the watermark": lambda i: signals(i).dropDuplicates(["device"]),
    "remembered for ever": lambda i: i.devices.dropDuplicates(["device", "time"]),
    "DeduplicateWithinWatermark": lambda i: signals(i).dropDuplicatesWithinWatermark(["device"]),
    "CollectList": lambda i: signals(i).groupBy(F.window("time", "1 minute")).agg(F.collect_list("device")),
    "Rand": lambda i: signals(i).where(F.rand(3) > 0.5),
    "PosExplode": lambda i: signals(i).select(F.posexplode(F.split("device", "-"))),
    "GetArrayItem": lambda i: signals(i).select(F.split("device", "-")[0].alias("x")),
    "RegExpReplace": lambda i: signals(i).select(F.regexp_replace("device", "a+", "b").alias("x")),
    "CreateNamedStruct": lambda i: signals(i).select(F.struct("device", "kind").alias("x")),
    "Round": lambda i: signals(i).select(F.round("signal", 1).alias("x")),
    "two columns called": lambda i: signals(i).select("device", F.col("kind").alias("device")),
    "Md5": lambda i: signals(i).select(F.md5("device").alias("x")),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_equal_is_refused_by_name(inputs: Inputs, what: str) -> None:
    with pytest.raises(AnabranchError) as caught:
        Session(inputs.spark).query("q", REFUSED[what](inputs))
    assert what in str(caught.value)


def test_other_misuse(inputs: Inputs) -> None:
    counted = APPEND["counts_by_window"](inputs)
    with pytest.raises(AnabranchError, match="the output mode is 'complete'"):
        accelerate(counted).writeStream.outputMode("complete").start("out")
    with pytest.raises(AnabranchError, match="is not a streaming one"):
        Session(inputs.spark).query("q", inputs.spark.range(3))
    with pytest.raises(AnabranchError, match="no option 'mergeSchema'"):
        accelerate(counted).writeStream.option("mergeSchema", True)
    with pytest.raises(AnabranchError, match="availableNow=True"):
        accelerate(counted).writeStream.trigger(availableNow=False)
    with pytest.raises(AnabranchError, match="Give the folder"):
        accelerate(counted).writeStream.start()
    with pytest.raises(AnabranchError, match="takes a streaming DataFrame"):
        accelerate(3)  # type: ignore[arg-type]
    # A join without a bound of time would keep its rows for ever
    unbounded = seen(inputs).join(clicked(inputs), F.expr(WITHIN.split("AND")[0]), "leftOuter")
    with pytest.raises(AnabranchError, match="grow"):
        accelerate(unbounded).writeStream.format("memory").start()
