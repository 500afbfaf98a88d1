"""Tables as streams: what they have and what is added, once; what takes rows away is refused."""

from __future__ import annotations

import datetime as dt
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog import load_catalog
from shelf import KINDS, iceberg, iceberg_table, rows_of, run
from test_tables import frames

from anabranch import Session
from anabranch.errors import AnabranchError, SourceError, StateError
from anabranch.sources.base import EpochLimits, ReadContext
from anabranch.sources.tables.make import table_source
from anabranch.sources.tables.source import TableReader
from anabranch.spec.file import read_spec
from anabranch.state.place import place

QUERY = "SELECT time, k, v FROM x"


class Lake:
    """A table of one kind that somebody appends to, and streams of it."""

    def __init__(self, kind: str, root: Path, partition_by: list[str] | None = None) -> None:
        self.kind, self.root, self.partition_by = kind, root, partition_by or []

    def append(self, rows: pl.DataFrame) -> None:
        if self.kind == "delta":
            write_deltalake(self.root / "x", rows.to_arrow(compat_level=pl.CompatLevel.oldest()),
                            mode="append", partition_by=self.partition_by)  # fmt: skip
        else:
            sink = KINDS["iceberg"].sink(self.root, "x", partition_by=self.partition_by, optimize=0)
            run([rows], {"q": ("SELECT time, k, v FROM t", None)}, {"q": sink})

    def compact(self) -> None:
        if self.kind == "delta":
            DeltaTable(self.root / "x").optimize.compact()
        else:
            from anabranch.sinks.tables.iceberg_care import bring_together

            bring_together(iceberg_table(self.root, "x"), 1 << 20)

    def delete(self, text: str) -> None:
        if self.kind == "delta":
            DeltaTable(self.root / "x").delete(text)
        else:
            iceberg_table(self.root, "x").delete(text)

    @property
    def options(self) -> dict[str, Any]:
        if self.kind == "delta":
            return {"delta": self.root / "x"}
        return {"iceberg": "lake.x", **iceberg(self.root)}

    def read(self, files: int = 100, on_change: str = "stop", checkpoint: str = "ck") -> int:
        """Runs with a checkpoint over what is there; gives the number of epochs it took."""
        session = Session.in_process(2, {"fsync": False, "max_files_per_epoch": files})
        session.stream("x", ordered="time", lateness=1000, on_change=on_change, **self.options)
        session.query("q", QUERY)
        run = session.start(sinks={"q": self.root / "out"}, checkpoint=self.root / checkpoint)
        run.await_termination()
        return len(run.recent_progress)

    def found(self) -> list[tuple[Any, ...]]:
        parts = sorted((self.root / "out").glob("epoch=*/*.parquet"))
        return rows_of(pl.concat(pl.read_parquet(part, hive_partitioning=False) for part in parts))


kinds = pytest.mark.parametrize("kind", ["delta", "iceberg"])


@kinds
@pytest.mark.parametrize("partition_by", [[], ["k"]], ids=["plain", "partitioned"])
def test_rows_come_once(tmp_path: Path, kind: str, partition_by: list[str]) -> None:
    """First what is there, in small epochs; compactions bring nothing."""
    lake, given = Lake(kind, tmp_path, partition_by), frames(5)
    for number, rows in enumerate(given):
        lake.append(rows)
        if number in (1, 3):
            assert lake.read(files=1) >= 2
            lake.compact()
    lake.read()
    assert lake.found() == rows_of(pl.concat(given))
    assert lake.read() == 0


@kinds
def test_versions_without_rows_are_left_behind(tmp_path: Path, kind: str) -> None:
    """They are looked at once, so a log that has expired up to them is missed by nobody."""
    lake, given = Lake(kind, tmp_path), frames(3)
    for rows in given[:2]:
        lake.append(rows)
    options = {name: value for name, value in lake.options.items() if name != kind}
    source = table_source("x", kind, lake.options[kind], options)
    reader = source.open(ReadContext(None, False, ("time", "k", "v"), place(str(tmp_path / "ck"))))
    assert isinstance(reader, TableReader)
    limits = EpochLimits(100, 1 << 30, 10_000, 100)
    offer = reader.poll(limits, 0)
    assert offer is not None
    reader.committed(offer.offset)
    lake.compact()
    assert reader.poll(limits, 2) is None
    looked: list[int] = []
    change = reader._log._change
    reader._log._change = lambda one: looked.append(one) or change(one)
    assert reader.poll(limits, 2) is None
    assert looked == []
    lake.append(given[2])
    lake.compact()
    offer = reader.poll(limits, 2)
    assert offer is not None
    assert offer.offset["version"] == reader._log.latest(), "also past what came behind the rows"


