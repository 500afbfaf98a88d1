"""A checkpoint on a real S3 server, written and read by Spark's workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from rivalry import GOOD, one_line

from helpers import Stage, missing, orphans
from s3_server import ServedBucket

pytestmark = pytest.mark.spark


def test_workers_of_spark_keep_their_state_on_s3(
    spark: SparkSession, s3_bucket: ServedBucket, s3_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster `spark.executorEnv.…` says this; the session of the tests has started without it."""
    for name, value in {**s3_bucket.variables, "TMPDIR": os.environ["TMPDIR"]}.items():
        monkeypatch.setitem(spark.sparkContext.environment, name, value)
    stage = Stage(s3_root, spark=spark, settings={"max_files_per_epoch": 3})
    for number in range(3):
        stage.write(number, GOOD[number])
    stage.run(checkpoint=s3_bucket.uri(stage.checkpoint))
    for number in range(3, len(GOOD)):
        stage.write(number, GOOD[number])
    stage.finish(checkpoint=s3_bucket.uri(stage.checkpoint))
    assert stage.results() == stage.expected(*GOOD)
    assert missing(stage.checkpoint) == orphans(stage.checkpoint) == set()
    one_line(stage)
