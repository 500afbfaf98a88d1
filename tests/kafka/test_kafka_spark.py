"""From a topic to a topic on Spark: its workers read, with consumers of their own that they keep."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import psutil
import pytest
from pyspark.sql import SparkSession
from topics import Topics, as_json

from anabranch.engine.local import local_spark
from anabranch.sources.kafka.consumers import CONSUMERS
from helpers import Stage, sample

pytestmark = pytest.mark.spark

ROWS = pl.concat([sample(number) for number in range(6)])


@pytest.fixture
def spark() -> Iterator[SparkSession]:
    """Spark in this process, which may have one already: then it stays."""
    running = SparkSession.getActiveSession() is not None
    session = local_spark("local[2]")
    yield session
    if not running:
        session.stop()


def connections(port: int) -> set[tuple[int, int]]:
    """The connections that Python workers of Spark have to the broker: the process and its port."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            if any("pyspark.daemon" in part for part in process.cmdline()):
                found |= {
                    (process.pid, one.laddr.port)
                    for one in process.net_connections("tcp")
                    if one.status == psutil.CONN_ESTABLISHED and one.raddr.port == port
                }
        except psutil.NoSuchProcess:
            continue
    return found


def test_from_topic_to_topic(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, target = topics.make(3), topics.make(2)
    port = int(topics.servers.rpartition(":")[2])
    open_at: dict[int, set[tuple[int, int]]] = {}

    def look(step: str, epoch: int) -> None:
        if step == "before-commit":
            open_at[epoch] = connections(port)
            assert not any(partition.topic == source for partition in CONSUMERS._kept)

    stage = Stage(tmp_path, spark=spark, settings={"max_rows_per_epoch": 40})
    stream = {"path": None, "kafka": topics.servers, "topic": source, "format": "json"}
    for half, at_end in ((ROWS[:120], "keep"), (ROWS[120:], "close")):
        for number in range(3):
            topics.send(source, as_json(half[number::3]), number)
        stage.run(
            stage.session(**stream, lateness=3),
            sinks={"sums": {"kafka": topics.servers, "topic": target, "key": "k"}},
            at_end=at_end,
            on_step=look,
        )
    found = sorted((tuple(row.values()) for row in topics.rows(target)), key=repr)
    assert found == stage.expected(ROWS)
    assert stage.manifest().streams["rows"].offset["offsets"] == {"0": 80, "1": 80, "2": 80}
    # Each epoch finds consumers that the one before has opened
    assert open_at[0]
    assert open_at[0] & open_at[1] & open_at[2]
