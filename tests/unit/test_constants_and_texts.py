"""Values that are the same for all rows are as long as the rows; values as texts are written as in DuckDB."""

from __future__ import annotations

import datetime as dt

import duckdb
import polars as pl
import pytest

from anabranch import Session
from anabranch.errors import LanguageError
from anabranch.language.expression import Named
from anabranch.language.sql.expression import read_expression
from anabranch.operators.stateless import compute, is_true

ROWS = pl.DataFrame(
    {
        "t": [1, 2, 3, None],
        "c": ["a", "b", None, ""],
        "ts": [
            dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 1, 0, 0, 30, 250000),
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None,
        ],
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["COALESCE((-4), t) NOT IN (16, 0)", "COALESCE(1, t) IN (1)", "NULLIF('x', c) IS NOT NULL",
     "(1 > NULLIF(t, t)) IS NOT TRUE"],
)  # fmt: skip
def test_a_condition_that_is_the_same_for_all_rows_is_as_long_as_they_are(text: str) -> None:
    rows = ROWS.with_columns(t=pl.lit(None, pl.Int64))
    for frame in (ROWS, rows):
        predicate = read_expression(text, frame.schema)
        assert len(is_true(predicate, frame)) == frame.height
        values = compute(frame, [Named("v", predicate)], ["t"])
        assert values.columns == ["v", "t"]
        connection = duckdb.connect()
        connection.register("frame", frame.to_arrow())
        expected = connection.sql(f"SELECT {text} FROM frame").fetchall()
        assert [(value,) for value in values["v"]] == expected


@pytest.mark.parametrize(
    "text", ["CAST(ts AS VARCHAR)", "ts || 'x'", "t || ' ' || ts", "LENGTH(CAST(ts AS VARCHAR))"]
)
def test_times_as_texts_are_written_as_duckdb_writes_them(text: str) -> None:
    expression = read_expression(text, ROWS.schema)
    got = compute(ROWS, [Named("v", expression)]).to_series().to_list()
    connection = duckdb.connect()
    connection.register("rows", ROWS.to_arrow())
    assert [(value,) for value in got] == connection.sql(f"SELECT {text} FROM rows").fetchall()


def test_a_time_with_a_zone_is_written_with_its_offset() -> None:
    rows = ROWS.with_columns(pl.col("ts").dt.replace_time_zone("Asia/Kolkata"))
    text = compute(rows, [Named("v", read_expression("CAST(ts AS VARCHAR)", rows.schema))])
    assert text["v"].to_list()[:2] == ["2026-01-01 00:00:00+05:30", "2026-01-01 00:00:30.25+05:30"]


def test_except_must_leave_a_column() -> None:
    session = Session.in_process()
    session.stream("tcp", generator="packets", rows=10, ordered="time")
    session.query("one", "SELECT time FROM tcp")
    with pytest.raises(LanguageError, match="leaves no column"):
        session.query("none", "SELECT * EXCEPT (time) FROM one")
