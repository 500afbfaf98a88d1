"""A real S3 server on loopback for tests, installed where it is missing."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anabranch.state.place import place_at
from anabranch.testing import object_server
from anabranch.testing.object_server import KEYS, ServedBucket, free_port

__all__ = ["KEYS", "SCRIPTS", "ServedBucket", "change_machine", "ensured", "free_port", "serving"]

SCRIPTS = Path(__file__).parents[1] / "scripts"


@contextmanager
def serving(folder: Path) -> Iterator[ServedBucket]:
    """A server with its data in a folder; raises if it cannot be installed or started."""
    jars = Path(ensured("ensure-s3.sh"))
    java = f"{os.environ.get('JAVA_HOME') or ensured('ensure-java.sh')}/bin/java"
    with object_server.serving(folder, jars, java) as bucket:
        yield bucket


def ensured(script: str) -> str:
    """What a script has found or installed."""
    told = subprocess.run([SCRIPTS / script], stdout=subprocess.PIPE, text=True, check=False)
    assert told.returncode == 0, f"scripts/{script} failed; what it said is above"
    return told.stdout.strip()


def change_machine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As if this process were on another machine: no copy of anything, and no lock of the others."""
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    place_at.cache_clear()
