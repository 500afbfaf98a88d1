"""A real Kafka broker on loopback for tests: one process in KRaft mode, which may be killed and come back."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from s3_server import ensured

LONGEST = 180
"""Seconds the broker may take to start, also on a machine that has much else to do."""
PORTS = range(15_000, 30_000)
"""Below those that systems give to connections: while the broker is away, none may get its port by chance."""
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

    folder: Path
    port: int
    controller: int
    more: Mapping[str, str] = field(default_factory=dict)
    """Further properties, also in the place of those above."""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    def start(self) -> None:
        """Returns once it answers."""
        home = Path(ensured("ensure-kafka.sh"))
        java = f"{os.environ.get('JAVA_HOME') or ensured('ensure-java.sh')}/bin/java"
        logs = self.folder / "logs"
        if not logs.exists():
            shutil.copytree(home / "formatted", logs)
        given = PROPERTIES.format(port=self.port, controller=self.controller, logs=logs)
        further = "".join(f"{key}={value}\n" for key, value in self.more.items())
        (self.folder / "server.properties").write_text(given + further)
        # It dies with the process of the tests, however that ends
        follow = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with open(self.log, "a") as output:
            self._process = subprocess.Popen(
                [
                    *follow, java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx384m",
                    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{home}/lib/*", "kafka.Kafka",
                    str(self.folder / "server.properties"),
                ],
                stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._await_answer()

    def _await_answer(self) -> None:
        assert self._process is not None
        until = time.monotonic() + LONGEST
        while self._process.poll() is None and time.monotonic() < until:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), 1),
            ):
                break
            time.sleep(0.05)
        # That it listens is not yet that it answers
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        while self._process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(KafkaException):
                told = admin.list_topics(timeout=5)
                parts = [
                    part for topic in told.topics.values() for part in topic.partitions.values()
                ]
                if told.brokers and all(part.leader >= 0 for part in parts):
                    return
                time.sleep(0.05)
        raise AssertionError(
            f"the broker does not answer on port {self.port}:\n{self.log.read_text()[-3000:]}"
        )

    def kill(self) -> None:
        """As if the power were gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextlib.contextmanager
def serving(folder: Path, more: Mapping[str, str] | None = None) -> Iterator[Broker]:
    """A broker with its data in a folder; raises if it cannot be installed or started."""
    broker = Broker(folder, free_port(), free_port(), more or {})
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, 200):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError(f"no port from {PORTS.start} to {PORTS.stop} is free")
