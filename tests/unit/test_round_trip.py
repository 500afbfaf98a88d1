"""What our sinks write, our sources read: every format, every type, every value."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from anabranch import Session
from anabranch.errors import RunError, SettingsError
from anabranch.sinks.files import refuse_types
from anabranch.sinks.staging import Staging
from anabranch.sources.formats import read_file
from helpers import FORMATS, SUFFIX

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
DAYS = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
MOMENTS = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
CENTS = st.integers(-(10**20), 10**20)


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low = -(1 << (bits - 1)) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


KINDS: list[tuple[pl.DataType, st.SearchStrategy[Any]]] = [
    *((kind(), integers(bits, True)) for kind, bits in
      ((pl.Int8, 8), (pl.Int16, 16), (pl.Int32, 32), (pl.Int64, 64))),
    *((kind(), integers(bits, False)) for kind, bits in
      ((pl.UInt8, 8), (pl.UInt16, 16), (pl.UInt32, 32), (pl.UInt64, 64))),
    (pl.Float32(), st.floats(width=32)),
    (pl.Float64(), st.floats()),
    (pl.String(), TEXTS),
    (pl.Binary(), st.binary(max_size=8)),
    (pl.Boolean(), st.booleans()),
    (pl.Date(), DAYS),
    (pl.Time(), st.times()),
    (pl.Datetime("us"), MOMENTS),
    (pl.Datetime("us", "UTC"), MOMENTS),
    (pl.Datetime("us", "Europe/Berlin"), MOMENTS),
    (pl.Datetime("ns"), st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))),
    (pl.Datetime("ms"), MOMENTS.map(lambda time: time.replace(microsecond=0))),
    (pl.Decimal(38, 2), CENTS),
]  # fmt: skip


def series(name: str, kind: pl.DataType, values: list[Any]) -> pl.Series:
    if isinstance(kind, pl.Datetime) and kind.time_zone is not None:
        plain = pl.Series(name, values, dtype=pl.Datetime("us"))
        return plain.dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone)
    if isinstance(kind, pl.Decimal):
        texts = [
            None if v is None else f"{'-' * (v < 0)}{abs(v) // 100}.{abs(v) % 100:02d}"
            for v in values
        ]
        return pl.Series(name, texts, dtype=pl.String).cast(kind)
    return pl.Series(name, values, dtype=kind)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    rows = draw(st.integers(1, 6))
    chosen = draw(st.lists(st.sampled_from(range(len(KINDS))), min_size=1, max_size=5))
    # Arrow itself has no names with a zero in them
    texts = TEXTS.filter(lambda name: "\0" not in name)
    names = draw(st.lists(texts, min_size=len(chosen), max_size=len(chosen), unique=True))
    columns = [pl.Series("__at", range(rows))] if draw(st.booleans()) else []
    for name, number in zip(names, chosen, strict=True):
        kind, values = KINDS[number]
        drawn = draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        columns.append(series(f"c{name}", kind, drawn))
    return pl.DataFrame(columns)


INNER = [
    (pl.Int8(), [1, None, -128]),
    (pl.UInt64(), [2**64 - 1, None]),
    (pl.Float64(), [1.5, float("nan"), float("inf"), float("-inf"), -0.0, None]),
    (pl.Float32(), [float("nan"), None]),
    (pl.String(), ['",\n]}', "", None, "NaN"]),
    (pl.Binary(), [b"\xff\0", b"", None]),
    (pl.Boolean(), [True, None]),
    (pl.Date(), [dt.date(1, 1, 1), None]),
    (pl.Time(), [dt.time(1, 2, 3, 9), None]),
    (pl.Datetime("us"), [dt.datetime(2026, 1, 1, 1, 1, 1, 9), None]),
    (pl.Datetime("ms"), [dt.datetime(2026, 1, 1, 1, 1, 1), None]),
    (pl.Datetime("ns"), [dt.datetime(2026, 1, 1, 1, 1, 1, 9), None]),
    (pl.Datetime("us", "Europe/Berlin"), [dt.datetime(1800, 1, 1), None]),
    (pl.Decimal(38, 2), [150, None, -1]),
]


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "csv"])
@pytest.mark.parametrize(("kind", "values"), INNER, ids=lambda value: str(value)[:30])
def test_what_is_in_lists_and_structs_comes_back(
    format: str, kind: pl.DataType, values: list[Any]
) -> None:
    inner = series("x", kind, values)
    lists = inner.implode().extend(pl.Series([None, []], dtype=pl.List(kind)))
    several = lists.implode().extend(pl.Series([None, []], dtype=pl.List(pl.List(kind))))
    rows = pl.DataFrame({"l": lists, "ll": several})
    rows = rows.with_columns(
        s=pl.struct(pl.col("l").alias('a "b'), "ll", v=inner.gather([0, 1, len(inner) - 1]))
    )
    rows = rows.with_columns(
        n=pl.when(pl.int_range(pl.len()) != 1).then("s"), ls=pl.concat_list("s").reverse()
    )
    assert_frame_equal(there_and_back(rows, format), rows, check_exact=True)


def there_and_back(rows: pl.DataFrame, format: str) -> pl.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        part = Staging(folder, "", format, fsync=False).write(rows, "0")
        path = str(Path(folder, part.name))
        reading = read_file("s", path, format, rows.schema, rows.columns, None, False)
    assert reading.bad == []
    assert reading.rows is not None
    return reading.rows


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60, deadline=None)
@given(rows=frames())
def test_every_format_gives_back_every_value(format: str, rows: pl.DataFrame) -> None:
    assert_frame_equal(there_and_back(rows, format), rows, check_exact=True)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", [pl.String(), pl.Int64(), pl.Float64(), pl.Binary()])
def test_nulls_in_a_single_column_come_back(format: str, kind: pl.DataType) -> None:
    """In CSV they are empty lines, which are nothing in files of several columns."""
    for values in ([None], [None, None], ["1", None], [None, "1"], [None, "1", None]):
        rows = pl.DataFrame({"x": pl.Series(values, dtype=pl.String).cast(kind)})
        assert_frame_equal(there_and_back(rows, format), rows)


@pytest.mark.parametrize("format", FORMATS)
def test_odd_numbers_and_old_zones_come_back(format: str) -> None:
    """JSON has no word for NaN, offsets none for the seconds of old zones, CSV none for bytes."""
    old = pl.Series([dt.datetime(1800, 1, 1), None, dt.datetime(2026, 7, 1)]).dt.replace_time_zone(
        "UTC"
    )
    rows = pl.DataFrame(
        {
            "f": [float("nan"), float("inf"), float("-inf")],
            "g": [None, -0.0, 1.5],
            "b": [b'\xff\0,"\n', b"", None],
            "z": old.dt.convert_time_zone("Europe/Berlin"),
            "d": [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)],
            'a "name"\n': ['"', "", None],
        }
    )
    assert_frame_equal(there_and_back(rows, format), rows)


@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("kind", [pl.Date(), pl.Datetime("us"), pl.Datetime("us", "UTC")])
def test_years_that_text_cannot_hold_are_refused(
    tmp_path: Path, format: str, kind: pl.DataType
) -> None:
    for value in (10**7, -(10**7)):
        days = pl.Series([0, value]) * (1 if kind == pl.Date() else 86_400_000_000)
        rows = pl.DataFrame({"t": days.cast(kind)})
        with pytest.raises(RunError, match="column 't' has times outside the years 1 to 9999"):
            Staging(str(tmp_path), "", format, fsync=False).write(rows, "0")


@pytest.mark.parametrize("format", FORMATS)
def test_results_are_the_input_of_another_run(tmp_path: Path, format: str) -> None:
    """Dates among them, which JSON has as texts."""
    rows = pl.DataFrame({"time": [1, 2, 3], "day": [dt.date(2026, 3, d) for d in (1, 2, 3)]})
    rows.write_parquet(tmp_path / "in.parquet")
    for path, out in ((tmp_path / "in.parquet", "one"), (tmp_path / "one", "two")):
        session = Session.in_process(1, {"fsync": False})
        form = format if out == "two" else "parquet"
        schema = {"time": "int64", "day": "date"}
        session.stream("s", path=path, format=form, schema=schema, ordered="time")
        session.query("q", "SELECT time, day FROM s")
        sink = {"path": tmp_path / out, "format": format}
        assert session.start(sinks={"q": sink}).await_termination(30)
    parts = sorted((tmp_path / "two").rglob(f"*.{SUFFIX[format]}"))
    schema = rows.schema
    read = [read_file("s", str(p), format, schema, schema.names(), None, False).rows for p in parts]
    assert pl.concat([frame for frame in read if frame is not None]).sort("time").equals(rows)


LISTS = pl.List(pl.Int64())
SPANS = pl.Struct({"a": pl.List(pl.Duration("us"))})


@pytest.mark.parametrize(
    ("format", "kind", "reason"),
    [
        ("csv", LISTS, "CSV has no lists"),
        ("csv", pl.Struct({"a": pl.Int64()}), "CSV has no lists"),
        ("csv", pl.Duration("us"), "no text of its own"),
        ("json", SPANS, "no text of its own"),
        ("json", pl.List(SPANS), "no text of its own"),
        ("json", LISTS, ""),
        ("parquet", SPANS, ""),
    ],
)
def test_types_that_a_format_cannot_hold_are_refused(
    format: str, kind: pl.DataType, reason: str
) -> None:
    schema = pl.Schema({"time": pl.Int64(), "x": kind})
    if not reason:
        return refuse_types("The sink of 'q'", format, schema)
    with pytest.raises(SettingsError, match=f"column 'x' is .*{reason}"):
        refuse_types("The sink of 'q'", format, schema)


def test_a_list_that_csv_cannot_hold_is_refused_at_the_start(tmp_path: Path) -> None:
    session = Session.in_process(1, {"fsync": False})
    session.stream("t", generator="packets", rows=10, ordered="time")
    session.query("q", "SELECT tb, ARRAY_AGG(len) AS xs FROM t GROUP BY time/60 AS tb")
    with pytest.raises(SettingsError, match="column 'xs' is List"):
        session.start(sinks={"q": {"path": tmp_path / "out", "format": "csv"}})


def test_line_breaks_in_quotes_over_many_blocks(tmp_path: Path) -> None:
    """Over 16 MB, with a line break in every value, so that one stands where a block ends."""
    value = "ab\ncd\r\n" * 40
    rows = pl.DataFrame({"time": range(70_000), "s": [value] * 70_000})
    path = tmp_path / "0.csv"
    rows.write_csv(path)
    assert path.stat().st_size > 18 << 20
    for salvage in (False, True):
        reading = read_file("s", str(path), "csv", rows.schema, ["time", "s"], None, salvage)
        assert reading.bad == []
        assert reading.rows is not None
        assert reading.rows.equals(rows)
    broken = path.read_bytes() + b"x,y\n"
    path.write_bytes(broken)
    reading = read_file("s", str(path), "csv", rows.schema, ["time", "s"], None, True)
    assert reading.rows is not None
    assert reading.rows.equals(rows)
    assert [bad.rows for bad in reading.bad] == [1]


@pytest.mark.parametrize("format", ["csv", "json"])
def test_a_row_larger_than_a_block(tmp_path: Path, format: str) -> None:
    rows = pl.DataFrame({"time": [1, 2], "s": ["é\n" * (9 << 20), "b"]})
    part = Staging(str(tmp_path), "", format, fsync=False).write(rows, "0")
    reading = read_file(
        "s", str(tmp_path / part.name), format, rows.schema, ["time", "s"], None, False
    )
    assert reading.rows is not None, reading.bad[0].reason[:300]
    assert reading.rows.equals(rows)


def test_json_with_dates_from_elsewhere(tmp_path: Path) -> None:
    schema = pl.Schema({"time": pl.Int64(), "day": pl.Date(), "clock": pl.Time()})
    lines = [{"time": 1, "day": "2026-03-01", "clock": "22:00:05"}, {"time": 2, "day": None}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    reading = read_file("s", str(path), "json", schema, schema.names(), None, False)
    assert reading.rows is not None, reading.bad
    assert reading.rows.rows() == [(1, dt.date(2026, 3, 1), dt.time(22, 0, 5)), (2, None, None)]
    path.write_text(
        '{"time": 1, "day": "yesterday", "clock": null}\n{"time": 2, "day": "2026-03-02"}\n'
    )
    reading = read_file("s", str(path), "json", schema, ["time", "day"], None, True)
    assert reading.rows is not None
    assert reading.rows.rows() == [(2, dt.date(2026, 3, 2))]
    assert "yesterday" in reading.bad[0].reason
