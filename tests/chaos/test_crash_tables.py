"""Killed with SIGKILL while results go to tables: each row is in them once, whoever reads them."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from adbc_driver_postgresql import dbapi
from crash import Crashing

from helpers import in_soak

pytestmark = pytest.mark.chaos

KINDS = ["delta", "iceberg", "postgres"]


@pytest.fixture
def options(kind: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """What the child is told of its tables."""
    if kind != "postgres":
        return {"tables": kind}
    server = request.getfixturevalue("postgres_server")
    schema = f"crash_{uuid.uuid4().hex}"
    with dbapi.connect(server.uri, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE SCHEMA {schema}")
    return {"tables": kind, "uri": server.uri, "schema": schema}


@pytest.mark.parametrize("kind", ["delta", "postgres", *in_soak(["iceberg"])])
def test_killed_around_the_commit_of_a_table(
    tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    """Between the manifest and the table, amid several tables, and between a table and the mark."""
    crashing = Crashing(tmp_path, seed=61, files=5, options=options)
    crashing.kill_exactly("after-commit", 1)
    crashing.kill_at_table("after", 10)
    crashing.kill_exactly("after-commit", crashing.end)
    crashing.finish()
    crashing.check()


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_killed_around_every_commit_of_a_table(
    tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    crashing = Crashing(tmp_path, seed=62, files=12, options=options)
    for number in range(1, 13):
        crashing.kill_at_table("after" if number % 2 else "before", number)
    crashing.finish()
    crashing.check()


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(300, 303))
def test_killed_at_random_moments_with_tables(
    tmp_path: Path, kind: str, seed: int, options: dict[str, str]
) -> None:
    from test_crash import kill_at_random

    kill_at_random(Crashing(tmp_path, seed, files=12, options=options), kills=12)


@pytest.mark.parametrize("kind", in_soak(KINDS))
def test_killed_at_changes_of_the_disk_with_tables(
    tmp_path: Path, kind: str, options: dict[str, str]
) -> None:
    from test_crash import kill_at_changes

    crashing = Crashing(tmp_path, 71, files=8, options=options)
    kill_at_changes(crashing, kills=6, most=80)
