"""Parcels: what is packed comes out again, in every type, with integers narrowed on the way."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from anabranch.routing.frame import Frame, concat, narrow, pack, packed, to_table, unpack

LONG = "a string that does not fit into the twelve bytes of a view"
COLUMNS: dict[str, tuple[pl.DataType, list[Any]]] = {
    "int8": (pl.Int8(), [-128, None, 127]),
    "int16": (pl.Int16(), [-(2**15), None, 2**15 - 1]),
    "int32": (pl.Int32(), [-(2**31), None, 2**31 - 1]),
    "int64": (pl.Int64(), [-(2**63), None, 2**63 - 1]),
    "small": (pl.Int64(), [-1, None, 1]),
    "uint8": (pl.UInt8(), [0, None, 255]),
    "uint16": (pl.UInt16(), [0, None, 65535]),
    "uint32": (pl.UInt32(), [0, None, 2**32 - 1]),
    "uint64": (pl.UInt64(), [0, None, 2**64 - 1]),
    "float32": (pl.Float32(), [-0.0, None, float("inf")]),
    "float64": (pl.Float64(), [float("nan"), None, 1e300]),
    "boolean": (pl.Boolean(), [True, None, False]),
    "string": (pl.String(), ["", None, LONG]),
    "binary": (pl.Binary(), [b"", None, LONG.encode() + b"\0\xff"]),
    "date": (pl.Date(), [dt.date(1, 1, 1), None, dt.date(9999, 12, 31)]),
    "time": (pl.Time(), [dt.time(0), None, dt.time(23, 59, 59, 999999)]),
    "stamp_ms": (pl.Datetime("ms"), [dt.datetime(1969, 12, 31), None, dt.datetime(2030, 1, 1)]),
    "stamp_us": (pl.Datetime("us"), [dt.datetime(1969, 12, 31), None, dt.datetime(2030, 1, 1)]),
    "stamp_ns": (pl.Datetime("ns"), [dt.datetime(1969, 12, 31), None, dt.datetime(2030, 1, 1)]),
    "zoned": (pl.Datetime("us", "Europe/Berlin"), [None, None, None]),
    "duration": (pl.Duration("us"), [dt.timedelta(0), None, dt.timedelta(days=-3)]),
    "decimal": (pl.Decimal(38, 2), [Decimal("-1.25"), None, Decimal("9" * 30)]),
    "strings": (pl.List(pl.String()), [[], None, ["a", None, LONG]]),
    "numbers": (pl.List(pl.Int64()), [[], None, [1, None, 2**40]]),
    "struct": (pl.Struct({"a": pl.Int64(), "b": pl.String()}), [{"a": 1, "b": LONG}, None, None]),
    "nothing": (pl.Null(), [None, None, None]),
    "no_value": (pl.Int64(), [None, None, None]),
}
EVERYTHING = pl.DataFrame({n: pl.Series(v, dtype=kind) for n, (kind, v) in COLUMNS.items()})


def there_and_back(*frames: tuple[str, pl.DataFrame]) -> list[tuple[str, pl.DataFrame]]:
    parcel = pack({"rows": 3}, packed([((name, 0), narrow(rows)) for name, rows in frames]))
    report, found = unpack(parcel)
    assert report == {"rows": 3}
    return [(name, frame.wide()) for (name, _), frame, _ in found]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_survives(name: str) -> None:
    frame = EVERYTHING.select(name)
    for part in (frame, frame[:0], frame[1:], frame[2:], pl.concat([frame, frame[1:]])):
        ((_, found),) = there_and_back(("q", part))
        assert_frame_equal(found, part)


def test_many_frames_in_one_parcel() -> None:
    frames = [("a", EVERYTHING), ("b", EVERYTHING[:0]), ("a", EVERYTHING[1:]), ("c", EVERYTHING)]
    found = there_and_back(*frames)
    assert [name for name, _ in found] == ["a", "b", "a", "c"]
    for (_, wanted), (_, got) in zip(frames, found, strict=True):
        assert_frame_equal(got, wanted)


def test_a_parcel_without_frames() -> None:
    assert there_and_back() == []


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("with_null", [False, True])
def test_integers_take_the_fewest_bits_that_hold_them(bits: int, with_null: bool) -> None:
    kinds = {8: pl.Int8, 16: pl.Int16, 32: pl.Int32, 64: pl.Int64}
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    below = [0, *([None] if with_null else [])]
    for values, expected in (
        ([least, *below], bits), ([most, *below], bits),
        ([least - 1, *below], min(64, bits * 2)), ([most + 1, *below], min(64, bits * 2)),
    ):  # fmt: skip
        if min(v for v in values if v is not None) < -(2**63) or max(values[:1]) > 2**63 - 1:
            continue
        frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Int64)})
        slim = narrow(frame)
        assert slim.rows.schema["x"] == kinds[expected], f"{values}"
        assert slim.narrowed == (set() if expected == 64 else {"x"})
        ((_, found),) = there_and_back(("q", frame))
        assert_frame_equal(found, frame)


def test_only_64_bit_integers_are_narrowed() -> None:
    """A user's Int32 must not come back as Int64, nor an unsigned number as a signed one."""
    frame = EVERYTHING.select("int8", "int32", "uint64", "float64", "small", "no_value")
    slim = narrow(frame)
    assert slim.narrowed == {"small"}
    assert [n for n in frame.columns if slim.rows.schema[n] != frame.schema[n]] == ["small"]


