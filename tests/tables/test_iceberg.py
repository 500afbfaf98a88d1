"""Iceberg tables: partitions, what others do to a table meanwhile, and how many files it keeps."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyiceberg.transforms import BucketTransform
from shelf import KINDS, iceberg, iceberg_table, rows_of, run
from test_tables import frames

from anabranch import Session
from anabranch.errors import SettingsError
from anabranch.sinks import IcebergSink
from anabranch.sinks.base import WriteContext
from anabranch.sinks.tables.iceberg_care import bring_together
from anabranch.sinks.tables.table import Conflict, Taking
from anabranch.state.place import place
from anabranch.testing.sources import EpochSource
from helpers import in_soak, oracle

ICE = KINDS["iceberg"]
PLAIN: dict[str, tuple[str, str | None]] = {"q": ("SELECT time, k, v FROM t", None)}


def test_partitions_of_odd_values(tmp_path: Path) -> None:
    odd = ["a/b c", "50%", "ä=é", "__x", None, "a/b c", "..", "q?#&+'\""]
    given = pl.DataFrame({"time": range(8), "k": odd, "v": range(8)})
    run([given], PLAIN, {"q": ICE.sink(tmp_path, "q", partition_by=["k"])})
    assert rows_of(ICE.read(tmp_path, "q")) == rows_of(given)
    found = iceberg_table(tmp_path, "q").scan("k = 'a/b c'")
    assert sorted(found.to_arrow()["time"].to_pylist()) == [0, 5]
    assert len(list(found.plan_files())) == 2, "tasks write a file for each value"


def test_a_table_partitioned_by_buckets_is_written_by_the_driver(tmp_path: Path) -> None:
    given = frames(3)
    run(given[:1], PLAIN, {"q": ICE.sink(tmp_path, "q")})
    with iceberg_table(tmp_path, "q").update_spec() as spec:
        spec.add_field("k", BucketTransform(3), "k_bucket")
    run(given[1:], PLAIN, {"q": ICE.sink(tmp_path, "q")})
    assert rows_of(ICE.read(tmp_path, "q")) == rows_of(pl.concat(given))


def test_others_optimize_and_expire_meanwhile(tmp_path: Path) -> None:
    given = frames(5)
    texts = {
        "plain": ("SELECT time, k, v FROM t", None),
        "live": ("SELECT k, COUNT(*) AS n, MIN(v) AS m FROM t GROUP BY k", "update"),
    }
    session = Session.in_process(2, {"allow_unbounded_state": True, "fsync": False})
    session.stream("t", EpochSource(given), ordered="time")
    for name, (text, emit) in texts.items():
        session.query(name, text, emit)

    def disturb(step: str, epoch: int) -> None:
        if epoch and step in ("before-commit", "after-commit"):
            for name in texts:
                other = ICE.sink(tmp_path, name, retain="0 seconds").open(context(tmp_path, name))
                other.table.tend()

    session.start(
        sinks={name: ICE.sink(tmp_path, name, optimize=2) for name in texts}, on_step=disturb
    ).await_termination()
    for name, (text, _) in texts.items():
        assert rows_of(ICE.read(tmp_path, name)) == oracle(text, t=pl.concat(given)), name
    assert len(iceberg_table(tmp_path, "plain").snapshots()) < 5


def context(root: Path, name: str) -> WriteContext:
    columns = {"time": pl.Int64(), "k": pl.String(), "v": pl.Int64()}
    if name == "live":
        columns = {"k": pl.String(), "n": pl.Int64(), "m": pl.Int64()}
    return WriteContext(
        run="other", query=name, schema=pl.Schema(columns), replaces=False, keys=None, marked=False,
        formerly=name, checkpoint=place(str(root / "other")), fsync=False, private=True,
    )  # fmt: skip


def test_of_two_drivers_one_hands_an_epoch_over(tmp_path: Path) -> None:
    """Both have asked before either has committed."""
    sink, taking = ICE.sink(tmp_path, "q"), Taking("run", "q", 4)
    first, second = (sink.open(context(tmp_path, "q")).table for _ in range(2))
    assert first.reached(taking.app) is second.reached(taking.app) is None
    rows = frames(1)[0]
    first.append(rows, taking)
    with pytest.raises(Conflict):
        second.append(rows, taking)
    assert second.reached(taking.app) == 4
    assert ICE.read(tmp_path, "q").height == rows.height
    summary = iceberg_table(tmp_path, "q").current_snapshot().summary
    assert summary["anabranch.epoch"] == "4"


@pytest.mark.parametrize("epochs", [60, *in_soak([1000])])
def test_many_epochs_leave_few_files(tmp_path: Path, epochs: int) -> None:
    given = [pl.DataFrame({"time": [n], "k": ["a"], "v": [n]}) for n in range(epochs)]
    sink = ICE.sink(tmp_path, "q", optimize=20, retain="0 seconds")
    run(given, PLAIN, {"q": sink}, at_end="keep", sites=1)
    table = iceberg_table(tmp_path, "q")
    assert sorted(ICE.read(tmp_path, "q")["v"]) == list(range(epochs))
    assert len(list(table.scan().plan_files())) <= 21
    assert len(table.snapshots()) <= 22
    assert len(list((tmp_path / "warehouse").rglob("*.metadata.json"))) <= 22


@pytest.mark.parametrize("name", ["old", "new"])
def test_what_a_table_has_is_not_taken_in_again(tmp_path: Path, name: str) -> None:
    """As for Delta: after a crash, a compaction by others, snapshots that expired, another name."""
    given = frames(3)

    def start(name: str, epochs: int, **options: object) -> None:
        session = Session.in_process(2, {"fsync": False})
        session.stream("t", EpochSource(given[:epochs]), ordered="time")
        session.query(name, "SELECT time, k, v FROM t")
        sinks = {name: ICE.sink(tmp_path, "q")}
        session.start(sinks=sinks, checkpoint=tmp_path / "ck", **options).await_termination()

    start("old", 2)
    for mark in (tmp_path / "ck" / "results").glob("published-*"):
        mark.unlink()
    ICE.sink(tmp_path, "q", retain="0 seconds").open(context(tmp_path, "q")).table.tend()
    start(name, 3, changed="keep-same")
    assert ICE.read(tmp_path, "q").height == sum(map(len, given))


def test_a_catalog_that_is_not_there_is_told(tmp_path: Path) -> None:
    for options, told in (
        ({"catalog": "nowhere"}, "cannot be opened.*catalog="),
        ({"uri": f"sqlite:///{tmp_path}/no/such/folder.db", "warehouse": "w"}, "cannot be opened"),
    ):
        with pytest.raises(SettingsError, match=told):
            run(frames(1), PLAIN, {"q": IcebergSink("lake.q", **options)})
    with pytest.raises(SettingsError, match=r"expected namespace\.name"):
        IcebergSink("q", **iceberg(tmp_path))


def test_small_files_are_brought_together_up_to_the_target(tmp_path: Path) -> None:
    """No more than that is in memory at once either."""
    run(frames(12), PLAIN, {"q": ICE.sink(tmp_path, "q", optimize=0)}, sites=1)
    table = iceberg_table(tmp_path, "q")
    before = [task.file.file_size_in_bytes for task in table.scan().plan_files()]
    target = 4 * max(before)
    bring_together(table, target)
    after = [task.file.record_count for task in table.scan().plan_files()]
    assert 3 <= len(after) < len(before)
    assert max(after) <= 4 * 60
    assert rows_of(ICE.read(tmp_path, "q")) == rows_of(pl.concat(frames(12)))
