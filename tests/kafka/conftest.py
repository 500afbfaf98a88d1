"""What the tests with a real broker share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from topics import Topics

from helpers import Stage
from kafka_broker import Broker


@pytest.fixture
def topics(kafka_broker: Broker) -> Topics:
    return Topics(kafka_broker.servers)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
