"""Functions of times as other systems call them, made of those there are."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Callable, Mapping, Sequence

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.functions import TRUNCATIONS
from anabranch.language.kinds import type_words
from anabranch.language.sql.dialect import Scope
from anabranch.language.time_formats import from_java, from_postgres, from_strftime
from anabranch.language.window import duration

Arguments = Sequence[Expression]
Rewrite = Callable[[Arguments, Scope], Expression]

ORIGIN = dt.datetime(2000, 1, 3)
"""Where DuckDB and TimescaleDB begin to count stretches of time_bucket: a Monday."""
_EPOCH = dt.datetime(1970, 1, 1)
_UNIT_MICROSECONDS = {
    "microsecond": 1, "millisecond": 1000, "second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6,
    "day": 86400 * 10**6, "week": 7 * 86400 * 10**6,
}  # fmt: skip
_UNIT_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def text_constant(argument: Expression, what: str) -> str:
    """The text that an argument is; an error if it is none."""
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise LanguageError(f"{what} must be a constant text, got {argument}.")
    return argument.value


def format_of(argument: Expression, scope: Scope, reading: bool = False) -> Literal:
    """A format of times as it is used here: strftime's, Java's or PostgreSQL's, told by its letters."""
    written = text_constant(argument, "a format of times")
    if "%" in written:
        return Literal(from_strftime(written, reading))
    postgres = scope.spelling.name in ("postgres", "risingwave")
    if postgres or re.search(r"YYYY|HH24|DD|MI", written):
        made = from_postgres(written)
    else:
        made = from_java(written)
    return Literal(re.sub(r"\.%\df", "%.f", made) if reading else made)


def _strftime(arguments: Arguments, scope: Scope) -> Expression:
    time, written = arguments
    if isinstance(time, Literal) and isinstance(time.value, str):
        time, written = written, time
    return Call("strftime", (_timestamp(time, scope), format_of(written, scope)))


def _timestamp(time: Expression, scope: Scope) -> Expression:
    return time.cast("timestamp") if scope.kind(time) == pl.Date else time


def _to_timestamp(arguments: Arguments, scope: Scope) -> Expression:
    value, *rest = arguments
    if not rest:
        number = scope.kind(value).is_numeric()
        return Call("from_epoch", (value,)) if number else value.cast("timestamp")
    return Call("strptime", (value, format_of(rest[0], scope, reading=True)))


def _to_date(arguments: Arguments, scope: Scope) -> Expression:
    value, *rest = arguments
    if not rest:
        return value.cast("date")
    return Call("strpdate", (value, format_of(rest[0], scope, reading=True)))


def _from_unixtime(arguments: Arguments, scope: Scope) -> Expression:
    written = format_of(arguments[1], scope) if len(arguments) > 1 else Literal("%Y-%m-%d %H:%M:%S")
    return Call("strftime", (Call("from_epoch", (arguments[0],)), written))


def _unix_timestamp(arguments: Arguments, scope: Scope) -> Expression:
    value, *rest = arguments
    if rest:
        value = Call("strptime", (value, format_of(rest[0], scope, reading=True)))
    return Call("//", (Call("epoch_us", (_timestamp(value, scope),)), Literal(10**6)))


def time_bucket(arguments: Arguments, scope: Scope) -> Expression:
    """`time_bucket(width, time[, origin, offset or zone])`; a width of months is that of a calendar."""
    width, time, *rest = arguments
    if scope.kind(time).is_integer():
        if rest:
            raise LanguageError("TIME_BUCKET of a number takes a width and the number.")
        return Call("*", (Call("//", (time, width)), width))
    time = _timestamp(time, scope)
    length = _length(width)
    zoned = rest and isinstance(rest[0], Literal) and isinstance(rest[0].value, str)
    months = length if isinstance(length, str) else ""
    if months or (zoned and length == dt.timedelta(days=1)):
        unit = Literal(months or "day")
        return date_trunc([unit, time, *rest], scope)
    assert isinstance(length, dt.timedelta)
    origin = (ORIGIN - _EPOCH) % length
    if rest:
        value = rest[0].value if isinstance(rest[0], Literal) else None
        if isinstance(value, dt.timedelta):
            origin += value
        elif isinstance(value, dt.datetime):
            origin = value - _EPOCH
        elif isinstance(value, dt.date):
            origin = dt.datetime(value.year, value.month, value.day) - _EPOCH
        else:
            raise LanguageError(
                f"TIME_BUCKET takes an origin (TIMESTAMP '…') or an offset (INTERVAL '…') last, got "
                f"{rest[0]}. Days of a time zone: TIME_BUCKET('1 day', ts, 'Europe/Berlin')."
            )
    return Call("time_bucket", (Literal(length), time, Literal(origin % length)))


