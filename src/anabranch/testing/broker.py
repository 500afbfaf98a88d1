"""A real Kafka broker on loopback: one process in KRaft mode, which may be killed and started again.

Its jars are those of `scripts/ensure-kafka.sh`. It listens below the ports that systems give to
connections: while it is away, none may get its port by chance.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import RunError

LONGEST = 180
"""Seconds the broker may take to start, also on a machine that has much else to do."""
PORTS = range(15_000, 30_000)
PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
log.dirs={logs}
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=2
background.threads=2
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.enable=false
log.initial.task.delay.ms=1000
log.retention.ms=-1
controller.quorum.election.timeout.ms=500
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


@dataclass
class Broker:
    """The broker in a folder: started, killed and started again with what it has kept."""

    installation: Path
    """Where its jars and a formatted log folder are."""
    java: str
    folder: Path
    port: int
    controller: int
    more: str = ""
    """Further properties, which go before those above; `{port}` and `{controller}` stand for its ports."""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns once it answers. It ends with the thread that has started it, however that ends."""
        logs = self.folder / "logs"
        if not logs.exists():
            shutil.copytree(self.installation / "formatted", logs)
        given = (PROPERTIES + self.more).format(
            port=self.port, controller=self.controller, logs=logs
        )
        (self.folder / "server.properties").write_text(given)
        follow = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with open(self.folder / "broker.log", "a") as output:
            self._process = subprocess.Popen(
                [
                    *follow, self.java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{self.installation}/lib/*",
                    "kafka.Kafka", str(self.folder / "server.properties"),
                ],
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._await_answer(self._process)

    def _await_answer(self, process: subprocess.Popen[bytes]) -> None:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        until = time.monotonic() + LONGEST
        admin = None
        while process.poll() is None and time.monotonic() < until:
            if admin is None:
                with (
                    contextlib.suppress(OSError),
                    socket.create_connection(("127.0.0.1", self.port), 1),
                ):
                    admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
            else:
                # That it listens is not yet that it answers, nor that its partitions have a leader
                with contextlib.suppress(KafkaException):
                    told = admin.list_topics(timeout=5)
                    parts = [p for topic in told.topics.values() for p in topic.partitions.values()]
                    if told.brokers and all(part.leader >= 0 for part in parts):
                        return
            time.sleep(0.05)
        log = (self.folder / "broker.log").read_text()[-3000:]
        raise RunError(f"The broker does not answer on port {self.port}:\n{log}")

    def kill(self) -> None:
        """As if the power were gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def serving(folder: Path, installation: Path, java: str, more: str = "") -> Iterator[Broker]:
    """A broker with its data in a folder, and further properties."""
    broker = Broker(installation, java, folder, free_port(), free_port(), more)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def installed() -> Path:
    """Where `scripts/ensure-kafka.sh` has put the broker; raises RunError if it has not run."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache"
    cache = Path(os.environ.get("ANABRANCH_CACHE") or Path(caches) / "anabranch")
    found = sorted(cache.glob("kafka-*/formatted/meta.properties"))
    if not found:
        raise RunError(
            f"There is no Kafka broker in '{cache}': run scripts/ensure-kafka.sh of the repository first."
        )
    return found[-1].parents[1]


def free_port() -> int:
    """A port that nobody listens on now."""
    for port in random.SystemRandom().sample(PORTS, 200):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise RunError(f"No port from {PORTS.start} to {PORTS.stop} is free.")
