"""A run on an executor of its own, as a program: `python executors.py FOLDER`.

PYSPARK_PYTHON is as it was given.

The last line of output is the error that ended the run, or "done with" and the executors' interpreter.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from anabranch import Session
from anabranch.errors import AnabranchError


def main(folder: str) -> None:
    # Not local_spark(), which sets PYSPARK_PYTHON: as users make their sessions
    spark = (
        SparkSession.builder.master("local-cluster[1,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session = Session(spark, sites=2)
    session.stream("tcp", generator="packets", rows=2_000, ordered="time")
    session.query("flows", "SELECT tb, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb")
    try:
        session.start(sinks={"flows": f"{folder}/out"}, at_end="close").await_termination()
        said = f"done with {spark.sparkContext.pythonExec}"
    except AnabranchError as error:
        said = str(error)
    spark.stop()
    print(said)


if __name__ == "__main__":
    main(sys.argv[1])
