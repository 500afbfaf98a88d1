"""From topics to topics on a real cluster; drivers, executors and the broker die, fifty times, thrice."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from queue import Empty, Queue
from typing import Any

import polars as pl
import psutil
import pytest
import sender
import test_kills
from tests.spark.standalone import MEMORY, Standalone, standalone
from topics import Topics, as_json

from anabranch.testing.broker import Broker
from helpers import sample
from kafka_broker import serving

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(7200)]

KILLS = 50
PARTITIONS = 3
GROWN = (KILLS // 3, 2 * KILLS // 3)
"""Kills after which the topics get a partition more, so that what is read where changes."""
STEP_SECONDS = 240.0
"""Longest wait for a step of a driver that starts on a busy machine."""
END_SECONDS = 1200.0


class Driver:
    """A process over the topics, and the steps of epochs that it tells of."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, sender.__file__, json.dumps(spec)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._steps: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._steps.put(line.split()[0] if line.split() else "")
        self._steps.put("ended")

    def await_step(self, wanted: str) -> bool:
        """Whether the step came before the process ended, or nothing for long."""
        until = time.monotonic() + STEP_SECONDS
        while time.monotonic() < until:
            try:
                step = self._steps.get(timeout=1)
            except Empty:
                continue
            if step in (wanted, "ended"):
                return step == wanted
        return False

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """The driver and its JVM."""
        below = psutil.Process(self.process.pid).children(recursive=True) if self.lives else []
        self.process.kill()
        for each in below:
            if each.is_running():
                each.kill()
        self.process.wait()


def kill_executor(cluster: Standalone, draw: random.Random) -> bool:
    """Kills an executor; whether there was one."""
    living = [each for name in ("worker-0", "worker-1") for each in cluster.executors(name)]
    if living:
        draw.choice(living).kill()
    return bool(living)


def kill_broker(broker: Broker, draw: random.Random) -> bool:
    broker.kill()
    time.sleep(draw.random())
    broker.start()
    return True


@pytest.mark.parametrize("seed", range(3))
def test_every_result_is_there_once(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows come before every kill; who dies, and at which step of an epoch, is drawn."""
    print(f"seed {seed}")
    draw = random.Random(seed)
    sent: dict[str, list[pl.DataFrame]] = {"rows": [], "others": []}
    killed = {"driver": 0, "executor": 0, "broker": 0}
    (tmp_path / "broker").mkdir()
    with serving(tmp_path / "broker") as broker, standalone(tmp_path / "cluster") as cluster:
        topics = Topics(broker.servers)
        spec: dict[str, Any] = {
            "servers": topics.servers, "checkpoint": str(tmp_path / "checkpoint"),
            "master": cluster.master, "conf": {"spark.executor.memory": MEMORY},
            **{name: topics.make(PARTITIONS) for name in sent},
            **{name: topics.make(2) for name in ("sums", "pairs")},
        }  # fmt: skip

        def send(number: int, partitions: int) -> None:
            for name, factor in (("rows", 1), ("others", 3)):
                rows = sample(number).with_columns(v=pl.col("v") * factor + factor - 1)
                sent[name].append(rows)
                for part in range(partitions):
                    topics.send(spec[name], as_json(rows[part::partitions]), part)

        driver: Driver | None = None
        partitions, number = PARTITIONS, 0
        while sum(killed.values()) < KILLS:
            assert number < 4 * KILLS, f"the driver does not come on: {killed}"
            if sum(killed.values()) in GROWN[partitions - PARTITIONS :][:1]:
                partitions += 1
                for name in sent:
                    topics.grow(spec[name], partitions)
            send(number, partitions)
            number += 1
            if driver is None or not driver.lives:
                driver = Driver({**spec, "endless": True})
            if not driver.await_step(
                draw.choice(("before-tasks", "before-commit", "after-commit"))
            ):
                driver.kill()  # it has stopped with an error, or hangs: not a kill that counts
                continue
            victim = draw.choice(("driver", "executor", "broker"))
            if victim == "driver":
                driver.kill()
                killed[victim] += 1
            elif victim == "executor":
                killed[victim] += kill_executor(cluster, draw)
            else:
                killed[victim] += kill_broker(broker, draw)
        if driver is not None:
            driver.kill()
        print(killed, f"{number} lots of rows, {partitions} partitions")
        last = Driver(spec)
        assert last.process.wait(END_SECONDS) == 0
        monkeypatch.setattr(
            test_kills, "NAMED", {name: pl.concat(frames) for name, frames in sent.items()}
        )
        test_kills.check(topics, spec)
    assert sum(killed.values()) >= KILLS
    assert all(killed.values())
