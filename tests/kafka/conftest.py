"""What the tests with a real broker share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from schema_server import Server, answering
from topics import Topics

from anabranch.testing.broker import Broker
from helpers import Stage


@pytest.fixture
def topics(kafka_broker: Broker) -> Topics:
    return Topics(kafka_broker.servers)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def registry() -> Iterator[Server]:
    with answering() as server:
        yield server
