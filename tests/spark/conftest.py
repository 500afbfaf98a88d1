"""One Spark session for all tests that need one: starting it takes seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from anabranch.engine.local import local_spark


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps these tests in one process, where tests run in several."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark in this process, on two cores."""
    session = local_spark("local[2]")
    yield session
    session.stop()
