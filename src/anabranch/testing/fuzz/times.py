"""Random timestamps and dates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anabranch.testing.fuzz.draw import Both, Draw

if TYPE_CHECKING:
    from anabranch.testing.fuzz.writer import ExpressionWriter

STAMPS = (
    "2026-01-31 12:00:00", "1969-12-31 23:59:59.999999", "2000-02-29 00:00:00", "2026-01-01 00:00:30.25",
    "1900-01-01 00:00:00", "2100-12-31 23:59:59",
)  # fmt: skip
DAYS = ("2026-01-31", "1969-12-31", "2000-02-29", "1900-01-01", "2100-12-31")


def stamp(draw: Draw) -> Both:
    text = f"TIMESTAMP '{draw.pick(STAMPS)}'"
    return Both(text, text, "stamp")


def day(draw: Draw) -> Both:
    text = f"DATE '{draw.pick(DAYS)}'"
    return Both(text, text, "day")


def length(draw: Draw) -> str:
    return f"INTERVAL '{draw.randint(1, 90)} {draw.pick(('seconds', 'minutes', 'hours', 'days'))}'"


def computed_stamp(writer: ExpressionWriter, depth: int) -> Both:
    draw = writer.draw
    form = draw.randrange(4)
    if form == 0 and writer.known("day"):
        date = writer.of("day", depth)
        return Both(f"CAST({date.ours} AS TIMESTAMP)", f"CAST({date.duck} AS TIMESTAMP)", "stamp")
    at = writer.of("stamp", depth)
    if form == 1:
        unit = draw.pick(("second", "minute", "hour", "day", "week", "month", "quarter", "year"))
        return Both(
            f"DATE_TRUNC('{unit}', {at.ours})",
            f"CAST(date_trunc('{unit}', {at.duck}) AS TIMESTAMP)",
            "stamp",
        )
    span, sign = length(draw), draw.pick("+-")
    return Both(f"({at.ours} {sign} {span})", f"({at.duck} {sign} {span})", "stamp")


def computed_day(writer: ExpressionWriter, depth: int) -> Both:
    if writer.known("stamp") and writer.draw.chance(0.5):
        at = writer.of("stamp", depth)
        return Both(f"CAST({at.ours} AS DATE)", f"CAST({at.duck} AS DATE)", "day")
    return writer.leaf("day")