def _length(width: Expression) -> dt.timedelta | str:
    """A width; the name of a unit of date_trunc for whole months, quarters and years."""
    value = width.value if isinstance(width, Literal) else None
    if isinstance(value, dt.timedelta) and value > dt.timedelta():
        return value
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d{1,9})\s*(month|mon|quarter|year)s?\s*", value.lower())
        if found:
            scale = {"year": 12, "quarter": 3}.get(found[2], 1)
            known = {1: "month", 3: "quarter", 12: "year"}
            months = int(found[1]) * scale
            if months not in known:
                raise LanguageError(
                    f"TIME_BUCKET of {months} months is not available: 1 month, 3 months or 1 year are."
                )
            return known[months]
        return dt.timedelta(microseconds=duration(value, True, "the width of TIME_BUCKET"))
    raise LanguageError(f"TIME_BUCKET takes a width such as INTERVAL '1 hour' first, got {width}.")


def date_trunc(arguments: Arguments, scope: Scope) -> Expression:
    """`date_trunc(unit, time[, zone])`; with a zone, days begin at its midnight."""
    unit, time, *rest = arguments
    name = text_constant(unit, "the unit of DATE_TRUNC").lower()
    name = {"mon": "month", "mm": "month", "yyyy": "year", "dd": "day"}.get(name, name)
    if not rest:
        return Call("date_trunc", (Literal(name), _timestamp(time, scope)))
    zone = zone_named(rest[0])
    if name not in TRUNCATIONS:
        raise LanguageError(f"DATE_TRUNC has no unit '{name}': expected {', '.join(TRUNCATIONS)}.")
    kind = scope.kind(time)
    naive = not isinstance(kind, pl.Datetime) or kind.time_zone is None
    moment = Call("to_zone", (_timestamp(time, scope), Literal("UTC"))) if naive else time
    local = Call("local_trunc", (Literal(TRUNCATIONS[name]), moment, Literal(zone)))
    return Call("at_zone", (local, Literal("UTC"))) if naive else local


def zone_named(argument: Expression) -> str:
    """The time zone that an argument names; an error if there is no such zone."""
    zone = text_constant(argument, "a time zone")
    if zone not in zoneinfo.available_timezones():
        raise LanguageError(
            f"there is no time zone '{zone}': expected one such as 'Europe/Berlin'."
        )
    return zone


def at_time_zone(time: Expression, zone: str, scope: Scope) -> Expression:
    """`time AT TIME ZONE zone`: a local time becomes a moment, a moment a local time."""
    kind = scope.kind(time)
    if not isinstance(kind, pl.Datetime):
        raise LanguageError(f"AT TIME ZONE needs a timestamp, but {time} is {type_words(kind)}.")
    return Call("to_zone" if kind.time_zone is None else "at_zone", (time, Literal(zone)))


def _date_diff(arguments: Arguments, scope: Scope) -> Expression:
    if len(arguments) == 2:
        # Of dates: a day counts as soon as it has begun, in Spark too
        late, early = arguments
        return _borders("day", [_timestamp(time, scope) for time in (early, late)])
    unit, early, late = arguments
    name = text_constant(unit, "the unit of DATE_DIFF").lower().rstrip("s")
    times = [_timestamp(time, scope) for time in (early, late)]
    if scope.spelling.name == "spark" and name in (*_UNIT_MICROSECONDS, *_UNIT_MONTHS):
        return _whole_units(name, times[0], times[1])
    return _borders(name, times)


