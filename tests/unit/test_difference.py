"""The difference between a checkpoint's query set and another: only what differs, in the user's units."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl
import pytest

from anabranch import Session
from anabranch.state.difference import differences

COLUMNS = {"ts": "timestamp", "k": "string", "v": "float64", "price": "decimal(10, 2)"}
SUMS = (
    "SELECT window_start, k, SUM(v) AS s FROM pay WHERE v > 1 GROUP BY TUMBLE(ts, '5 minutes'), k"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = {"ts": [dt.datetime(2026, 1, 1)], "k": ["; 2: x"], "v": [1.5], "price": ["1.00"]}
    frame = pl.DataFrame(rows).with_columns(pl.col("price").cast(pl.Decimal(10, 2)))
    frame.write_parquet(tmp_path / "a.parquet")
    return tmp_path


def identity(
    data: Path, sql: str = SUMS, lateness: str = "1 minute", schema: dict[str, str] = COLUMNS
) -> dict[str, str]:
    session = Session.in_process()
    session.stream("pay", path=data, ordered="ts", lateness=lateness, schema=schema)
    session.query("sums", sql)
    return session.plan().identity


def told(data: Path, **changed: object) -> list[str]:
    return differences(identity(data), identity(data, **changed))  # type: ignore[arg-type]


def test_the_same_has_no_difference(data: Path) -> None:
    assert told(data) == []


def test_lateness_is_told_in_its_unit(data: Path) -> None:
    assert told(data, lateness="90 seconds") == [
        "stream pay: lateness was 1 minute and is now 90 seconds"
    ]


@pytest.mark.parametrize(
    ("schema", "change"),
    [
        ({**COLUMNS, "v": "float32"}, "column 'v' was float64 and is now float32"),
        ({**COLUMNS, "price": "decimal(12, 3)"},
         "column 'price' was decimal(10,2) and is now decimal(12,3)"),
        ({**COLUMNS, "w": "int64"}, "column 'w' is new"),
        ({name: COLUMNS[name] for name in ("ts", "k", "v")}, "column 'price' is gone"),
        ({name: COLUMNS[name] for name in ("ts", "v", "k", "price")},
         "its columns are in another order"),
    ],
)  # fmt: skip
def test_columns_are_told_by_our_types(data: Path, schema: dict[str, str], change: str) -> None:
    assert f"stream pay: {change}" in told(data, schema=schema)


@pytest.mark.parametrize(
    ("sql", "change"),
    [
        (SUMS.replace("5 minutes", "1 hour"),
         "was «GROUP BY TUMBLE('5 minutes'), k AGG SUM(v) …» and is now "
         "«GROUP BY TUMBLE('1 hour'), k AGG SUM(v) …»"),
        (SUMS.replace("v > 1", "v > 2"), "was «WHERE v > 1» and is now «WHERE v > 2»"),
        (SUMS.replace("WHERE v > 1 ", ""), "«WHERE v > 1» is gone"),
        (SUMS + " HAVING SUM(v) > 3", "«WHERE s > 3» is new"),
        (SUMS.replace("v > 1", "k <> '; 3: y'"),
         "was «WHERE v > 1» and is now «WHERE k <> '; 3: y'»"),
    ],
)  # fmt: skip
def test_of_a_query_only_the_steps_that_differ_are_told(data: Path, sql: str, change: str) -> None:
    (line,) = [line for line in told(data, sql=sql) if line.startswith("query")]
    assert line == f"query sums: {change}"


def test_no_hash_nor_internal_number_is_told(data: Path) -> None:
    lines = ". ".join(told(data, sql=SUMS.replace("5 minutes", "1 hour"), lateness="2 minutes"))
    for inner in ("Datetime", "000000", "STREAM", "[", "1:"):
        assert inner not in lines


def test_a_change_beyond_what_is_kept_is_told_as_such(data: Path) -> None:
    long = " OR ".join(f"v = {number}" for number in range(2000))
    before = identity(data, f"SELECT ts FROM pay WHERE {long}")
    now = identity(data, f"SELECT ts FROM pay WHERE {long} OR v = 77777")
    (line,) = differences(before, now)
    assert len(line) < 600
    assert line.startswith("query sums: ")