def test_frames_narrowed_before_they_are_parted() -> None:
    whole = pl.DataFrame({"q": [1, 2, 300], "s": ["a", LONG, None]})
    slim = narrow(whole)
    parcel = pack(None, packed([(("flows", 0), Frame(slim.rows[:1], slim.narrowed))]))
    ((_, found, _),) = unpack(parcel)[1]
    assert found.rows.schema["q"] == pl.Int16
    assert_frame_equal(found.wide(), whole[:1])


def test_frames_of_different_widths_together() -> None:
    parts = [
        pl.DataFrame({"x": [low, None, high]}) for low, high in ((1, 2), (-300, 5), (0, 2**40))
    ]
    for chosen in ([0], [0, 1], [1, 0, 0], [0, 2], [2, 1]):
        whole = concat([narrow(parts[number]) for number in chosen])
        assert_frame_equal(whole.wide(), pl.concat([parts[number] for number in chosen]))
    assert concat([narrow(parts[0]), narrow(parts[1])]).rows.schema["x"] == pl.Int16


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), st.lists(st.none() | st.text()))
def test_any_integers_and_any_text(numbers: list[int | None], texts: list[str | None]) -> None:
    for frame in (
        pl.DataFrame({"n": pl.Series(numbers, dtype=pl.Int64)}),
        pl.DataFrame({"t": pl.Series(texts, dtype=pl.String)}),
    ):
        ((_, found),) = there_and_back(("q", frame))
        assert_frame_equal(found, frame)


LONG = "a text that no view holds by itself, "
TEXTS = {
    "text": [LONG + str(number) for number in range(1000)],
    "bytes": [LONG.encode() + bytes([number % 256]) for number in range(1000)],
    "lists": [[LONG + str(number)] * (number % 3) for number in range(1000)],
    "struct": [{"of": LONG + str(number), "n": number} for number in range(1000)],
}
PARTS = {
    "slice": lambda rows: rows[100:200],
    "gathered": lambda rows: rows[pl.arange(0, 1000, 10, eager=True)],
    "filtered": lambda rows: rows.filter(pl.int_range(pl.len()) % 10 == 3),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("column", TEXTS)
def test_a_part_of_rows_carries_no_texts_of_others(column: str, part: str) -> None:
    whole = pl.DataFrame({column: TEXTS[column]})
    rows = PARTS[part](whole)
    table = to_table(rows)
    assert_frame_equal(pl.from_arrow(table), rows)
    assert table.nbytes < to_table(whole).nbytes / 5
    sent = pack({}, packed([(("q@1", 0), Frame(rows))]))
    assert len(sent) < to_table(whole).nbytes / 5


def test_much_is_left_in_a_file_that_both_can_see(tmp_path: Path) -> None:
    rows = pl.DataFrame({"key": range(100_000), "text": ["long enough for a view", "b"] * 50_000})
    few = pl.DataFrame({"key": [1, 2]})
    parcel = pack(
        {"rows": 2}, packed([(("q@1", 0), narrow(rows)), (("q@2", 1), Frame(few))], str(tmp_path))
    )
    assert len(parcel) < 1000
    assert len([*tmp_path.iterdir()]) == 1
    report, frames = unpack(parcel)
    back = {inlet: frame.wide() for inlet, frame, _ in frames}
    assert report == {"rows": 2}
    assert back[("q@1", 0)].equals(rows)
    assert back[("q@2", 1)].equals(few)


def test_little_goes_along_with_the_parcel(tmp_path: Path) -> None:
    few = pl.DataFrame({"key": [1, 2]})
    pack(None, packed([(("q@1", 0), Frame(few))], str(tmp_path)))
    assert not [*tmp_path.iterdir()]
