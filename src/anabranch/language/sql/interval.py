"""Lengths of time in all their spellings: INTERVAL '10' SECOND, '1 day 2 hours', '1:30' MINUTE TO SECOND."""

from __future__ import annotations

import datetime as dt
import re

from sqlglot import exp

from anabranch.errors import LanguageError, shorten
from anabranch.language.expression import Literal
from anabranch.language.sql.dialect import Scope
from anabranch.language.window import duration

_UNITS = ("day", "hour", "minute", "second")
_MONTHS = {"month": 1, "mon": 1, "quarter": 3, "year": 12}
_CLOCK = re.compile(r"(?:(\d+)\s+(?:days?\s+)?)?(\d+):(\d+)(?::(\d+(?:\.\d{1,6})?))?")
_FRACTION = re.compile(r"(\d*\.\d+)\s*([a-z]+)")


def read_interval(tree: exp.Interval, scope: Scope) -> Literal:
    """A length of time as a constant."""
    written, unit = _written(tree)
    sign = -1 if written.startswith("-") else 1
    text = written.removeprefix("-").removeprefix("+").strip()
    try:
        readings = (read(text, unit) for read in (_spanned, _clock, _fraction))
        # Not by its truth: no time at all is a length too
        length = next((found for found in readings if found is not None), None)
        if length is None:
            length = dt.timedelta(microseconds=duration(f"{text} {unit}", True, "INTERVAL"))
    except LanguageError as error:
        raise scope.error(
            f"{error} Months and years have no fixed length: DATE_TRUNC('month', ts) makes windows of them, "
            "and ts + INTERVAL '1' MONTH moves a time.",
            tree,
        ) from error
    except (OverflowError, ValueError) as error:
        # More than a length of time, or an integer, can be
        raise scope.error(
            f"INTERVAL '{shorten(text, 40)}' is too long to count with.", tree
        ) from error
    return Literal(sign * length)


def months_of(tree: exp.Expr) -> int | None:
    """The months of an interval of whole months, quarters or years; None if it is another."""
    tree = tree.unnest()
    if not isinstance(tree, exp.Interval):
        return None
    written, unit = _written(tree)
    found = re.fullmatch(r"(-?\d{1,9})\s*([a-z]+?)s?", f"{written} {unit}".strip().lower())
    return int(found[1]) * _MONTHS[found[2]] if found and found[2] in _MONTHS else None


def months_text(tree: exp.Interval) -> str:
    """An interval as it is written, with its unit."""
    return " ".join(_written(tree)).strip()


def _written(tree: exp.Interval) -> tuple[str, str]:
    unit = tree.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        shown = f"{unit.this.name} to {unit.expression.name}".lower()
    else:
        shown = str(unit or "").lower()
    value = tree.this
    negative = isinstance(value, exp.Neg)
    inner = value.this if negative else value
    return ("-" if negative else "") + str(inner.this if inner is not None else "").strip(), shown


def _spanned(text: str, unit: str) -> dt.timedelta | None:
    """`1:30` of MINUTE TO SECOND: amounts of all units from the first to the last."""
    first, _, last = unit.partition(" to ")
    if not last:
        return None
    if first not in _UNITS or last not in _UNITS or _UNITS.index(first) > _UNITS.index(last):
        raise LanguageError(f"INTERVAL … {unit.upper()} is not known.")
    units = _UNITS[_UNITS.index(first) : _UNITS.index(last) + 1]
    amounts = re.split(r"[\s:]+", text)
    if len(amounts) != len(units) or not all(re.fullmatch(r"\d+(\.\d+)?", one) for one in amounts):
        raise LanguageError(f"INTERVAL '{text}' has not one amount for each of {', '.join(units)}.")
    return dt.timedelta(
        **{f"{name}s": float(one) for name, one in zip(units, amounts, strict=True)}
    )


def _clock(text: str, unit: str) -> dt.timedelta | None:
    """`01:30:00`, with days before it if there are any."""
    found = _CLOCK.fullmatch(text.lower())
    if not found or unit:
        return None
    days, hours, minutes, seconds = found.groups(default="0")
    return dt.timedelta(
        days=int(days), hours=int(hours), minutes=int(minutes), seconds=float(seconds)
    )


def _fraction(text: str, unit: str) -> dt.timedelta | None:
    """`1.5 seconds`."""
    found = _FRACTION.fullmatch(f"{text} {unit}".strip().lower())
    if not found:
        return None
    whole = duration(f"1 {found[2]}", True, "INTERVAL")
    length = float(found[1]) * whole
    if length != int(length):
        raise LanguageError(f"INTERVAL '{text}' {unit.upper()} is no whole number of microseconds.")
    return dt.timedelta(microseconds=int(length))
