"""From topics to topics with kills: of the driver at every step, of the broker; each result is there once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
import sender
from topics import Topics, as_json

from anabranch.testing.broker import Broker
from helpers import in_soak, sample
from kafka_broker import serving

ROWS = pl.concat([sample(number) for number in range(6)])
OTHERS = pl.concat([sample(number) for number in range(6)]).with_columns(v=pl.col("v") * 3 + 1)
NAMED = {"rows": ROWS, "others": OTHERS}


def prepared(topics: Topics, folder: Path) -> dict[str, Any]:
    """Full source topics of three partitions, empty ones for the results."""
    spec: dict[str, Any] = {"servers": topics.servers, "checkpoint": str(folder / "checkpoint")}
    for name, rows in NAMED.items():
        spec[name] = topics.make(3)
        for number in range(3):
            topics.send(spec[name], as_json(rows[number::3]), number)
    return {**spec, "sums": topics.make(2), "pairs": topics.make(2)}


def check(topics: Topics, spec: dict[str, Any]) -> None:
    """What is committed in the topics of the results is what DuckDB makes of the whole input."""
    with duckdb.connect() as connection:
        for name, rows in NAMED.items():
            connection.register(name, rows.to_arrow())
        for name, sql in (("sums", sender.SUMS), ("pairs", sender.PAIRS)):
            sql = sql.replace("time // 10 AS tb, k", "ALL").replace(
                "SELECT tb", "SELECT time // 10 AS tb"
            )
            expected = sorted(connection.execute(sql).fetchall(), key=repr)
            found = sorted((tuple(row.values()) for row in topics.rows(spec[name])), key=repr)
            assert found == expected, name


def run(spec: dict[str, Any], kill: tuple[str, int] | None) -> None:
    """A process over the topics, which kills itself there, or comes to the end."""
    done = subprocess.run(
        [sys.executable, sender.__file__, json.dumps({**spec, "kill": kill})],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True,
    )  # fmt: skip
    told = f"{kill}: {done.stdout.decode()[-2000:]}{done.stderr.decode()[-3000:]}"
    assert done.returncode == (-signal.SIGKILL if kill else 0), told


@pytest.mark.parametrize(
    "steps", [("after-commit", "in-transaction", "transaction-committed"), *in_soak([sender.STEPS])]
)
def test_the_driver_is_killed_at_every_step(
    topics: Topics, tmp_path: Path, steps: tuple[str, ...]
) -> None:
    """In `make test` at those that only the transactions of a topic can mend."""
    spec = prepared(topics, tmp_path)
    for number, step in enumerate(steps):
        run(spec, (step, 1 + number // 2))
    run(spec, None)
    check(topics, spec)


@pytest.mark.parametrize("seed", in_soak(range(6)))
def test_many_kills(topics: Topics, tmp_path: Path, seed: int) -> None:
    print(f"seed {seed}")
    draw = random.Random(seed)
    # More epochs than there are kills: each has one to happen in
    spec = {**prepared(topics, tmp_path), "rows_per_epoch": 20}
    epoch = 0
    for _ in range(9):
        epoch = min(8, epoch + draw.randrange(2))
        run(spec, (draw.choice(sender.STEPS), epoch))
    run(spec, None)
    check(topics, spec)


@pytest.fixture
def mortal(tmp_path: Path) -> Any:
    """A broker of its own, to be killed."""
    folder = tmp_path / "broker"
    folder.mkdir()
    with serving(folder) as broker:
        yield broker


@pytest.mark.parametrize(
    "steps", [("before-tasks", "after-commit"), *in_soak([("begin", "before-commit"), ("after-publish",) *
    2])] )  # fmt: skip
def test_the_broker_is_killed(mortal: Broker, tmp_path: Path, steps: tuple[str, str]) -> None:
    """While pieces are read and while results are sent; the run waits and nothing is lost."""
    topics = Topics(mortal.servers)
    spec = prepared(topics, tmp_path)
    down = threading.Semaphore(0)
    todo = [(step, 2 * number + 1) for number, step in enumerate(steps)]

    def kill(step: str, epoch: int) -> None:
        if todo and (step, epoch) == todo[0]:
            todo.pop(0)
            mortal.kill()
            down.release()

    begun = sender.session(spec).start(
        sinks=sender.sinks(spec), checkpoint=spec["checkpoint"], at_end="close", on_step=kill
    )
    for _ in steps:
        # From this thread: a broker ends with the thread that started it
        assert down.acquire(timeout=sender.LONGEST), f"no kill: {begun.exception()} {begun.status}"
        mortal.start()
    assert begun.await_termination(sender.LONGEST)
    check(topics, spec)
