"""How far a computed column can be from the ordered attribute that it is computed of.

`date_trunc('day', ts)` is at most a day before `ts`, `window_end` at most a window after it. So such a column
tells the time, too: a group by it can close, and rows that a join matches by it are so far apart at most.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
import zoneinfo
from collections.abc import Mapping

import polars as pl

from anabranch.language.expression import Call, Column, Expression, Literal
from anabranch.language.order import Near, Ordered
from anabranch.language.window import LONGEST

Span = tuple[int, int]
"""How much later than the ordered attribute a value can be, in stream time: at least and at most."""

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
_LONGEST_UNITS = {
    "second": 1_000_000, "minute": 60_000_000, "hour": _HOUR, "day": _DAY, "week": 7 * _DAY,
    "month": 31 * _DAY, "quarter": 92 * _DAY, "year": 366 * _DAY,
}  # fmt: skip
_CLOCK_CHANGE = 2 * _HOUR
"""How much longer than its length by the clock a stretch of local time can be."""
_ZONE_YEARS = (1900, 2100)
_ZONE_MARGIN = _HOUR


def near_of(
    name: str, expression: Expression, ordered: Ordered, schema: Mapping[str, pl.DataType]
) -> Near | None:
    """What a column of this name tells of the time, if it is computed of the ordered attribute."""
    if ordered.unit is None:
        return None
    span = span_of(expression, ordered, schema)
    if span is None or max(map(abs, span)) > LONGEST:
        return None
    return Near(name, ordered.unit, *span)


def span_of(
    expression: Expression, ordered: Ordered, schema: Mapping[str, pl.DataType]
) -> Span | None:
    """How far from the ordered attribute the values of an expression are; None if that is not known."""
    assert ordered.unit is not None
    match expression:
        case Column(name) if name == ordered.column:
            return 0, 0
        case Column(name):
            known = next((near for near in ordered.near if near.column == name), None)
            same = known is not None and known.unit == ordered.unit
            return (known.low, known.high) if known and same else None
        case Call("+", (inner, Literal(amount))) | Call("+", (Literal(amount), inner)):
            return _shifted(span_of(inner, ordered, schema), _number(amount), ordered)
        case Call("-", (inner, Literal(amount))):
            number = _number(amount)
            back = None if number is None else -number
            return _shifted(span_of(inner, ordered, schema), back, ordered)
        case Call("*", (Call("//", (inner, Literal(int(size)))), Literal(int(times)))) if (
            size == times > 0 and not ordered.timestamps
        ):
            return _back(span_of(inner, ordered, schema), (size - 1) * ordered.unit)
        case Call("time_bucket", (Literal(width), inner, *_)):
            number = _number(width)
            return _back(span_of(inner, ordered, schema), number - 1) if number else None
        case Call("date_trunc", (Literal(str(unit)), inner)):
            kind = schema.get(inner.name) if isinstance(inner, Column) else None
            local = not isinstance(kind, pl.Datetime) or kind.time_zone is not None
            return _back(span_of(inner, ordered, schema), _unit(unit, local))
        case Call("local_trunc", (Literal(str(unit)), inner, _)):
            return _back(span_of(inner, ordered, schema), _unit(_TRUNCATED[unit], True))
        case Call("at_zone" | "to_zone" as way, (inner, Literal(str(zone)))):
            return _zoned(span_of(inner, ordered, schema), zone, way == "to_zone")
    return None


def numbered_by(
    expression: Expression, ordered: Ordered, schema: Mapping[str, pl.DataType]
) -> tuple[int, pl.DataType] | None:
    """The length of what an expression numbers, and the type of its numbers: days for CAST(ts AS DATE).

    Hours for `floor(epoch(ts) / 3600)` and `CAST(epoch(ts) AS BIGINT) // 3600`.
    """
    if not ordered.timestamps or ordered.unit != 1:
        return None
    kind = schema.get(ordered.column)
    match expression:
        case Call("cast", (Column(name), Literal("date"))) if name == ordered.column:
            local = isinstance(kind, pl.Datetime) and kind.time_zone is not None
            return None if local else (_DAY, pl.Date())
        case Call("//", (inner, Literal(int(size)))) if size > 0 and _is_epoch(inner, ordered):
            whole = isinstance(inner, Call) and inner.function == "cast"
            return size * 1_000_000, pl.Int64() if whole else pl.Float64()
        case Call("floor", (Call("/", (inner, Literal(int(size)))),)) if size > 0 and _is_epoch(
            inner, ordered
        ):
            return size * 1_000_000, pl.Float64()
    return None


_WRITTEN = {
    "year": ("Y",), "month": ("m", "b", "B"), "day": ("d",), "hour": ("H",), "minute": ("M",),
    "second": ("S",),
}  # fmt: skip
"""The parts of a time that a format can have, from the greatest on, and the letters of each."""


def written_unit(expression: Expression, ordered: Ordered) -> str | None:
    """The unit that a text of the time tells: `day` for strftime(ts, '%Y-%m-%d'); None if it tells none."""
    match expression:
        case Call("strftime", (Column(name), Literal(str(form)))) if name == ordered.column:
            letters = set(re.findall(r"%-?\d?([A-Za-z])", form))
            told = [bool(letters & set(known)) for known in _WRITTEN.values()]
            count = told.index(False) if False in told else len(told)
            # Nothing finer than what all greater parts are there for: '%H' alone tells no hour of a day
            if count and not any(told[count:]) and "f" not in letters:
                return list(_WRITTEN)[count - 1]
    return None


def _is_epoch(expression: Expression, ordered: Ordered) -> bool:
    match expression:
        case Call("epoch", (Column(name),)):
            return name == ordered.column
        case Call("cast", (inner, Literal("int64" | "bigint" | "long"))):
            return (
                isinstance(inner, Call) and inner.function == "epoch" and _is_epoch(inner, ordered)
            )
    return False


_TRUNCATED = {
    "1s": "second", "1m": "minute", "1h": "hour", "1d": "day", "1w": "week", "1mo": "month",
    "1q": "quarter", "1y": "year",
}  # fmt: skip


def _unit(unit: str, local: bool) -> int:
    return _LONGEST_UNITS[unit] - 1 + (_CLOCK_CHANGE if local else 0)


def _back(span: Span | None, most: int) -> Span | None:
    return span and (span[0] - most, span[1])


def _shifted(span: Span | None, number: int | None, ordered: Ordered) -> Span | None:
    if span is None or number is None or ordered.unit is None:
        return None
    return span[0] + number * ordered.unit, span[1] + number * ordered.unit


def _zoned(span: Span | None, zone: str, to: bool) -> Span | None:
    if span is None:
        return None
    least, most = offsets_of(zone)
    return (span[0] - most, span[1] - least) if to else (span[0] + least, span[1] + most)


@functools.lru_cache(maxsize=64)
def offsets_of(zone: str) -> Span:
    """The least and the greatest offset of a zone from UTC, in microseconds, with a margin."""
    if zone == "UTC":
        return 0, 0
    known = zoneinfo.ZoneInfo(zone)
    first, last = (dt.datetime(year, 1, 1) for year in _ZONE_YEARS)
    weeks = range((last - first).days // 7)
    offsets = {(first + dt.timedelta(weeks=n)).replace(tzinfo=known).utcoffset() for n in weeks}
    told = [offset // dt.timedelta(microseconds=1) for offset in offsets if offset is not None]
    return min(told) - _ZONE_MARGIN, max(told) + _ZONE_MARGIN


def _number(value: object) -> int | None:
    """A constant in the unit of time."""
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return value if type(value) is int else None
