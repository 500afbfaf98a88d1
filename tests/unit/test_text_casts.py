"""Values as texts and back, casts that do not fit, and texts cut backwards."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl
import pytest

from anabranch.errors import LanguageError
from anabranch.language.expression import to_polars
from anabranch.language.sql.expression import read_expression


def values(text: str, frame: pl.DataFrame) -> list[Any]:
    return frame.select(v=to_polars(read_expression(text, frame.schema), frame.schema))[
        "v"
    ].to_list()


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("TIME", pl.Series([dt.time(1, 2, 3, 4), dt.time(1, 2, 3), dt.time(0, 0, 0, 100_000), None])),
        ("TIMESTAMP", pl.Series([dt.datetime(2024, 2, 3, 4, 5, 6, 7), dt.datetime(1969, 1, 1), None])),
        ("DATE", pl.Series([dt.date(2024, 2, 3), dt.date(1, 1, 1), None])),
        ("BOOLEAN", pl.Series([True, False, None])),
        ("BLOB", pl.Series([bytes(range(256)), b"", b"\\x41", None])),
        ("DOUBLE", pl.Series([1e300, -0.0, 0.1, float("inf"), 5e-324, None])),
        ("REAL", pl.Series([1.5, 0.1, None], dtype=pl.Float32)),
        ("BIGINT", pl.Series([-(2**63), 2**63 - 1, None])),
        ("UBIGINT", pl.Series([2**64 - 1, 0, None], dtype=pl.UInt64)),
        ("TINYINT", pl.Series([-128, 127, None], dtype=pl.Int8)),
        ("DECIMAL(10, 2)", pl.Series(["1.50", "-0.01", None]).cast(pl.Decimal(10, 2))),
    ],
)  # fmt: skip
def test_a_text_made_of_a_value_gives_it_back(name: str, series: pl.Series) -> None:
    frame = series.alias("x").to_frame()
    assert values(f"TRY_CAST(CAST(x AS VARCHAR) AS {name})", frame) == series.to_list()
    assert values(f"CAST(CAST(x AS VARCHAR) AS {name})", frame) == series.to_list()


def test_texts_of_values_are_those_of_duckdb() -> None:
    frame = pl.DataFrame(
        {"f": [float("nan"), 1.0], "y": [b"a\x00\xff'", b"b"], "t": [dt.time(1, 2, 3, 40)] * 2}
    )
    assert values("CAST(f AS VARCHAR)", frame) == ["nan", "1.0"]
    assert values("f || 'x'", frame) == ["nanx", "1.0x"]
    assert values("CAST(y AS VARCHAR)", frame) == [r"a\x00\xFF\x27", "b"]
    assert values("CAST(t AS VARCHAR)", frame) == ["01:02:03.00004"] * 2
    with pytest.raises(LanguageError, match=r"joins binary; expected texts"):
        values("y || y", frame)


def test_what_is_too_large_for_a_real_is_no_infinity() -> None:
    frame = pl.DataFrame({"f": [1e300, -1e39, float("inf"), 1.5, None]})
    assert values("TRY_CAST(f AS REAL)", frame) == [None, None, float("inf"), 1.5, None]
    with pytest.raises(pl.exceptions.InvalidOperationError, match=r"float32 1e\+300"):
        values("CAST(f AS REAL)", frame)


def test_times_are_read_as_duckdb_reads_them() -> None:
    frame = pl.DataFrame({"s": ["2024-02-03T10:00:00Z", "2024-02-03 10:00:00.5Z", "Z"]})
    assert values("TRY_CAST(s AS TIMESTAMP)", frame) == [
        dt.datetime(2024, 2, 3, 10), dt.datetime(2024, 2, 3, 10, 0, 0, 500_000), None,
    ]  # fmt: skip
    assert values("TRY_CAST(s AS TIME)", pl.DataFrame({"s": ["10:11", "25:00"]})) == [
        dt.time(10, 11), None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["CAST(t AS TIMESTAMP)", "TRY_CAST(d AS TIME)", "CAST(y AS BIGINT)", "TRY_CAST(o AS DATE)"],
)
def test_casts_without_a_meaning_are_refused_before_the_run(text: str) -> None:
    schema = {"t": pl.Time(), "d": pl.Date(), "y": pl.Binary(), "o": pl.Boolean()}
    frame = pl.DataFrame(schema=schema)
    with pytest.raises(LanguageError, match="cannot be cast to"):
        values(text, frame)


def test_a_length_below_zero_takes_what_is_before_the_start() -> None:
    frame = pl.DataFrame({"s": ["hello"] * 5, "a": [3, -1, 0, 9, 2], "n": [-1, -2, -1, -5, None]})
    assert values("SUBSTRING(s, 3, -1)", frame) == ["e"] * 5
    assert values("SUBSTRING(s, a, n)", frame) == ["e", "ll", "", "lo", None]
