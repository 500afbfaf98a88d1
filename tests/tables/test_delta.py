"""Delta tables: partitions, what others do to a table meanwhile, and how many files are left."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from shelf import KINDS, rows_of, run
from test_tables import frames

from anabranch import Session
from anabranch.errors import RunError, SettingsError
from anabranch.sinks import DeltaSink
from anabranch.testing.sources import EpochSource
from helpers import in_soak, oracle

DELTA = KINDS["delta"]
PLAIN: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, k, v FROM t", None)}


def test_partitions_of_odd_values(tmp_path: Path) -> None:
    """Tasks write a file for each; the log has the values, and the names of files lead to them."""
    odd = ["a/b c", "50%", "ä=é", "__x", None, "a/b c", "..", "q?#&+'\""]
    frame = pl.DataFrame({"time": range(8), "k": odd, "v": range(8)})
    given = [frame, frame.with_columns(pl.col("time") + 8)]
    run(given, PLAIN, {"q": DeltaSink(tmp_path / "q", partition_by=["k"])})
    wanted = oracle("SELECT time, k, v FROM t", t=pl.concat(given))
    found = DELTA.read(tmp_path, "q")
    assert rows_of(found, "time", "k", "v") == wanted
    dataset = DeltaTable(tmp_path / "q").to_pyarrow_table(filters=[("k", "=", "a/b c")])
    assert sorted(dataset["time"].to_pylist()) == [0, 5, 8, 13]


def test_partitions_by_several_types(tmp_path: Path) -> None:
    text = "SELECT time, time // 10 AS day, v % 2 = 0 AS even, v FROM t"
    given = frames(3)
    run(given, {"q": (text, None)}, {"q": DeltaSink(tmp_path / "q", partition_by=["day", "even"])})
    wanted = oracle(text, t=pl.concat(given))
    assert rows_of(DELTA.read(tmp_path, "q"), "time", "day", "even", "v") == wanted
    with pytest.raises(SettingsError, match="is partitioned by day, even, not by day"):
        run(given, {"q": (text, None)}, {"q": DeltaSink(tmp_path / "q", partition_by=["day"])})
    # Who says nothing takes the table as it is
    run(given, {"q": (text, None)}, {"q": DeltaSink(tmp_path / "q")})
    assert DELTA.read(tmp_path, "q").height == 2 * len(wanted)


def test_partitions_that_cannot_be(tmp_path: Path) -> None:
    for column, told in (("x", "not a column"), ("f", "expected whole numbers")):
        with pytest.raises(SettingsError, match=told):
            run(frames(1), {"q": ("SELECT time, v / 2.0 AS f FROM t", None)},
                {"q": DeltaSink(tmp_path / "q", partition_by=[column])})  # fmt: skip
    empty = pl.DataFrame({"time": [1], "k": [""], "v": [1]})
    with pytest.raises(RunError, match="no empty text, which tables read as NULL"):
        run([empty], PLAIN, {"q": DeltaSink(tmp_path / "q", partition_by=["k"])})


def test_readers_can_skip_files(tmp_path: Path) -> None:
    run(frames(3), PLAIN, {"q": DeltaSink(tmp_path / "q")})
    added = pl.DataFrame(DeltaTable(tmp_path / "q").get_add_actions(flatten=True))
    assert added["num_records"].sum() == 180
    assert sorted(zip(added["min.time"], added["max.time"], strict=True))[0][1] < 10
    assert added["null_count.k"].sum() == DELTA.read(tmp_path, "q")["k"].null_count()


def test_others_optimize_and_vacuum_meanwhile(tmp_path: Path) -> None:
    """After every epoch, between the manifest and the table, and before tasks write: no row is harmed."""
    given, path = frames(8), tmp_path / "tables"
    texts = {
        "plain": ("SELECT time, k, v FROM t", None),
        "live": ("SELECT k, COUNT(*) AS n, MIN(v) AS m FROM t GROUP BY k", "update"),
    }
    session = Session.in_process(2, {"allow_unbounded_state": True, "fsync": False})
    session.stream("t", EpochSource(given), ordered="time")
    for name, (text, emit) in texts.items():
        session.query(name, text, emit)
    disturbed = []

    def disturb(step: str, epoch: int) -> None:
        if epoch and step in ("before-tasks", "before-commit", "after-commit", "after-publish"):
            for name in texts:
                other = DeltaTable(path / name)
                other.optimize.compact()
                gone = other.vacuum(0, dry_run=False, enforce_retention_duration=False)
                disturbed.append(len(gone))

    session.start(
        sinks={name: DeltaSink(path / name, optimize=3) for name in texts}, on_step=disturb
    ).await_termination()
    assert sum(disturbed) > 10
    for name, (text, _) in texts.items():
        assert rows_of(DELTA.read(path, name)) == oracle(text, t=pl.concat(given)), name


@pytest.mark.parametrize("epochs", [130, *in_soak([1000])])
def test_many_epochs_leave_few_files(tmp_path: Path, epochs: int) -> None:
    given = [pl.DataFrame({"time": [n], "k": ["a"], "v": [n]}) for n in range(epochs)]
    sink = DeltaSink(tmp_path / "q", optimize=20, retain="0 seconds")
    run(given, PLAIN, {"q": sink}, at_end="keep", sites=1)
    table = DeltaTable(tmp_path / "q")
    assert sorted(DELTA.read(tmp_path, "q")["v"]) == list(range(epochs))
    assert len(table.file_uris()) <= 21
    # Its own, and those that only older versions of it have: since the last time it was tended
    assert len(list((tmp_path / "q").glob("*.parquet"))) <= 21


@pytest.mark.parametrize(
    "address", ["s3://me:hunter2@bucket/q", "abfss://c@a.dfs.core.windows.net/q?sig=hunter2"]
)
def test_credentials_in_an_address_are_refused_and_not_shown(address: str) -> None:
    with pytest.raises(SettingsError, match="without credentials") as caught:
        DeltaSink(address)
    assert "hunter2" not in str(caught.value)
    plain = "abfss://container@account.dfs.core.windows.net/q"
    assert DeltaSink(plain).table == plain


def test_a_table_that_is_no_longer_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    (tmp_path / "q" / "_delta_log").mkdir()
    (tmp_path / "q" / "_delta_log" / f"{0:020d}.json").write_text(json.dumps({"nonsense": 1}))
    with pytest.raises(SettingsError, match="cannot be opened"):
        run(frames(1), PLAIN, {"q": DeltaSink(tmp_path / "q")})


@pytest.mark.parametrize("name", ["old", "new"])
def test_what_a_table_has_is_not_taken_in_again(tmp_path: Path, name: str) -> None:
    """The crash came after the table had the epoch and before the mark; then others have compacted it, and
    the query got another name."""
    given = frames(3)

    def start(name: str, epochs: int, **options: object) -> None:
        session = Session.in_process(2, {"fsync": False})
        session.stream("t", EpochSource(given[:epochs]), ordered="time")
        session.query(name, "SELECT time, v FROM t")
        session.start(
            sinks={name: DELTA.sink(tmp_path, "q")}, checkpoint=tmp_path / "ck", **options
        ).await_termination()

    start("old", 2)
    for mark in (tmp_path / "ck" / "results").glob("published-*"):
        mark.unlink()
    DeltaTable(tmp_path / "q").optimize.compact()
    start(name, 3, changed="keep-same")
    assert DELTA.read(tmp_path, "q").height == sum(map(len, given))


def test_files_are_kept_at_least_as_long_as_said(tmp_path: Path) -> None:
    """The library counts whole hours."""
    run(
        frames(2), PLAIN, {"q": DELTA.sink(tmp_path, "q", optimize=1, retain="30 minutes")}, sites=1
    )
    kept = {str(path) for path in (tmp_path / "q").glob("*.parquet")}
    assert len(kept) > len(DeltaTable(tmp_path / "q").file_uris())
