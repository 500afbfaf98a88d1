"""Messages: the reason before the text, the nearest names instead of all, and names that fit a folder."""

from __future__ import annotations

import datetime as dt
import re

import polars as pl
import pytest

from anabranch import Session, col, lit
from anabranch.errors import LanguageError, suggest
from anabranch.language.builder import Query
from anabranch.language.expression import type_of
from anabranch.language.groups import Aggregate
from anabranch.language.node import Stream
from anabranch.language.order import Ordered
from anabranch.language.sql.expression import read_expression
from anabranch.language.sql.read import read_query
from anabranch.testing.sources import EpochSource


def session() -> Session:
    made = Session.in_process(sites=2)
    made.stream("tcp", generator="packets", rows=100, ordered="time")
    return made


def fault(sql: str) -> str:
    with pytest.raises(LanguageError) as caught:
        session().query("q", sql)
    return str(caught.value)


def test_the_reason_comes_before_the_query() -> None:
    told = fault("SELECT time, lenn FROM tcp")
    assert told.startswith(
        "Query 'q', at character 14: column 'lenn' is not found. Did you mean 'len'?"
    )
    assert told.endswith("In: SELECT time, lenn FROM tcp")


def test_of_a_long_query_only_what_is_around_the_fault_is_told() -> None:
    told = fault(f"SELECT time, {', '.join(f'len AS c{n}' for n in range(5000))}, lenn FROM tcp")
    assert told.startswith("Query 'q', at character")
    assert "lenn FROM tcp" in told
    assert len(told) < 2500


def test_an_unknown_function_names_the_nearest_and_not_all() -> None:
    told = fault("SELECT time, substrin(len, 1) AS s FROM tcp")
    assert "there is no function 'substrin'. Did you mean 'substring'?" in told
    assert "approx_quantile" not in told
    assert len(told) < 300


def test_of_many_names_without_a_near_one_some_are_told() -> None:
    told = suggest("zzzzzz", [f"name{n}" for n in range(40)])
    assert told.endswith("and 28 more.")


def test_a_name_in_another_case_is_told() -> None:
    assert suggest("TS", ["price", "ts"]).startswith(" Did you mean 'ts'?")
    assert suggest("CHANEL", ["Channel", "price"]).startswith(" Did you mean 'Channel'?")
    assert suggest("A", ["a", "b"]) == " Did you mean 'a'? Existing: a, b."
    assert "Did you mean 'time'?" in fault("SELECT TIME FROM tcp")


def test_a_name_too_long_for_a_folder_is_refused_where_it_is_given() -> None:
    with pytest.raises(LanguageError, match="it has 300 letters"):
        session().query("q" * 300, "SELECT time FROM tcp")
    with pytest.raises(LanguageError, match="cannot be a name"):
        session().stream("ü" * 61, generator="packets", rows=1, ordered="time")
    session().query("q" * 120, "SELECT time FROM tcp")


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ("TUMBLE_START(time, 60) AS x", "must repeat the window of GROUP BY"),
        ("md5(len) AS x", "register a user function over Arrow columns"),
        ("TUMBEL(time, 60) AS x", "Did you mean 'tumble'?"),
        ("CUONT(*) AS n", "there is no function 'cuont'. Did you mean 'count'?"),
        ("COUNT() AS n", "COUNT(*) counts rows."),
        ("w.start AS x", "there is no input 'w' here"),
    ],
)
def test_a_function_of_another_system_is_told_by_its_name_here(select: str, said: str) -> None:
    assert said in fault(f"SELECT {select} FROM tcp GROUP BY window(time, 60)")


def test_advice_about_an_aggregate_without_a_window_is_for_python_and_for_sql() -> None:
    told = fault("SELECT srcIP, COUNT(*) AS n FROM tcp GROUP BY srcIP")
    assert "emit='update' with the setting allow_unbounded_state=True" in told
    assert "EMIT UPDATE AS … and SET allow_unbounded_state = true" in told


def timed() -> Session:
    made = Session.in_process(sites=2)
    rows = pl.DataFrame({"ts": [dt.datetime(2026, 1, 1)], "d": [dt.date(2026, 1, 1)]})
    made.stream("s", EpochSource([rows]), ordered="ts")
    return made


@pytest.mark.parametrize(
    "window",
    ["TUMBLE(ts, INTERVAL '5' MINUTE)", "TUMBLE(ts, INTERVAL '5 minutes')", "TUMBLE(ts, INTERVAL 5 MINUTES)",
     "HOP(ts, INTERVAL '10' MINUTES, INTERVAL 5 MINUTE)", "SESSION(ts, INTERVAL '5' minute)",
     "TUMBLE(ts, '5 mins')", "TUMBLE(ts, '5 Minutes')"],
)  # fmt: skip
def test_sizes_of_windows_may_be_intervals_in_any_spelling(window: str) -> None:
    stamps = Query(
        Stream("s", pl.Schema({"ts": pl.Datetime("us")}), Ordered("ts", timestamps=True))
    )
    plain = re.sub(
        r"INTERVAL '?(\d+)[ ']*\w+'?|'5 \w+'", lambda m: f"'{m[1] or 5} minutes'", window
    )
    windows = []
    for written in (window, plain):
        node = read_query(f"SELECT COUNT(*) AS n FROM s GROUP BY {written}", {"s": stamps}).node
        while not isinstance(node, Aggregate):
            (node,) = node.inputs
        windows.append(node.window)
    assert windows[0] == windows[1]


def test_a_join_of_a_date_with_a_timestamp_says_which_cast_to_write() -> None:
    with pytest.raises(LanguageError, match=r"Write CAST\(a\.d AS TIMESTAMP\) = b\.ts\."):
        timed().query("q", "SELECT a.ts FROM s a JOIN s b ON a.d = b.ts AND a.ts = b.ts")


def test_python_says_what_it_takes_and_takes_conditions_as_texts() -> None:
    for nonsense in (5, None):
        with pytest.raises(LanguageError, match=r"col\(\) takes the name of a column"):
            col(nonsense)  # type: ignore[arg-type]
    packets = session().from_stream("tcp")
    text, built = (
        packets.where("len > 0 AND srcIP <> destIP"),
        packets.where((col("len") > 0) & (col("srcIP") != col("destIP"))),
    )
    assert str(text.node.predicate) == str(built.node.predicate)  # type: ignore[attr-defined]
    with pytest.raises(
        LanguageError, match=r"where\(\), at character 1: column 'lenn' is not found"
    ):
        packets.where("lenn > 0")
    assert str(col("t") > dt.time(1)) == "t > TIME '01:00:00'"
    with pytest.raises(LanguageError, match="which is a complex"):
        lit(1j)  # type: ignore[arg-type]


def test_an_unsigned_constant_beside_unsigned_values_needs_no_128_bits() -> None:
    schema = pl.Schema({"u": pl.UInt64()})
    choice = read_expression("COALESCE(CAST(7 AS UBIGINT), u)", schema)
    assert type_of(choice, schema, "") == pl.UInt64
    assert (
        type_of(read_expression("COALESCE(u, CAST(7 AS UBIGINT))", schema), schema, "") == pl.UInt64
    )
