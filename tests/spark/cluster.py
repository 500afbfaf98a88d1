"""A run on executors of its own, as a program: `python cluster.py FOLDER ROWS KILL_AT`.

Kills an executor before epoch KILL_AT. The last line of output is JSON: a list of what each epoch's
sites did, and the history.
"""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

import psutil

from anabranch import Session
from anabranch.engine.local import local_spark

SITES = 3


def kill_an_executor() -> None:
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            words = each.cmdline()
            executor = "--executor-id" in words and words[words.index("--executor-id") + 1]
            if executor == "1":
                each.kill()
                return


def main(folder: str, rows: int, kill_at: int) -> None:
    session = Session(
        local_spark("local-cluster[3,1,1024]"), sites=SITES,
        settings={"max_rows_per_epoch": 5_000, "fsync": False, "recent_progress": 1000},
    )  # fmt: skip
    session.stream(
        "tcp", generator="packets", rows=rows, ordered="time", rows_per_second=500, keys=500, seed=9
    )
    session.query("flows", "SELECT tb, srcIP, COUNT(*) AS c FROM tcp GROUP BY time/60 AS tb, srcIP")

    def step(name: str, epoch: int) -> None:
        if name == "begin" and epoch == kill_at:
            kill_an_executor()

    run = session.start(
        sinks={"flows": f"{folder}/out"}, checkpoint=f"{folder}/ckpt", at_end="close", on_step=step
    )
    run.await_termination()
    told: list[Any] = [one["customMetrics"]["sites"] for one in run.recent_progress]
    session.stop()
    print(json.dumps({"epochs": told, "history": run.history()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
