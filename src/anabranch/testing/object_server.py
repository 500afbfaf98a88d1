"""A real S3 server on loopback: S3Proxy, which keeps its objects as files of a folder.

Its jars are those of `scripts/ensure-s3.sh`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import RunError

BUCKET = "checkpoints"
KEYS = {
    "AWS_ACCESS_KEY_ID": "key-of-the-tests",
    "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
    "AWS_REGION": "us-east-1",
}
LONGEST = 60
"""Seconds the server may take to start, also on a machine that has much else to do."""
QUIET = """<configuration>
  <appender name="ALL" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %level %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="ALL"/></root>
</configuration>
"""


@dataclass(frozen=True)
class ServedBucket:
    """A bucket of the server; what is in the folder are its objects."""

    port: int
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """What a process needs to be let in."""
        return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}

    def uri(self, path: Path) -> str:
        return f"s3://{BUCKET}/{path.relative_to(self.folder)}"


@contextlib.contextmanager
def serving(folder: Path, jars: Path, java: str) -> Iterator[ServedBucket]:
    """Starts the server with its data in a folder; RunError if it does not answer."""
    bucket = ServedBucket(free_port(), folder / "data" / BUCKET)
    bucket.folder.mkdir(parents=True)
    (folder / "logback.xml").write_text(QUIET)
    (folder / "server.properties").write_text(
        f"s3proxy.endpoint=http://127.0.0.1:{bucket.port}\n"
        "s3proxy.authorization=aws-v2-or-v4\n"
        f"s3proxy.identity={KEYS['AWS_ACCESS_KEY_ID']}\n"
        f"s3proxy.credential={KEYS['AWS_SECRET_ACCESS_KEY']}\n"
        "jclouds.provider=filesystem\n"
        f"jclouds.filesystem.basedir={bucket.folder.parent}\n"
    )
    log = folder / "server.log"
    with open(log, "w") as output:
        process = subprocess.Popen(
            [
                java, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
                f"-Dlogback.configurationFile={folder}/logback.xml", "-cp", f"{jars}/*",
                "org.gaul.s3proxy.Main", "--properties", f"{folder}/server.properties",
            ],
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        _await_answer(process, bucket.port, log)
        yield bucket
    finally:
        process.kill()
        process.wait()


def installed() -> Path:
    """Where `scripts/ensure-s3.sh` has put the server; raises RunError if it has not run."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path("~").expanduser() / ".cache"
    cache = Path(os.environ.get("ANABRANCH_CACHE") or Path(caches) / "anabranch")
    found = sorted(cache.glob("s3proxy-*/s3proxy-*.jar"))
    if not found:
        raise RunError(
            f"There is no S3 server in '{cache}': run scripts/ensure-s3.sh of the repository first."
        )
    return found[-1].parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_answer(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + LONGEST
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RunError(f"The S3 server does not answer on port {port}:\n{log.read_text()[-3000:]}")
