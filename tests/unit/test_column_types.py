"""Every type that a column may have, in every place; every other is refused at the source, with its name."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch import Session, UserAggregate
from anabranch.errors import LanguageError, SourceError
from anabranch.sinks.files import FileSink
from anabranch.testing.sources import EpochSource

DAY = dt.datetime(2020, 2, 29, 12, 30, 15, 123456)
LATER = DAY + dt.timedelta(hours=5)
OLD = dt.datetime(1950, 1, 1)
KINDS: dict[pl.DataType, list[Any]] = {
    pl.Int8(): [-128, 127, 0], pl.Int16(): [-32768, 32767, 0], pl.Int32(): [-(2**31), 2**31 - 1, 0],
    pl.Int64(): [-(2**63), 2**63 - 1, 0], pl.UInt8(): [255, 0, 1], pl.UInt16(): [65535, 0, 1],
    pl.UInt32(): [2**32 - 1, 0, 1], pl.UInt64(): [2**64 - 1, 0, 2**63], pl.Float32(): [0.5, -1.5, math.inf],
    pl.Float64(): [0.1, -math.inf, math.nan], pl.String(): ["", "ä", "a'b"],
    pl.Binary(): [b"", b"\xff", b"a"],
    pl.Boolean(): [True, False, True], pl.Date(): [DAY.date(), OLD.date(), LATER.date()],
    pl.Time(): [dt.time(0), dt.time(23, 59, 59, 999999), dt.time(7)], pl.Datetime("us"): [DAY, OLD, LATER],
    pl.Datetime("ms"): [dt.datetime(2020, 1, 1), OLD, dt.datetime(2021, 1, 1)],
    pl.Datetime("ns"): [DAY, OLD, LATER], pl.Datetime("us", "UTC"): [DAY, OLD, LATER],
    pl.Datetime("us", "Europe/Berlin"): [DAY, OLD, LATER],
    pl.Decimal(10, 2): [Decimal("0.10"), Decimal("-5.25"), Decimal("99999999.99")],
    pl.Decimal(38, 10): [Decimal("1e-10"), Decimal("-1e27"), Decimal(7)], pl.Null(): [None, None, None],
}  # fmt: skip
QUERIES = {
    "rows": "SELECT t, x FROM s",
    "keys": "SELECT t // 10 AS tb, x, COUNT(*) AS n FROM s GROUP BY ALL",
    "sets": "SELECT t // 10 AS tb, COUNT(DISTINCT x) AS d, COUNT(x) AS n, MIN(x) AS low, MAX(x) AS high, "
    "FIRST(x) AS f, LAST(x) AS l FROM s GROUP BY t // 10",
    "pairs": "SELECT a.t, b.t AS u, b.x FROM s a LEFT JOIN s b "
    "ON a.x = b.x AND b.t BETWEEN a.t - 3 AND a.t + 3",
    "values": "SELECT t, x = x AS same, CASE WHEN t > 4 THEN x END AS c, COALESCE(x, x) AS d FROM s",
}


def rows_of(kind: pl.DataType) -> pl.DataFrame:
    values = [*KINDS[kind], None, *KINDS[kind], KINDS[kind][0], None, KINDS[kind][1]]
    if isinstance(kind, pl.Datetime) and kind.time_zone:
        column = pl.Series(values, dtype=pl.Datetime("us")).dt.replace_time_zone(kind.time_zone)
    else:
        column = pl.Series(values, dtype=kind)
    return pl.DataFrame({"t": range(1, 2 * len(values), 2), "x": column})


def plain(rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows to compare: times with a zone as instants."""

    def text(value: Any) -> str:
        if isinstance(value, dt.datetime) and value.tzinfo:
            return repr(value.astimezone(dt.UTC))
        return repr(value)

    return sorted(" | ".join(map(text, row)) for row in rows)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_type_works_as_key_value_state_and_result(kind: pl.DataType, tmp_path: Path) -> None:
    rows = rows_of(kind)
    session = Session.in_process(3, {"fsync": False})
    session.stream("s", EpochSource([rows[:3], rows[3:4], rows[4:]]), ordered="t")
    for name, sql in QUERIES.items():
        session.query(name, sql)
    sinks: dict[str, Any] = dict.fromkeys(QUERIES, "memory")
    for format in ("parquet", "arrow"):
        session.query(format, QUERIES["rows"])
        sinks[format] = FileSink(tmp_path / format, format)
    run = session.start(sinks=sinks, checkpoint=tmp_path / "checkpoint", at_end="close")
    assert run.await_termination(60)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register("s", rows.to_arrow())
    for name, sql in QUERIES.items():
        if kind == pl.Datetime("ns") or (kind == pl.Null() and name == "keys"):
            continue  # Python has no nanoseconds
        assert plain(run.results(name).rows()) == plain(connection.execute(sql).fetchall()), name
    for format, read in (("parquet", pl.read_parquet), ("arrow", pl.read_ipc)):
        written = [read(path) for path in sorted((tmp_path / format).glob("epoch=*/*"))]
        assert pl.concat(written).select("t", "x").sort("t").equals(rows, null_equal=True)


