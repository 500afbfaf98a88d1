"""Functions of times beyond their parts: buckets, zones, texts of times and times from texts.

Every function takes Polars expressions, its constants as plain values (`CONSTANTS` in `functions.py`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping

import polars as pl

NO_TIME = dt.timedelta()
_MICROSECOND = dt.timedelta(microseconds=1)


def time_bucket(width: dt.timedelta, time: pl.Expr, offset: dt.timedelta = NO_TIME) -> pl.Expr:
    """The beginning of the stretch of this width that a time lies in; stretches begin at the offset."""
    into = (time.dt.epoch("us") - offset // _MICROSECOND) % (width // _MICROSECOND)
    # Taken away from the time, so that its zone stays
    return time - pl.duration(microseconds=into)


def _local_trunc(unit: str, time: pl.Expr, zone: str) -> pl.Expr:
    return time.dt.convert_time_zone(zone).dt.truncate(unit)


def _to_zone(time: pl.Expr, zone: str) -> pl.Expr:
    """A local time as the moment it is in a zone: the later of two, the next hour's if there is none."""
    known = time.dt.replace_time_zone(zone, ambiguous="latest", non_existent="null")
    later = (time + pl.duration(hours=1)).dt.replace_time_zone(
        zone, ambiguous="latest", non_existent="null"
    )
    return pl.coalesce(known, later)


TIMES: Mapping[str, Callable[..., pl.Expr]] = {
    "time_bucket": time_bucket,
    "local_trunc": _local_trunc,
    "to_zone": _to_zone,
    "at_zone": lambda a, zone: a.dt.convert_time_zone(zone).dt.replace_time_zone(None),
    "strftime": lambda a, form: a.dt.to_string(form),
    "strptime": lambda a, form: a.str.to_datetime(form, time_unit="us", strict=True),
    "try_strptime": lambda a, form: a.str.to_datetime(form, time_unit="us", strict=False),
    "strpdate": lambda a, form: a.str.to_date(form, strict=True),
    "epoch_us": lambda a: a.dt.epoch("us"),
    "epoch_ms": lambda a: a.dt.epoch("us") // 1000,
    # As DuckDB's to_timestamp: the half of a microsecond goes away from zero
    "from_epoch": lambda a: (
        (a.cast(pl.Float64) * 1e6)
        .round(mode="half_away_from_zero")
        .cast(pl.Int64)
        .cast(pl.Datetime("us"))
    ),
    # In 128 bits, or what is too large would wrap around
    "from_epoch_ms": lambda a: (
        (a.cast(pl.Int64).cast(pl.Int128) * 1000).cast(pl.Int64).cast(pl.Datetime("us"))
    ),
    "from_epoch_us": lambda a: a.cast(pl.Int64).cast(pl.Datetime("us")),
    "add_days": lambda a, days: a + pl.duration(days=days),
    "make_date": lambda year, month, day: pl.date(year, month, day),
    "last_day": lambda a: a.dt.month_end().cast(pl.Date),
    "add_months": lambda a, months: a.dt.offset_by(pl.format("{}mo", months.cast(pl.Int64))),
    "millisecond": lambda a: a.dt.second().cast(pl.Int64) * 1000 + a.dt.millisecond(),
    "microsecond": lambda a: a.dt.second().cast(pl.Int64) * 1_000_000 + a.dt.microsecond(),
    "isodow": lambda a: a.dt.weekday().cast(pl.Int64),
    "isoyear": lambda a: a.dt.iso_year().cast(pl.Int64),
    "monthname": lambda a: a.dt.to_string("%B"),
    "dayname": lambda a: a.dt.to_string("%A"),
}
