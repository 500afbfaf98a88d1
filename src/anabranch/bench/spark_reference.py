"""Spark Structured Streaming's side: the same queries over the same files, as its guide writes them.

Spark's own defaults, but for the state store and the shuffle partitions the job names, a heap that is
large enough, loopback and no log.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from anabranch.bench.arriving import arrivals, files_seen
from anabranch.bench.jobs import Answer, EpochTime, Reference, checkpoint_of, results_of, steady
from anabranch.bench.nexmark_spark import nexmark_frame
from anabranch.engine.local import DEFAULTS, JAVA_OPTIONS

PACKAGE = "org.apache.spark.sql.execution.streaming.state"
STORES = {
    "default": f"{PACKAGE}.HDFSBackedStateStoreProvider",
    "RocksDB": f"{PACKAGE}.RocksDBStateStoreProvider",
}


def reference_spark(job: Reference) -> SparkSession:
    """A plain Spark session with the job's state store and shuffle partitions."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options: dict[str, str | float | int | bool | None] = {
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.serializer": DEFAULTS["spark.serializer"],
    }
    spark = (
        SparkSession.builder.master(f"local[{job.cores}]")
        .config(map=options if job.tuned else {})
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", job.memory)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", str(job.partitions))
        .config("spark.sql.streaming.stateStore.providerClass", STORES[job.store])
        .config("spark.sql.streaming.numRecentProgressUpdates", "1000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run_reference(job: Reference) -> Answer:
    """Runs the aggregate or the join over all files and reports its micro-batches."""
    spark = reference_spark(job)
    results = _asked(spark, job)
    began = time.monotonic()
    writer = (
        results.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint_of(job)))
    )
    appeared: list[float] = []
    if job.arriving:
        query = writer.start(str(results_of(job)))
        appeared = arrivals(
            sorted(Path(job.data).glob("*.parquet")), Path(job.scratch) / "arriving",
            lambda: files_seen(results_of(job)), lambda: not query.isActive,
        )  # fmt: skip
        query.stop()
    else:
        query = writer.trigger(availableNow=True).start(str(results_of(job)))
        query.awaitTermination()
    seconds = time.monotonic() - began
    epochs = [
        EpochTime(
            progress["numInputRows"],
            float(progress["durationMs"]["triggerExecution"]),
            sum(operator["numRowsTotal"] for operator in progress["stateOperators"]),
        )
        for progress in query.recentProgress
    ]
    java = str(spark.sparkContext._jvm.System.getProperty("java.version"))  # type: ignore[union-attr]
    spark.stop()
    rows, steady_seconds = steady(epochs)
    return Answer(
        epochs=epochs,
        seconds=seconds,
        steady_rows=rows,
        steady_seconds=steady_seconds,
        java=java,
        appeared_ms=appeared,
    )


def _asked(spark: SparkSession, job: Reference) -> DataFrame:
    """The query of a job."""
    if job.nexmark:
        return nexmark_frame(job.nexmark, lambda name: _files(spark, job, f"{job.data}/{name}"))
    if job.streams:
        return _joined(spark, job)
    return _best(spark, job) if job.best else _flows(spark, job)


def _files(spark: SparkSession, job: Reference, folder: str) -> DataFrame:
    watched = Path(job.scratch) / "arriving" if job.arriving else Path(folder)
    watched.mkdir(exist_ok=True)
    return (
        spark.readStream.schema(spark.read.parquet(folder).schema)
        .option("maxFilesPerTrigger", job.files)
        .parquet(str(watched))
    )


def _flows(spark: SparkSession, job: Reference) -> DataFrame:
    return (
        _files(spark, job, job.data)
        .withColumn("at", F.timestamp_seconds("time"))
        .withWatermark("at", "0 seconds")
        .groupBy(F.window("at", f"{job.window} seconds"), "srcIP", "destIP")
        .agg(F.count("*").alias("cnt"), F.sum("len").alias("bytes"))
        .select(
            F.expr(f"unix_timestamp(window.start) div {job.window}").alias("tb"),
            "srcIP", "destIP", "cnt", "bytes",
        )
    )  # fmt: skip


def _best(spark: SparkSession, job: Reference) -> DataFrame:
    """The greatest struct of each window and source: Spark has no ROW_NUMBER over a stream."""
    found = (
        _files(spark, job, job.data)
        .withColumn("at", F.timestamp_seconds("time"))
        .withWatermark("at", "0 seconds")
        .groupBy(F.window("at", "60 seconds"), "srcIP")
        .agg(F.max(F.struct("len", "time", "destIP")).alias("best"))
    )
    tb = F.expr("unix_timestamp(window.start) div 60").alias("tb")
    return found.select(tb, "srcIP", "best.len", "best.time", "best.destIP")


def _joined(spark: SparkSession, job: Reference) -> DataFrame:
    """The first stream joined with the second, that with the third, and so on.

    Spark takes one column with a watermark into a join. So each joined stream's is turned into a plain
    number right after its own join, and the first stream's time goes on to the next. The state keeps
    the time once, as the watermark needs it; the number is made of it.
    """
    first, *others = job.streams
    whole = _stream(spark, job, first)
    for name in others:
        near = (
            f"k = {name}_k AND {name}_at BETWEEN {first}_at - INTERVAL {job.window} SECONDS "
            f"AND {first}_at + INTERVAL {job.window} SECONDS"
        )
        other = _stream(spark, job, name).withColumnRenamed("k", f"{name}_k")
        whole = whole.join(other, F.expr(near)).drop(f"{name}_k")
        whole = _plain_time(whole, name)
    return _plain_time(whole, first)


def _stream(spark: SparkSession, job: Reference, name: str) -> DataFrame:
    at = F.timestamp_seconds("time").alias(f"{name}_at")
    rows = _files(spark, job, f"{job.data}/{name}").select("k", F.col("v").alias(f"{name}_v"), at)
    return rows.withWatermark(f"{name}_at", "0 seconds")


def _plain_time(rows: DataFrame, name: str) -> DataFrame:
    return rows.withColumn(f"{name}_time", F.unix_seconds(f"{name}_at")).drop(f"{name}_at")
