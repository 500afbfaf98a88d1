"""Casts between times and numbers: as the dialect means them, or refused with what to write."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from anabranch import col
from anabranch.errors import LanguageError
from anabranch.language.complaints import in_words
from anabranch.language.expression import to_polars, type_of
from anabranch.language.sql.dialect import Scope, parse
from anabranch.language.sql.expression import translate
from anabranch.language.sql.spelling import spelling_named

FAR = dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
ROWS = pl.DataFrame(
    {
        "ts": [dt.datetime(1969, 12, 31, 23, 59, 58, 500000), FAR, None],
        "d": [dt.date(1969, 12, 31), dt.date(9999, 12, 31), None],
        "n": [-7, 2**62, None],
        "x": [-0.0000019, float("inf"), None],
        "price": pl.Series(["2.55", "-2.55", None]).cast(pl.Decimal(10, 2)),
        "tags": [[1, 2], [2**53 + 1], None],
    }
)


def values(text: str, dialect: str = "anabranch") -> list[Any]:
    scope = Scope(text, ROWS.schema, "query", spelling=spelling_named(dialect))
    expression = translate(parse(scope), scope)
    type_of(expression, ROWS.schema, "query")
    return ROWS.select(to_polars(expression, ROWS.schema).alias("value"))["value"].to_list()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("ts", "int64"), ("ts", "float64"), ("d", "int32"), ("n", "timestamp"), ("n", "date"),
     ("x", "time"), ("price", "timestamp")],
)  # fmt: skip
@pytest.mark.parametrize("way", ["cast", "try_cast"])
def test_the_builder_refuses_what_sql_refuses(name: str, wanted: str, way: str) -> None:
    with pytest.raises(LanguageError, match=r"engines differ .* Write EPOCH\(ts\) or"):
        type_of(getattr(col(name), way)(wanted), ROWS.schema, "query")
    with pytest.raises(LanguageError, match="engines differ"):
        values(f"{way.upper()}({name} AS {wanted})")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("CAST(ts AS BIGINT)", [-2, 253402300799, None]),
        ("CAST(ts AS DOUBLE)", [-1.5, 253402300800.0, None]),
        ("TRY_CAST(ts AS INT)", [-2, None, None]),
        ("CAST(253402300799.999999 AS TIMESTAMP)", [FAR]),
        ("CAST(-0.0000019 AS TIMESTAMP)", [dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]),
        ("TRY_CAST(n AS TIMESTAMP)", [dt.datetime(1969, 12, 31, 23, 59, 53), None, None]),
        ("TRY_CAST(x AS TIMESTAMP)", [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None, None]),
        ("UNIX_MILLIS(ts)", [-1500, 253402300799999, None]),
        ("CAST(price AS INT)", [2, -2, None]),
        ("CAST(2.5 AS INT)", [2]),
    ],
)
def test_spark_counts_seconds_and_cuts_off(text: str, wanted: list[Any]) -> None:
    assert values(text, "spark") == wanted


def test_what_no_timestamp_holds_never_wraps_around() -> None:
    for text in ("FROM_EPOCH_MS(9223372036854775807)", "FROM_EPOCH(1e30)"):
        with pytest.raises(LanguageError, match=r"conversion from .* to int64 failed"):
            values(text)
    with pytest.raises(pl.exceptions.InvalidOperationError):
        values("FROM_EPOCH_MS(n)")
    with pytest.raises(pl.exceptions.InvalidOperationError):
        values("CAST(n AS TIMESTAMP)", "spark")


@pytest.mark.parametrize(
    "text",
    ["FROM_EPOCH(253402300800)", "TIMESTAMP '9999-12-31 23:59:59' + INTERVAL '1 day'",
     "ADD_MONTHS(TIMESTAMP '9999-12-31 00:00:00', 1)"],
)  # fmt: skip
def test_constant_times_that_python_has_no_value_for(text: str) -> None:
    assert values(f"{text} > ts") == [True, True, None]


def test_texts_of_timestamps_have_a_time_of_day() -> None:
    text = "TRY_CAST(CAST({} AS VARCHAR) AS TIME)"
    assert values(text.format("ts")) == [dt.time(23, 59, 58, 500000), FAR.time(), None]
    assert values(text.format("d")) == [dt.time(0), dt.time(0), None]
    assert values("CAST('2024-02-03T04:05:06' AS TIME)") == [dt.time(4, 5, 6)]
    assert values("TRY_CAST('2024-02-30 04:05:06' AS TIME)") == [None]


def test_floats_made_of_constants_are_rounded_where_the_dialect_rounds() -> None:
    assert values("CAST(1.7e0 * 1 AS INT)", "duckdb") == [2]
    assert values("CAST(2.5 / 1 AS INT)", "duckdb") == [2]
    assert values("CAST(2.5 * 1 AS INT)", "duckdb") == [3]


def test_lengths_of_time_are_refused_in_plain_words() -> None:
    with pytest.raises(LanguageError, match="length of time cannot be cast to string"):
        values("CAST(ts - ts AS VARCHAR)")


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        ("+ not allowed on date and i64", "+ not allowed on date and int64"),
        ("conversion from `str` to `decimal[10,2]` failed in column 'a' for 1 out of 5 values: [\"i64\"]",
         "conversion from string to decimal(10, 2) failed for 1 of 5 values: [\"i64\"]"),
        ("cannot cast Datetime(time_unit='us', time_zone=None) to List(Int64)",
         "cannot cast timestamp to list(int64)"),
        ("expected `list[list[f64]]`", "expected list(list(float64))"),
    ],
)  # fmt: skip
def test_complaints_have_no_words_of_polars(complaint: str, words: str) -> None:
    assert in_words(complaint) == words