def _borders(name: str, times: list[Expression]) -> Expression:
    """The borders of units between two times."""
    if name in _UNIT_MONTHS:
        months = [
            Call("+", (Call("*", (Call("year", (time,)), Literal(12))), Call("month", (time,))))
            for time in times
        ]
        numbers = [
            Call("//", (Call("-", (one, Literal(1))), Literal(_UNIT_MONTHS[name])))
            for one in months
        ]
        return Call("-", (numbers[1], numbers[0]))
    if name not in _UNIT_MICROSECONDS:
        raise LanguageError(
            f"DATE_DIFF has no unit '{name}': expected {', '.join(_UNIT_MICROSECONDS)}."
        )
    # Weeks begin on Monday, and 1970 began on a Thursday
    shift = 3 * _UNIT_MICROSECONDS["day"] if name == "week" else 0
    counted = [
        Call(
            "//",
            (
                Call("+", (Call("epoch_us", (time,)), Literal(shift))),
                Literal(_UNIT_MICROSECONDS[name]),
            ),
        )
        for time in times
    ]
    return Call("-", (counted[1], counted[0]))


def _whole_units(name: str, early: Expression, late: Expression) -> Expression:
    """The whole units between two times, as Spark counts them; others count the borders between."""
    clocks = [Call("epoch_us", (time,)) for time in (early, late)]
    if name in _UNIT_MICROSECONDS:
        return _cut_off(Call("-", (clocks[1], clocks[0])), _UNIT_MICROSECONDS[name])
    first, last = early.cast("date"), late.cast("date")
    begun, ended = (Call("%", (one, Literal(_UNIT_MICROSECONDS["day"]))) for one in clocks)
    # A day that is not whole does not count, so that a month to it may not be whole either
    short, over = (last > first) & (ended < begun), (last < first) & (ended > begun)
    whole = Call(
        "case",
        (short, Call("add_days", (last, Literal(-1))), over, Call("add_days", (last, Literal(1))), last),
    )  # fmt: skip
    # 32 days for each month: a month is whole when as many of them as it takes lie between
    places = [
        (Call("year", (day,)) * 12 + Call("month", (day,))) * 32 + Call("day", (day,))
        for day in (first, whole)
    ]
    return _cut_off(Call("-", (places[1], places[0])), 32 * _UNIT_MONTHS[name])


def _cut_off(number: Expression, size: int) -> Expression:
    down = Call("//", (number, Literal(size)))
    up = Call("negate", (Call("//", (Call("negate", (number,)), Literal(size))),))
    return Call("case", (number < 0, up, down))


def _add_days(sign: int) -> Rewrite:
    def add(arguments: Arguments, scope: Scope) -> Expression:
        day, count = arguments
        if isinstance(count, Literal) and isinstance(count.value, dt.timedelta):
            return Call("+" if sign > 0 else "-", (_timestamp(day, scope), count))
        return Call("add_days", (day.cast("date"), Literal(sign) * count))

    return add


def _dayofweek(arguments: Arguments, scope: Scope) -> Expression:
    day = Call("dow", tuple(arguments))
    first = scope.spelling.least_date_part
    return Call("+", (day, Literal(first))) if first else day


def _weekday(arguments: Arguments, scope: Scope) -> Expression:
    if scope.spelling.name == "spark":
        return Call("-", (Call("isodow", tuple(arguments)), Literal(1)))
    return Call("dow", tuple(arguments))


TIME_REWRITES: Mapping[str, tuple[int, int, Rewrite]] = {
    "strftime": (2, 2, _strftime), "date_format": (2, 2, _strftime), "to_char": (2, 2, _strftime),
    "to_timestamp": (1, 2, _to_timestamp), "strptime": (2, 2, _to_timestamp), "to_date": (1, 2, _to_date),
    "from_unixtime": (1, 2, _from_unixtime), "unix_timestamp": (1, 2, _unix_timestamp),
    "to_unix_timestamp": (1, 2, _unix_timestamp), "date": (1, 1, _to_date),
    "time_bucket": (2, 3, time_bucket), "date_bin": (2, 3, time_bucket), "date_trunc": (2, 3, date_trunc),
    "datetrunc": (2, 3, date_trunc), "date_diff": (2, 3, _date_diff), "datediff": (2, 3, _date_diff),
    "date_add": (2, 2, _add_days(1)), "date_sub": (2, 2, _add_days(-1)),
    "dayofweek": (1, 1, _dayofweek), "weekday": (1, 1, _weekday),
}  # fmt: skip
"""The least and the most arguments of each, and what it stands for."""
