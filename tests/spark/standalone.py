"""A real standalone cluster on loopback: a master and workers of the installed Spark, which may be killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pyspark

from anabranch.testing.broker import free_port

SPARK = Path(pyspark.__file__).parent
LONGEST = 240
"""Seconds a process may take to start, also on a machine that has much else to do."""
MEMORY = "768m"
OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@dataclass
class Standalone:
    """A master and its workers, each with a folder for what it writes."""

    folder: Path
    port: int
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def master(self) -> str:
        return f"spark://127.0.0.1:{self.port}"

    def start_master(self) -> None:
        given = ["--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0"]
        self._start("master", "org.apache.spark.deploy.master.Master", *given)
        self._await("master", "New state: ALIVE")

    def start_worker(self, name: str) -> None:
        given = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        given += ["--work-dir", str(self.folder / f"{name}-work"), self.master]
        self._start(name, "org.apache.spark.deploy.worker.Worker", *given)

    def await_worker(self, name: str) -> None:
        self._await(name, "Successfully registered with master")

    def worker(self, name: str) -> psutil.Process:
        return psutil.Process(self._processes[name].pid)

    def executors(self, name: str) -> list[psutil.Process]:
        """The executors that a worker has started and that live."""
        found = []
        for each in self.worker(name).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any("CoarseGrainedExecutorBackend" in word for word in each.cmdline()):
                    found.append(each)
        return found

    def _start(self, name: str, kind: str, *given: str) -> None:
        environment = {
            word: value
            for word, value in os.environ.items()
            if not word.startswith(("PYSPARK", "PYTHONPATH", "VIRTUAL_ENV"))
        }
        environment |= {"SPARK_HOME": str(SPARK), "SPARK_DAEMON_JAVA_OPTS": OPTIONS}
        environment |= {"SPARK_DAEMON_MEMORY": "256m", "PATH": "/usr/local/bin:/usr/bin:/bin"}
        follow = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with open(self.folder / f"{name}.log", "w") as log:
            self._processes[name] = subprocess.Popen(
                [*follow, str(SPARK / "bin" / "spark-class"), kind, *given],
                stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=self.folder,
            )  # fmt: skip

    def _await(self, name: str, words: str) -> None:
        until = time.monotonic() + LONGEST
        while words not in (log := (self.folder / f"{name}.log").read_text()):
            assert self._processes[name].poll() is None, log[-2000:]
            assert time.monotonic() < until, log[-2000:]
            time.sleep(0.05)

    def kill(self, name: str) -> None:
        """As if the machine had lost its power: the process and all that it has started."""
        process = self._processes.pop(name)
        with contextlib.suppress(psutil.Error):
            below = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            for each in below:
                with contextlib.suppress(psutil.Error):
                    each.kill()
        process.wait()

    def stop(self) -> None:
        for name in [*self._processes]:
            self.kill(name)


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Standalone]:
    """A cluster of so many workers of one core each."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Standalone(folder, free_port())
    try:
        cluster.start_master()
        names = [f"worker-{number}" for number in range(workers)]
        for name in names:
            cluster.start_worker(name)
        for name in names:
            cluster.await_worker(name)
        yield cluster
    finally:
        cluster.stop()
