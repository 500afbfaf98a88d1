"""A real Kafka broker on loopback for tests, installed where it is missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anabranch.testing import broker
from anabranch.testing.broker import Broker
from s3_server import ensured


@contextmanager
def serving(folder: Path, more: str = "") -> Iterator[Broker]:
    """A broker with its data in a folder; raises if it cannot be installed or started."""
    home = Path(ensured("ensure-kafka.sh"))
    java = f"{os.environ.get('JAVA_HOME') or ensured('ensure-java.sh')}/bin/java"
    with broker.serving(folder, home, java, more) as serving:
        yield serving
