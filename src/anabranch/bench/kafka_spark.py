"""Spark's own Kafka source over the same topic: `python -m anabranch.bench.kafka_spark '{"format": …}'`.

A process of its own, for the jars of the source must be there when its JVM starts. PySpark does not bring
them: `scripts/ensure-spark-kafka.sh` does. Prints one line of JSON, its micro-batches.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.bench.jobs import Reference
from anabranch.bench.spark_reference import reference_spark
from anabranch.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "time BIGINT, srcIP BIGINT, destIP BIGINT, len BIGINT"


def spark_jars() -> tuple[str, ...]:
    """The jars of Spark's Kafka source; raises RunError if they are not installed."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache"
    cache = Path(os.environ.get("ANABRANCH_CACHE") or Path(caches) / "anabranch")
    found = sorted(str(jar) for jar in cache.glob("spark-kafka-*/*.jar"))
    if not found:
        raise RunError(
            f"Spark's Kafka source is not in '{cache}': run scripts/ensure-spark-kafka.sh of the repository "
            "first."
        )
    return tuple(found)


def spark_epochs(given: dict[str, Any]) -> list[tuple[int, float]]:
    """Rows and seconds of the micro-batches of Spark over a topic, measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "anabranch.bench.kafka_spark", json.dumps({**given, "jars": spark_jars()})],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise RunError(f"Spark's Kafka source failed: {done.stderr[-2000:]}")
    return [(rows, seconds) for rows, seconds in json.loads(done.stdout.splitlines()[-1])]


def _run(given: dict[str, Any]) -> list[tuple[int, float]]:
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--jars {','.join(given['jars'])} pyspark-shell"
    spark = reference_spark(Reference(data="", scratch=given["place"], memory="2g"))
    try:
        query = (
            _flows(spark, given)
            .writeStream.format("parquet")
            .outputMode("append")
            .option("checkpointLocation", f"{given['place']}/cp")
            .trigger(availableNow=True)
            .start(f"{given['place']}/out")
        )
        query.awaitTermination()
        return [
            (told["numInputRows"], told["durationMs"]["triggerExecution"] / 1000)
            for told in query.recentProgress
        ]
    finally:
        spark.stop()


def _flows(spark: SparkSession, given: dict[str, Any]) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    values = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", given["servers"])
        .option("subscribe", given["format"])
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", given["epoch_rows"])
        .load()
    )
    if given["format"] == "avro":
        row = from_avro("value", given["value_schema"])
    else:
        row = F.from_json(F.col("value").cast("string"), COLUMNS)
    return (
        values.select(row.alias("row"))
        .select("row.*")
        .withColumn("at", F.timestamp_seconds("time"))
        .withWatermark("at", f"{given['lateness']} seconds")
        .groupBy(F.window("at", f"{given['window']} seconds"), "srcIP")
        .agg(F.count("*").alias("cnt"), F.sum("len").alias("bytes"))
        .select(
            F.expr(f"unix_timestamp(window.start) div {given['window']}").alias("tb"),
            "srcIP",
            "cnt",
            "bytes",
        )
    )


if __name__ == "__main__":
    print(json.dumps(_run(json.loads(sys.argv[1]))))
