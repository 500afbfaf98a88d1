"""PostgreSQL tables: a server that goes away, two drivers, secrets, tables that others have made."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import shelf
from adbc_driver_postgresql import dbapi
from shelf import KINDS, postgres_name, rows_of, run
from test_iceberg import context
from test_tables import frames

from anabranch import Session
from anabranch.errors import AnabranchError, RunError, SettingsError
from anabranch.sinks import PostgresSink
from anabranch.sinks.tables import writer
from anabranch.sinks.tables.table import Taking
from anabranch.testing.sources import EpochSource
from helpers import oracle
from postgres_server import PASSWORD, Server

POSTGRES = KINDS["postgres"]
PLAIN: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, k, v FROM t", None)}


def test_a_server_that_goes_away_meanwhile(tmp_path: Path, postgres_server: Server) -> None:
    """Started again it is found again; each row is there once."""
    given = frames(5)
    session = Session.in_process(2, {"fsync": False, "allow_unbounded_state": True})
    session.stream("t", EpochSource(given), ordered="time")
    session.query("q", "SELECT time, k, v FROM t")
    session.query("live", "SELECT k, COUNT(*) AS n FROM t GROUP BY k", emit="update")

    def disturb(step: str, epoch: int) -> None:
        if step == "after-commit" and epoch in (1, 3):
            postgres_server.stop()
            postgres_server.start()

    session.start(
        sinks={name: POSTGRES.sink(tmp_path, name) for name in ("q", "live")}, on_step=disturb
    ).await_termination()
    whole = pl.concat(given)
    assert rows_of(POSTGRES.read(tmp_path, "q")) == rows_of(whole)
    wanted = oracle("SELECT k, COUNT(*) AS n FROM t GROUP BY k", t=whole)
    assert rows_of(POSTGRES.read(tmp_path, "live")) == wanted


def test_a_server_that_stays_away_gets_the_epoch_later(
    tmp_path: Path, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FIRST_WAIT", 0.0)
    given = frames(3)

    def start(away: bool) -> None:
        session = Session.in_process(2, {"fsync": False})
        session.stream("t", EpochSource(given), ordered="time")
        session.query("q", "SELECT time, k, v FROM t")

        def disturb(step: str, epoch: int) -> None:
            if away and (step, epoch) == ("after-commit", 1):
                postgres_server.stop()

        session.start(
            sinks={"q": POSTGRES.sink(tmp_path, "q")}, checkpoint=tmp_path / "ck", on_step=disturb
        ).await_termination()

    try:
        with pytest.raises(RunError, match="handed over again at the next start") as told:
            start(away=True)
    finally:
        postgres_server.start()
    assert PASSWORD not in str(told.value)
    start(away=False)
    assert rows_of(POSTGRES.read(tmp_path, "q")) == rows_of(pl.concat(given))


def test_of_two_drivers_one_hands_an_epoch_over(tmp_path: Path) -> None:
    sink, taking, rows = POSTGRES.sink(tmp_path, "q"), Taking("run", "q", 4), frames(1)[0]
    first, second = (sink.open(context(tmp_path, "q")).table for _ in range(2))
    assert first.reached(taking.app) is second.reached(taking.app) is None
    first.append(rows, taking)
    second.append(rows, taking)
    assert POSTGRES.read(tmp_path, "q").height == rows.height
    for table in (first, second):
        assert table.reached(taking.app) == 4
        table.close()


def test_secrets_are_not_told(tmp_path: Path, postgres_server: Server) -> None:
    right = postgres_server.uri
    wrong = right.replace(PASSWORD, "another-secret")
    for uri in (wrong, right.replace(str(postgres_server.port), "1")):
        sink = PostgresSink("q", uri)
        assert "secret" not in f"{sink!r} {sink.describe()} {sink.table}"
        with pytest.raises(AnabranchError, match="cannot be opened") as told:
            run(frames(1), PLAIN, {"q": sink})
        assert "secret" not in str(told.value)
    with pytest.raises(SettingsError, match="begins with 'mysql'"):
        PostgresSink("q", "mysql://root:secret@host/db")


def test_nothing_of_the_address_is_in_the_checkpoint(tmp_path: Path) -> None:
    run(frames(1), PLAIN, {"q": POSTGRES.sink(tmp_path, "q")}, tmp_path / "ck", "keep")
    for path in (tmp_path / "ck").rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes(), path


def test_a_table_of_others_keeps_its_columns(tmp_path: Path) -> None:
    name = postgres_name(tmp_path, "q")
    _execute(
        f"CREATE TABLE {name} (id bigserial PRIMARY KEY, k varchar, time bigint, v bigint, "
        "at timestamptz DEFAULT now())"
    )
    given = frames(2)
    run(given, PLAIN, {"q": POSTGRES.sink(tmp_path, "q")})
    found = POSTGRES.read(tmp_path, "q")
    assert rows_of(found, "time", "k", "v") == rows_of(pl.concat(given))
    assert found["id"].n_unique() == found.height
    assert found["at"].null_count() == 0


def _execute(text: str) -> None:
    with (
        dbapi.connect(shelf.POSTGRES, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(text)


@pytest.mark.parametrize("emit", [None, "update"])
def test_texts_that_a_server_cannot_take_are_refused_before_the_commit(
    tmp_path: Path, emit: str | None
) -> None:
    """So the run goes on once the query leaves them out."""
    given = pl.DataFrame({"time": [1, 2], "k": ["a", "b\0c"], "v": [1, 2]})

    def start(text: str) -> None:
        session = Session.in_process(2, {"fsync": False, "allow_unbounded_state": True})
        session.stream("t", EpochSource([given]), ordered="time")
        session.query("q", text, emit)
        session.start(
            sinks={"q": POSTGRES.sink(tmp_path, "q")},
            checkpoint=tmp_path / "ck",
            changed="keep-same",
        ).await_termination()

    text = "SELECT time, k, v FROM t"
    if emit:
        text = "SELECT k, MAX(time) AS time, MAX(v) AS v FROM t GROUP BY k"
    with pytest.raises(RunError, match=r"column 'k'.*\\x00.*The epoch is not counted"):
        start(text)
    start(text.replace("FROM t", "FROM t WHERE k = 'a'"))
    assert rows_of(POSTGRES.read(tmp_path, "q"), "time", "k", "v") == [(1, "a", 1)]
