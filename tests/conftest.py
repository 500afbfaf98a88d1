"""What all tests share: `helpers` and `crash` on the path, a small disk, an S3 server, a Kafka broker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from anabranch.testing.broker import Broker
    from postgres_server import Server
    from s3_server import ServedBucket

# Spark and its workers, also those of child processes, listen on loopback only
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# A JVM that lives for seconds is done before its second compiler has paid for itself
for options in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(options, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
if "PYTEST_XDIST_WORKER" in os.environ:
    # Several processes share the cores, so Polars is not to take all of them in each
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "chaos"))

# The same cases every time; `make test-all` draws others (`--hypothesis-profile=random`)
_DRAWN = {"deadline": None, "print_blob": True, "suppress_health_check": list(HealthCheck)}
settings.register_profile("fixed", derandomize=True, database=None, **_DRAWN)
settings.register_profile("random", derandomize=False, **_DRAWN)
settings.load_profile("fixed")


SHARING = ("spark/", "store/", "kafka/", "unit/test_demonstration.py", "chaos/test_adaptation.py")
"""Where tests share what takes long to make."""


LONGEST = 3600
"""Seconds after which a test of `make test-all` is taken to hang, if it does not say so itself."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives long tests the time they need on a machine that has other things to do, too."""
    for item in items:
        if item.get_closest_marker("soak") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONGEST))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keeps tests that share a Spark session, a server or a long run in one of the processes of tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = [name for name in SHARING if nodeid.startswith(f"tests/{name}")]
            if "postgres" in nodeid:
                shared.append("postgres")
            return shared[0] if shared else nodeid

    return Together(config, log)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes; skips where mounting is not allowed."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting a small tmpfs needs root; the limit on file sizes is tested anyway")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="session")
def s3_bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBucket]:
    """A bucket on a server that the tests of this process share."""
    # Not above: what is imported there would not see the environment that is set there
    from s3_server import serving

    with serving(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


@pytest.fixture
def s3_root(s3_bucket: ServedBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one test that is in the bucket, and copies of objects in a cache of its own."""
    from s3_server import change_machine

    for name, value in s3_bucket.variables.items():
        monkeypatch.setenv(name, value)
    change_machine(monkeypatch, tmp_path / "machine")
    root = s3_bucket.folder / tmp_path.name
    root.mkdir()
    return root


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that the tests of this process share."""
    from kafka_broker import serving

    with serving(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL server that the tests of this process share."""
    from postgres_server import serving

    with serving() as server:
        yield server
