"""Random values of every kind: small ones that meet each other, extreme ones, NULL."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import polars as pl

from anabranch.testing.fuzz.draw import BOUNDS, Draw, DrawnColumn
from anabranch.testing.fuzz.texts import WORDS
from anabranch.testing.fuzz.times import DAYS, STAMPS

POLARS: dict[str, pl.DataType] = {
    "i8": pl.Int8(), "i16": pl.Int16(), "i32": pl.Int32(), "i64": pl.Int64(), "u8": pl.UInt8(),
    "u16": pl.UInt16(), "u32": pl.UInt32(), "u64": pl.UInt64(), "f32": pl.Float32(),
    "f64": pl.Float64(), "text": pl.String(), "truth": pl.Boolean(), "day": pl.Date(),
    "stamp": pl.Datetime("us"), "d2": pl.Decimal(12, 2), "d4": pl.Decimal(18, 4),
}  # fmt: skip
_WILD_FLOATS = (
    float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e308, -1e308, 5e-324, 1e-9, 16777217.0,
)  # fmt: skip
_BEGIN = dt.datetime(2026, 1, 1)


def values(draw: Draw, column: DrawnColumn, rows: int) -> pl.Series:
    """The values of a column: of few different ones in most, none at all in some."""
    empty = draw.pick((0.0, 0.1, 0.1, 0.5))
    few = [_value(draw, column) for _ in range(draw.randint(1, 12))]
    often = draw.chance(0.7)
    drawn = [
        None if draw.chance(empty) else draw.pick(few) if often else _value(draw, column)
        for _ in range(rows)
    ]
    return pl.Series(column.name, drawn, POLARS[column.kind])


def _value(draw: Draw, column: DrawnColumn) -> Any:
    kind = column.kind
    if kind in BOUNDS:
        least, most = BOUNDS[kind]
        if not column.tame and draw.chance(0.4):
            return draw.pick((least, most, least + 1, most - 1, most // 2, most // 2 + 1))
        return draw.randint(max(least, -20), 100)
    match kind:
        case "f32" | "f64":
            if not column.tame and draw.chance(0.5):
                number = draw.pick(_WILD_FLOATS)
                return (
                    number
                    if kind == "f64" or abs(number) < 1e30 or number in _WILD_FLOATS[:3]
                    else 1.0
                )
            return draw.randint(-400, 400) / 4
        case "text":
            return draw.pick(WORDS)
        case "truth":
            return draw.chance(0.5)
        case "day":
            if draw.chance(0.3):
                return dt.date.fromisoformat(draw.pick(DAYS))
            return (_BEGIN + dt.timedelta(days=draw.randint(-40, 400))).date()
        case "stamp":
            if draw.chance(0.3):
                return dt.datetime.fromisoformat(draw.pick(STAMPS))
            return _BEGIN + dt.timedelta(microseconds=draw.randint(-(10**9), 10**13))
    digits = 2 if kind == "d2" else 4
    return decimal.Decimal(draw.randint(-99999, 99999)).scaleb(-digits)


def moments(draw: Draw, stamps: bool, rows: int, lateness: int) -> pl.Series:
    """Times that grow, out of order by no more than the lateness: no row is late, however files are cut."""
    at = draw.pick((0, 0, -70, 1000))
    step = draw.pick((0, 1, 1, 2, 6))
    drawn = []
    for _ in range(rows):
        at += draw.randint(0, step) + (draw.randint(20, 90) if draw.chance(0.03) else 0)
        drawn.append(at - (draw.randint(0, lateness) if draw.chance(0.5) else 0))
    if not stamps:
        return pl.Series("t", drawn, pl.Int64)
    return pl.Series("t", [_BEGIN + dt.timedelta(seconds=one) for one in drawn], pl.Datetime("us"))