def test_only_what_an_epoch_takes_is_read_of_a_log(tmp_path: Path) -> None:
    lake = Lake("delta", tmp_path)
    lake.append(frames(1)[0])
    source = table_source("x", "delta", tmp_path / "x", {})
    reader = source.open(ReadContext(None, False, ("time", "k", "v"), place(str(tmp_path / "ck"))))
    assert isinstance(reader, TableReader)
    limits = EpochLimits(1, 1 << 30, 10_000, 100)
    offer = reader.poll(limits, 0)
    assert offer is not None
    reader.committed(offer.offset)
    for rows in frames(6):
        lake.append(rows)
    looked: list[int] = []
    change = reader._log._change
    reader._log._change = lambda one: looked.append(one) or change(one)
    assert reader.poll(limits, 1) is not None
    assert len(looked) == 2


@kinds
def test_what_takes_rows_away_is_refused_or_passed_over(tmp_path: Path, kind: str) -> None:
    lake, given = Lake(kind, tmp_path), frames(4)
    lake.append(given[0])
    lake.append(given[1])
    lake.read()
    lake.delete("v > 50")
    lake.append(given[2])
    with pytest.raises(SourceError, match=r"version \d+ of .*takes away rows.*on_change='skip'"):
        lake.read()
    lake.read(on_change="skip")
    lake.append(given[3])
    lake.read(on_change="skip")
    assert lake.found() == rows_of(pl.concat(given))


@kinds
def test_a_version_that_is_read_in_part_goes_on(tmp_path: Path, kind: str) -> None:
    """The run is stopped after the first of its files."""
    lake, given = Lake(kind, tmp_path, ["k"]), frames(2)
    for rows in given:
        lake.append(rows)
        session = Session.in_process(2, {"fsync": False, "max_files_per_epoch": 1})
        session.stream("x", ordered="time", lateness=1000, **lake.options)
        session.query("q", QUERY)

        def stop(step: str, epoch: int) -> None:
            if step == "after-publish":
                raise KeyError("stop")

        started = session.start(
            sinks={"q": tmp_path / "out"}, checkpoint=tmp_path / "ck", on_step=stop
        )
        with pytest.raises(AnabranchError, match="stop"):
            started.await_termination()
        lake.read()
    assert lake.found() == rows_of(pl.concat(given))


def test_columns_that_came_later_are_null_before(tmp_path: Path) -> None:
    first, second = frames(2)
    write_deltalake(tmp_path / "x", first.drop("k").to_arrow())
    write_deltalake(tmp_path / "x", second.to_arrow(compat_level=pl.CompatLevel.oldest()),
                    mode="append", schema_mode="merge")  # fmt: skip
    lake = Lake("delta", tmp_path)
    lake.read()
    before = first.with_columns(pl.lit(None, pl.String).alias("k"))
    assert lake.found() == rows_of(pl.concat([before, second]), "time", "k", "v")


def test_partitions_of_several_types(tmp_path: Path) -> None:
    rows = frames(1)[0].with_columns(
        day=pl.date(2026, 11, 1) + pl.duration(days=pl.col("v") % 3), even=pl.col("v") % 2 == 0
    )
    for number in range(2):
        part = rows.filter(pl.col("v") % 4 >= 2 * number).filter(pl.col("v") % 4 < 2 * number + 2)
        write_deltalake(tmp_path / "x", part.to_arrow(compat_level=pl.CompatLevel.oldest()),
                        mode="append", partition_by=["day", "even"])  # fmt: skip
        session = Session.in_process(2, {"fsync": False})
        session.stream("x", ordered="time", lateness=1000, delta=tmp_path / "x")
        session.query("q", "SELECT day, even FROM x")
        session.start(sinks={"q": tmp_path / "out"}, checkpoint=tmp_path / "ck").await_termination()
    assert Lake("delta", tmp_path).found() == rows_of(rows, "day", "even")


