"""Constants in SQL as DuckDB reads them: their values, and the types of what is computed with them."""

from __future__ import annotations

import datetime as dt

import duckdb
import polars as pl
import pytest

from anabranch.errors import LanguageError
from anabranch.language.expression import Named, type_of
from anabranch.language.sql.expression import read_expression
from anabranch.operators.stateless import compute

NOON = dt.datetime(2024, 1, 1, 12)
ROWS = pl.DataFrame(
    {
        "y": [1.1, -2.5, 0.0, None, 16777216.0],
        "x": [1.1, -2.5, 0.0, None, 1e300],
        "ts": [NOON, dt.datetime(2024, 1, 1), dt.datetime(2023, 12, 31, 23), None, NOON],
        "d": [
            dt.date(2024, 1, 1),
            dt.date(2024, 1, 2),
            dt.date(2023, 12, 31),
            None,
            dt.date(2024, 2, 29),
        ],
    },
    schema={"y": pl.Float32, "x": pl.Float64, "ts": pl.Datetime("us"), "d": pl.Date},
)
KINDS = {"FLOAT": pl.Float32, "DOUBLE": pl.Float64, "BOOLEAN": pl.Boolean, "TIMESTAMP": pl.Datetime}


@pytest.mark.parametrize(
    "text",
    [
        "1.5e0 * y", "y + 1e0", "y - 0.1e0", "y / 4e0", "-1.5e0 * y", "ABS(y) % 2e0", "1.5 * y", "y / 2.0",
        "GREATEST(y, 1.2e0)", "LEAST(y, 1.2e0)", "COALESCE(y, 1e0)", "CASE WHEN x > 0 THEN y ELSE 1.1e0 END",
        "y > 1.1e0", "y = 1.1e0", "y = 1.1", "y IN (1.1e0, 2)", "y IN (1.1)", "y IS DISTINCT FROM 1.1e0",
        "x = 1.1e0", "1.1e0 < y", "y BETWEEN 1.1e0 AND 2",
        "ts > '2024-01-01'", "'2024-01-01 12:00' <= ts", "ts = '2024-01-01T12:00:00'",
        "ts <> '2024-01-01 12:00:00.5'", "ts BETWEEN '2024-01-01' AND '2024-01-01 11:59:59'",
        "ts IN ('2024-01-01', '2023-12-31 23:00:00')", "ts NOT IN ('2024-01-01')", "d > '2024-01-01'",
        "d IN ('2024-02-29', NULL)", "d = '2024-01-01'", "ts IS DISTINCT FROM '2024-01-01'",
        "CASE ts WHEN '2024-01-01' THEN 1.5e0 ELSE 2.5e0 END",
        "ts + INTERVAL '1 hour 30 minutes'", "ts - INTERVAL '1 day 2 hours 3 minutes 4 seconds'",
        "ts + INTERVAL '1h30m'", "ts + INTERVAL '90 minutes'", "ts + INTERVAL '1' HOUR",
    ],
)  # fmt: skip
def test_a_written_constant_means_what_it_means_in_duckdb(text: str) -> None:
    expression = read_expression(text, ROWS.schema)
    ours = compute(ROWS, [Named("v", expression)])["v"]
    with duckdb.connect() as connection:
        connection.register("input", ROWS.to_arrow())
        kinds = connection.execute(f"SELECT DISTINCT TYPEOF({text}) FROM input").fetchall()
        theirs = connection.execute(f"SELECT {text} FROM input").fetchall()
    assert ours.dtype == type_of(expression, ROWS.schema, "v")
    assert ours.dtype == KINDS[kinds[0][0]]
    assert ours.to_list() == [row[0] for row in theirs]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ts > 'yesterday'", "'yesterday' is no timestamp such as '2026-01-31 12:00:00'"),
        ("ts > '20240101'", "is no timestamp"),
        ("ts > '2024-02-30'", "is no timestamp"),
        ("ts > '2024-01-01 12:00:00+02'", "is no timestamp"),
        ("ts IN ('2024-01-01', 'x')", "is no timestamp"),
        ("d = '2024-01-01 12:00:00'", "is no date such as '2026-01-31'"),
        ("ts + INTERVAL '1 hour thirty'", "is not a length of time"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, told: str) -> None:
    with pytest.raises(LanguageError, match=told):
        read_expression(text, ROWS.schema)
