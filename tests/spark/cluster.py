"""A run on executors of its own, as a program: `python cluster.py FOLDER ROWS KILL_AT`.

Kills an executor before epoch KILL_AT, and for some epochs every one that is started in its place, so that
the loss is seen however fast Spark replaces it. The last line of output is JSON: a list of what each epoch's
sites did, and the history.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import psutil

from anabranch import Session
from anabranch.engine.local import local_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SITES = 3
AWAY = 5
"""Epochs for which nothing replaces what was killed."""


def await_executors(spark: SparkSession) -> None:
    """Waits until every executor has registered: one that comes later would be given sites of the others."""
    context = spark.sparkContext._jsc.sc()
    while len(context.getExecutorIds().mkString(" ").split()) < SITES:
        time.sleep(0.1)


def keep_killing(stop: threading.Event) -> None:
    """Kills executor 1 and whatever comes in its place, before it can have registered."""
    while not stop.is_set():
        for each in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                words = each.cmdline()
                if "--executor-id" in words and words[words.index("--executor-id") + 1] not in (
                    "0",
                    "2",
                ):
                    each.kill()
        stop.wait(0.05)


def main(folder: str, rows: int, kill_at: int) -> None:
    spark = local_spark(f"local-cluster[{SITES},1,1024]")
    await_executors(spark)
    session = Session(
        spark, sites=SITES,
        settings={"max_rows_per_epoch": 5_000, "fsync": False, "recent_progress": 1000},
    )  # fmt: skip
    session.stream(
        "tcp", generator="packets", rows=rows, ordered="time", rows_per_second=500, keys=500, seed=9
    )
    session.query("flows", "SELECT tb, srcIP, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb, srcIP")

    stop = threading.Event()

    def step(name: str, epoch: int) -> None:
        if name == "begin" and epoch == kill_at:
            threading.Thread(target=keep_killing, args=[stop], daemon=True).start()
        elif name == "begin" and epoch == kill_at + AWAY:
            stop.set()

    run = session.start(
        sinks={"flows": f"{folder}/out"}, checkpoint=f"{folder}/ckpt", at_end="close", on_step=step
    )
    run.await_termination()
    told: list[Any] = [one["customMetrics"]["sites"] for one in run.recent_progress]
    session.stop()
    print(json.dumps({"epochs": told, "history": run.history()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
