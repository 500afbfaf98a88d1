"""Spark Structured Streaming's side: the same aggregate over the same files, as its guide writes it.

Spark's own defaults, but for the state store and the shuffle partitions the job names, a heap that is
large enough, loopback and no log.
"""

from __future__ import annotations

import os
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from anabranch.bench.jobs import Answer, Epoch, Reference, checkpoint_of, results_of, steady

PACKAGE = "org.apache.spark.sql.execution.streaming.state"
STORES = {
    "default": f"{PACKAGE}.HDFSBackedStateStoreProvider",
    "RocksDB": f"{PACKAGE}.RocksDBStateStoreProvider",
}


def reference_spark(job: Reference) -> SparkSession:
    """A plain Spark session with the job's state store and shuffle partitions."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master(f"local[{job.cores}]")
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
    """Runs the aggregate over all files and reports its micro-batches."""
    spark = reference_spark(job)
    packets = (
        spark.readStream.schema(spark.read.parquet(job.data).schema)
        .option("maxFilesPerTrigger", job.files)
        .parquet(job.data)
    )
    flows = (
        packets.withColumn("at", F.timestamp_seconds("time"))
        .withWatermark("at", "0 seconds")
        .groupBy(F.window("at", f"{job.window} seconds"), "srcIP", "destIP")
        .agg(F.count("*").alias("cnt"), F.sum("len").alias("bytes"))
        .select(
            F.expr(f"unix_timestamp(window.start) div {job.window}").alias("tb"),
            "srcIP", "destIP", "cnt", "bytes",
        )
    )  # fmt: skip
    began = time.monotonic()
    query = (
        flows.writeStream.format("parquet")
        .outputMode("append")
        .option("checkpointLocation", str(checkpoint_of(job)))
        .trigger(availableNow=True)
        .start(str(results_of(job)))
    )
    query.awaitTermination()
    seconds = time.monotonic() - began
    epochs = [
        Epoch(
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
        epochs=epochs, seconds=seconds, steady_rows=rows, steady_seconds=steady_seconds, java=java
    )