def test_mistakes_are_told(tmp_path: Path) -> None:
    session = Session.in_process(1)
    for options, told in (
        ({"delta": tmp_path / "no"}, "there is no Delta table in"),
        ({"delta": "s3://bucket/x"}, "expected a folder of this machine"),
        ({"delta": tmp_path, "on_change": "no"}, "on_change is 'no'; expected one of stop, skip"),
        ({"delta": tmp_path, "colour": 1}, "has no option 'colour'"),
        ({"iceberg": "lake.x", **iceberg(tmp_path)}, "cannot be opened: NoSuchTableError"),
        ({"delta": tmp_path, "path": tmp_path}, "needs one input"),
    ):
        with pytest.raises(SourceError, match=told):
            session.stream("x", ordered="time", **options)


def test_a_table_made_anew_and_a_log_with_gaps_are_refused(tmp_path: Path) -> None:
    lake, given = Lake("delta", tmp_path), frames(4)
    for rows in given[:2]:
        lake.append(rows)
    lake.read()
    for rows in given[2:]:
        lake.append(rows)
    DeltaTable(tmp_path / "x").create_checkpoint()
    (tmp_path / "x" / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(SourceError, match=r"version 2 of its log cannot be read.*would be missing"):
        lake.read()
    shutil.rmtree(tmp_path / "x")
    lake.append(given[0])
    with pytest.raises(StateError, match="from another table"):
        lake.read()


def test_streams_of_tables_in_files(tmp_path: Path) -> None:
    Lake("delta", tmp_path).append(frames(1)[0])
    (tmp_path / "a.sql").write_text(
        f"CREATE STREAM x ORDERED BY time WITH (delta = '{tmp_path}/x', on_change = 'skip');\n"
        f"CREATE QUERY q AS {QUERY};\nCREATE SINK q TO '{tmp_path}/out';\n"
    )
    (tmp_path / "a.yaml").write_text(
        f"streams: {{x: {{delta: {tmp_path}/x, on_change: skip, ordered: time}}}}\n"
        f"queries: {{q: {{sql: '{QUERY}'}}}}\nsinks: {{q: {tmp_path}/out}}\n"
    )
    for name in ("a.sql", "a.yaml"):
        assert read_spec(tmp_path / name).streams["x"]["delta"] == f"{tmp_path}/x"
    text = (tmp_path / "a.sql").read_text().replace("on_change = 'skip'", "rate = 5")
    (tmp_path / "b.sql").write_text(text)
    with pytest.raises(AnabranchError, match="a stream of a delta table has no option 'rate'"):
        read_spec(tmp_path / "b.sql")


def reader_of(root: Path, lake: Lake) -> tuple[TableReader, list[str]]:
    """A stream that goes on as the table grows, and its columns."""
    options = dict(lake.options)
    source = table_source("x", lake.kind, options.pop(lake.kind), options)
    columns = list(source.schema)
    return source.open(ReadContext(None, False, tuple(columns), place(str(root / "ck")))), columns


LIMITS = EpochLimits(100, 1 << 30, 1 << 30, 1 << 30)


@kinds
def test_a_table_that_is_empty_at_first_is_read_once_it_grows(tmp_path: Path, kind: str) -> None:
    """As that of a sink is before its first epoch."""
    lake, rows = Lake(kind, tmp_path), frames(1)[0]
    run([rows.clear()], {"q": ("SELECT time, k, v FROM t", None)},
        {"q": KINDS[kind].sink(tmp_path, "x", optimize=0)})  # fmt: skip
    reader, columns = reader_of(tmp_path, lake)
    assert reader.poll(LIMITS, 0) is None
    lake.append(rows)
    offer = reader.poll(LIMITS, 0)
    assert offer is not None
    found = pl.concat(piece.read(columns, False).rows for piece in offer.pieces)
    assert rows_of(found, "time", "k", "v") == rows_of(rows)
    reader.committed(offer.offset)
    assert reader.poll(LIMITS, 0) is None


@kinds
def test_lists_and_structs_are_read(tmp_path: Path, kind: str) -> None:
    rows = pl.DataFrame(
        {
            "time": [1, 2, 3],
            "tags": [["a", "b"], [], None],
            "place": [{"x": 1, "y": "u"}, {"x": None, "y": "v"}, {"x": 3, "y": None}],
        }
    )
    table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    if kind == "delta":
        write_deltalake(tmp_path / "x", table)
    else:
        catalog = load_catalog("default", type="sql", **iceberg(tmp_path))
        catalog.create_namespace("lake")
        catalog.create_table("lake.x", table.schema).append(table)
    session = Session.in_process(2, {"fsync": False})
    session.stream("x", ordered="time", **Lake(kind, tmp_path).options)
    session.query("q", "SELECT time, tags, place FROM x")
    session.start(sinks={"q": tmp_path / "out"}).await_termination()
    assert Lake(kind, tmp_path).found() == rows_of(rows)


def test_a_column_that_is_renamed_meanwhile_is_refused(tmp_path: Path) -> None:
    lake, given = Lake("iceberg", tmp_path), frames(2)
    lake.append(given[0])
    reader, _ = reader_of(tmp_path, lake)
    offer = reader.poll(LIMITS, 0)
    assert offer is not None
    reader.committed(offer.offset)
    table = iceberg_table(tmp_path, "x")
    with table.update_schema() as change:
        change.rename_column("v", "w")
    table.append(given[1].rename({"v": "w"}).to_arrow(compat_level=pl.CompatLevel.oldest()))
    with pytest.raises(SourceError, match="column 'v' was renamed to 'w'"):
        reader.poll(LIMITS, 0)


def test_iceberg_files_may_lack_partitioning_columns(tmp_path: Path) -> None:
    """As those of a table that was brought over from Hive: folders had the values."""
    at = dt.datetime(2026, 11, 18, 5, 0, 0, 120000)
    rows = pl.DataFrame(
        {
            "time": range(4),
            "k": ["a", "null", None, "a b"],
            "n": [1, -2, None, 3],
            "day": [at.date(), None, at.date(), at.date()],
            "ts": [at, at, None, at.replace(microsecond=0)],
            "z": pl.Series([at, None, at, at]).dt.replace_time_zone("UTC"),
            "even": [True, False, None, True],
            "dec": pl.Series(
                [Decimal("1.50"), None, Decimal("-2.25"), None], dtype=pl.Decimal(9, 2)
            ),
        }
    )
    parted = [name for name in rows.columns if name != "time"]
    data = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
    catalog = load_catalog("default", type="sql", **iceberg(tmp_path))
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.x", data.schema)
    with table.update_spec() as spec:
        for name in parted:
            spec.add_identity(name)
    lake = Lake("iceberg", tmp_path)
    found = []
    for epoch in range(2):
        table.append(data.slice(2 * epoch, 2))
        for file in (tmp_path / "warehouse").rglob("*.parquet"):
            pl.read_parquet(file, columns=["time"], hive_partitioning=False).write_parquet(file)
        if not epoch:
            reader, columns = reader_of(tmp_path, lake)
        offer = reader.poll(LIMITS, 0)
        assert offer is not None
        reader.committed(offer.offset)
        readings = [piece.read(columns, False) for piece in offer.pieces]
        assert not [bad for reading in readings for bad in reading.bad]
        found += [reading.rows for reading in readings]
    assert rows_of(pl.concat(found)) == rows_of(rows)


def test_partitions_whose_values_are_not_exact_are_read_from_files_or_refused(
    tmp_path: Path,
) -> None:
    data = pa.table({"time": [1], "f": [0.1]})
    catalog = load_catalog("default", type="sql", **iceberg(tmp_path))
    catalog.create_namespace("lake")
    table = catalog.create_table("lake.x", data.schema)
    with table.update_spec() as spec:
        spec.add_identity("f")
    table.append(data)
    reader, columns = reader_of(tmp_path, Lake("iceberg", tmp_path))
    offer = reader.poll(LIMITS, 0)
    assert offer is not None
    (piece,) = offer.pieces
    assert piece.read(columns, False).rows.rows() == [(1, 0.1)]
    pl.DataFrame({"time": [1]}).write_parquet(piece.label)
    (bad,) = piece.read(columns, False).bad
    assert "lacks column 'f', by which the table is partitioned" in bad.reason


def test_odd_values_in_the_names_of_folders(tmp_path: Path) -> None:
    rows = pl.DataFrame({"time": range(4), "k": ["a/b c", "50%", "%41", "q?#+"], "v": range(4)})
    lake = Lake("iceberg", tmp_path, ["k"])
    lake.append(rows)
    lake.read()
    assert lake.found() == rows_of(rows)
