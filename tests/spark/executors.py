"""Runs on an executor of its own, as a program: `python executors.py FOLDER INTERPRETER…`.

One run for each interpreter given as PYSPARK_PYTHON, and then one without. A line of output for each: the
error that ended the run, or "done with" and the executors' interpreter.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from anabranch import Session
from anabranch.errors import AnabranchError


def run(spark: SparkSession, folder: Path) -> str:
    session = Session(spark, sites=2)
    session.stream("tcp", generator="packets", rows=2_000, ordered="time")
    session.query("flows", "SELECT tb, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb")
    try:
        session.start(sinks={"flows": folder}, at_end="close").await_termination()
    except AnabranchError as error:
        return str(error)
    return f"done with {spark.sparkContext.pythonExec}"


def main(folder: str, *interpreters: str) -> None:
    # Not local_spark(), which sets PYSPARK_PYTHON: as users make their sessions
    spark = (
        SparkSession.builder.master("local-cluster[1,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    unset = spark.sparkContext.pythonExec
    for number, interpreter in enumerate(interpreters):
        # As Spark has it when it is started with this variable
        os.environ["PYSPARK_PYTHON"] = spark.sparkContext.pythonExec = interpreter
        print(run(spark, Path(folder) / str(number)), flush=True)
    os.environ.pop("PYSPARK_PYTHON", None)
    spark.sparkContext.pythonExec = unset
    print(run(spark, Path(folder) / "last"))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