@pytest.mark.parametrize(
    "kind",
    [
        pl.List(pl.Int128()), pl.Array(pl.Int64(), 2), pl.Struct({"a": pl.Duration()}), pl.Duration("us"),
        pl.Int128(), pl.UInt128(), pl.Float16(), pl.Categorical(), pl.Enum(["a"]), pl.Object(),
    ],
    ids=str,
)  # fmt: skip
def test_other_types_are_refused_at_the_source(kind: pl.DataType) -> None:
    frame = pl.DataFrame(schema={"t": pl.Int64(), "x": kind})
    with pytest.raises(SourceError, match="Stream 's', column 'x': its type is") as caught:
        Session.in_process().stream("s", EpochSource([frame]), ordered="t")
    assert "expected integers" in str(caught.value)


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float16()), pa.struct([("a", pa.duration("s"))]), pa.float16(),
        pa.duration("s"), pa.decimal256(50, 2), pa.dense_union([pa.field("a", pa.int64())]),
        pa.month_day_nano_interval(), pa.run_end_encoded(pa.int32(), pa.int64()),
    ],
    ids=str,
)  # fmt: skip
def test_other_types_of_files_are_refused_or_left_out(kind: pa.DataType, tmp_path: Path) -> None:
    empty = pa.schema([("t", pa.int64()), ("x", kind)])
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), empty):
        pass
    session = Session.in_process()
    with pytest.raises(SourceError, match=r"[cC]olumn 'x'"):
        session.stream("s", path=tmp_path, ordered="t")
    rows = session.stream("s", path=tmp_path, ordered="t", format="arrow", schema={"t": "int64"})
    session.query("q", rows)
    assert session.start(sinks={"q": "memory"}).await_termination(60)


def test_encoded_texts_and_older_forms_are_read_as_what_they_are(tmp_path: Path) -> None:
    table = pa.table(
        {
            "t": [1, 2],
            "word": pa.array(["a", "b"]).dictionary_encode(),
            "large": pa.array(["a", None], pa.large_string()),
            "four": pa.array([b"abcd", None], pa.binary(4)),
            "second": pa.array([1, 2], pa.timestamp("s")),
            "small": pa.array([Decimal("1.5"), None], pa.decimal32(5, 2)),
        }
    )
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    session = Session.in_process()
    session.query("q", session.stream("s", path=tmp_path, ordered="t"))
    run = session.start(sinks={"q": "memory"})
    assert run.await_termination(60)
    assert run.results("q").schema == {
        "t": pl.Int64, "word": pl.String, "large": pl.String, "four": pl.Binary,
        "second": pl.Datetime("us"), "small": pl.Decimal(5, 2),
    }  # fmt: skip
    assert run.results("q")["word"].to_list() == ["a", "b"]


def test_parquet_with_texts_in_a_dictionary(tmp_path: Path) -> None:
    words = pa.table({"t": [1, 2], "w": pa.array(["a", "a"]).dictionary_encode()})
    pq.write_table(words, tmp_path / "a.parquet")
    session = Session.in_process()
    rows = session.stream("s", path=tmp_path, ordered="t")
    assert rows.node.schema["w"] == pl.String


def test_a_user_aggregate_may_not_have_results_of_other_types() -> None:
    lists = UserAggregate(
        "all_of", list, lambda s, v, g: s, lambda s, v, g: s, lambda s: s, pa.list_(pa.int64()),
        pa.list_(pa.duration("s")),
    )  # fmt: skip
    session = Session.in_process()
    rows = session.stream("s", EpochSource([pl.DataFrame({"t": [1]})]), ordered="t")
    with pytest.raises(LanguageError, match="has results of type List"):
        rows.group_by("t").agg(lists("t").alias("x"))
