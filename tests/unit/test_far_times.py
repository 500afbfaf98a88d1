"""Times and lengths of time near the ends of 64 bits: right, or refused before anything counts."""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl
import pytest

from anabranch import Session, col, count, hop, session_window, tumble
from anabranch.errors import AnabranchError, LanguageError, SettingsError, SourceError
from anabranch.language.window import LATEST, LONGEST
from anabranch.testing.sources import EpochSource

FAR = [-LATEST, -LATEST + 1, -LATEST + 25, -1, 0, 9, 10, LATEST - 21, LATEST - 1, LATEST]
NANOSECONDS = [1_790_000_000_000_000_000 + n for n in (0, 1, 10**9, 61 * 10**9)]


def run(rows: pl.DataFrame, query: Any, cut: int, **options: Any) -> pl.DataFrame:
    session = Session.in_process(2, {"fsync": False})
    stream = session.stream("t", EpochSource([rows[:cut], rows[cut:]]), ordered="time", **options)
    session.query("q", query(stream) if callable(query) else query)
    started = session.start(sinks={"q": "memory"}, at_end="close")
    assert started.await_termination(60)
    return started.results("q")


def duck(sql: str, **tables: pl.DataFrame) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table.to_arrow())
        return sorted(connection.execute(sql).fetchall())


@pytest.mark.parametrize("times", [FAR, NANOSECONDS], ids=["far", "nanoseconds"])
@pytest.mark.parametrize("size", [1, 10, 60 * 10**9, LONGEST])
def test_no_window_is_lost_at_the_ends(times: list[int], size: int) -> None:
    rows = pl.DataFrame({"time": times, "v": range(len(times))})
    whole = f"SELECT tb, COUNT(*) AS n, SUM(v) AS s FROM t GROUP BY time/{size} AS tb"
    found = sorted(run(rows, whole, 4).rows())
    counted: dict[int, list[int]] = {}
    for time, value in rows.rows():
        counted.setdefault(time // size, []).append(value)
    assert found == sorted((tb, len(v), sum(v)) for tb, v in counted.items())
    tumbled = run(rows, lambda t: t.group_by(tumble(size)).agg(count().alias("n")), 4)
    assert sorted(tumbled["window_start"].to_list()) == sorted(tb * size for tb in counted)


def test_hops_and_sessions_at_the_ends() -> None:
    rows = pl.DataFrame({"time": FAR})
    hops = run(rows, lambda t: t.group_by(hop(20, 10)).agg(count().alias("n")), 3)
    expected = {}
    for time in FAR:
        for start in (time // 10 * 10, time // 10 * 10 - 10):
            expected[start] = expected.get(start, 0) + 1
    assert dict(hops.select("window_start", "n").rows()) == expected
    wide = run(rows, lambda t: t.group_by(hop(LONGEST, LONGEST // 2)).agg(count().alias("n")), 3)
    assert wide["n"].sum() == 2 * len(FAR)
    sessions = run(rows, lambda t: t.group_by(session_window(15)).agg(count().alias("n")), 3)
    assert sorted(sessions["n"].to_list()) == [1, 1, 2, 2, 4]


def test_joins_at_the_ends() -> None:
    rows = pl.DataFrame({"time": FAR, "k": [0] * len(FAR)})
    for bound in (1, 25, 1000):
        session = Session.in_process(2, {"fsync": False})
        session.stream("a", EpochSource([rows[:4], rows[4:]]), ordered="time")
        session.stream("b", EpochSource([rows[:6], rows[6:]]), ordered="time")
        on = f"a.k = b.k AND b.time BETWEEN a.time - {bound} AND a.time + {bound}"
        sql = f"SELECT a.time AS x, b.time AS y FROM a LEFT JOIN b ON {on}"
        session.query("q", sql)
        started = session.start(sinks={"q": "memory"}, at_end="close")
        assert started.await_termination(60)
        assert sorted(started.results("q").rows()) == duck(sql, a=rows, b=rows)


@pytest.mark.parametrize(
    "kind", [pl.Int64(), pl.UInt64(), pl.Datetime("us"), pl.Datetime("ms")], ids=str
)
def test_times_beyond_are_refused_at_the_source(kind: pl.DataType, tmp_path: Any) -> None:
    beyond = {pl.UInt64(): 2**64 - 1, pl.Datetime("ms"): 2**62}.get(kind, LATEST + 1)
    physical = pl.UInt64 if kind == pl.UInt64 else pl.Int64
    rows = pl.DataFrame({"time": pl.Series([1, beyond, 2], dtype=physical).cast(kind)})
    sql = "SELECT time FROM t"
    with pytest.raises(SourceError, match=r"1 row\(s\) have NULL or times beyond 3 \* 2\*\*60"):
        run(rows, sql, 0)
    session = Session.in_process(2, {"fsync": False})
    session.stream("t", EpochSource([rows]), ordered="time", on_bad="dead-letter")
    session.query("q", sql)
    started = session.start(sinks={"q": "memory"}, dead_letter=tmp_path / "dead", at_end="close")
    assert started.await_termination(60)
    assert started.results("q").height == 2


def test_lengths_beyond_are_refused() -> None:
    session = Session.in_process(1)
    stream = session.stream(
        "t", EpochSource([pl.DataFrame({"time": [1], "k": [1]})]), ordered="time"
    )
    for window in (tumble(LONGEST + 1), hop(LONGEST + 1, 1), session_window(2**62), tumble(2**70)):
        with pytest.raises(LanguageError, match=r"expected at most 2\*\*59"):
            stream.group_by(window).agg(count().alias("n"))
    with pytest.raises(LanguageError, match=r"expected at most 2\*\*59"):
        stream.group_by((col("time") // 2**61).alias("tb")).agg(count().alias("n"))
    session.query("q", f"SELECT time FROM t WHERE time / {2**62} = 0")
    for lateness in (LONGEST + 1, 2**70):
        with pytest.raises(SettingsError, match="lateness"):
            session.stream(
                "u", EpochSource([pl.DataFrame({"time": [1]})]), ordered="time", lateness=lateness
            )


def test_joins_whose_rows_may_be_further_apart_are_refused() -> None:
    session = Session.in_process(1)
    for name in ("a", "b"):
        session.stream(name, EpochSource([pl.DataFrame({"time": [1], "k": [1]})]), ordered="time")
    far = 2**61
    session.query(
        "q",
        f"SELECT a.k FROM a JOIN b ON a.k = b.k AND b.time BETWEEN a.time - {far} AND a.time + {far}",
    )
    with pytest.raises(AnabranchError, match="for ever"):
        session.start(sinks={"q": "memory"})
