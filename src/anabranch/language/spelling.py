"""How a call is written in SQL: words and signs, and its arguments among them."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Sequence
from typing import Any

from anabranch.language.decimals import Pointed

INFIX = (
    "+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "=", "<>", "<", "<=", ">", ">=",
)  # fmt: skip
"""The functions that stand between their arguments, as they are written."""
INTERNAL = frozenset(
    ("round_away", "round_digits", "initcap_words", "position_of", "field", "json_text", "strpdate",
     "add_days", "local_trunc", "to_zone", "at_zone", "is_distinct", "negate")
)  # fmt: skip
"""Functions that nobody calls by name."""
COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})


def spelled(function: str, arguments: Sequence[Any]) -> list[Any]:
    """The words of a call, with the arguments themselves where each is to be written."""
    operands = [_operand(argument) for argument in arguments]
    match function:
        case sign if sign in INFIX:
            return _joined(operands, f" {sign} ")
        case "is_null":
            return [*operands[0], " IS NULL"]
        case "is_not_null":
            return [*operands[0], " IS NOT NULL"]
        case "is_distinct":
            return _joined(operands, " IS DISTINCT FROM ")
        case "like":
            return _joined(operands, " LIKE ")
        case "not":
            return ["NOT (", arguments[0], ")"]
        case "negate":
            return ["-", *operands[0]]
        case "in":
            return [*operands[0], " IN (", *_listed(arguments[1:]), ")"]
        case "cast" | "try_cast":
            return [f"{function.upper()}(", arguments[0], f" AS {arguments[1].value})"]
        case "case":
            pairs = zip(arguments[0:-1:2], arguments[1:-1:2], strict=True)
            branches = [["WHEN ", when, " THEN ", then] for when, then in pairs]
            return ["CASE ", *_joined(branches, " "), " ELSE ", arguments[-1], " END"]
        case "round_away":
            # Told apart from ROUND, for what is written alike is taken to be alike
            return ["ROUND(", *_listed(arguments), " AWAY FROM ZERO)"]
        case "round_digits":
            return ["ROUND(", *_listed(arguments), " AS WRITTEN)"]
        case "initcap_words":
            return ["INITCAP(", *_listed(arguments), ", ' ')"]
        case "field":
            return [*_operand(arguments[0]), f".{arguments[1].value}"]
        case "list":
            return ["[", *_listed(arguments), "]"]
        case "struct":
            pairs = zip(arguments[0::2], arguments[1::2], strict=True)
            return ["{", *_joined([[name, ": ", value] for name, value in pairs], ", "), "}"]
        case "to_zone" | "at_zone":
            return _joined(operands, " AT TIME ZONE ")
        case "local_trunc":
            unit, time, zone = arguments
            return [f"DATE_TRUNC('{_UNITS.get(unit.value, unit.value)}', ", time, ", ", zone, ")"]
    return [f"{shown_name(function)}(", *_listed(arguments), ")"]


_UNITS = {"1s": "second", "1m": "minute", "1h": "hour", "1d": "day", "1w": "week", "1mo": "month",
          "1q": "quarter", "1y": "year"}  # fmt: skip
_SHOWN = {
    "round_away": "ROUND", "round_digits": "ROUND", "initcap_words": "INITCAP", "position_of": "STRPOS",
    "json_text": "JSON_EXTRACT_STRING", "strpdate": "TO_DATE", "add_days": "DATE_ADD",
    "local_trunc": "DATE_TRUNC", "to_zone": "AT TIME ZONE", "at_zone": "AT TIME ZONE", "is_null": "IS NULL",
    "is_not_null": "IS NOT NULL", "is_distinct": "IS DISTINCT FROM", "negate": "-", "list": "[…]",
    "struct": "{…}", "try_cast": "TRY_CAST",
}  # fmt: skip
"""Functions that texts write in another way than we call them."""


def shown_name(function: str) -> str:
    """What a function is called in SQL."""
    return _SHOWN.get(function, function.upper())


def _operand(argument: Any) -> list[Any]:
    infix = getattr(argument, "function", None) in INFIX
    return ["(", argument, ")"] if infix else [argument]


def _listed(arguments: Iterable[Any]) -> list[Any]:
    return _joined([[argument] for argument in arguments], ", ")


def _joined(groups: Iterable[Sequence[Any]], sign: str) -> list[Any]:
    words: list[Any] = []
    for number, group in enumerate(groups):
        words += [sign, *group] if number else group
    return words


_TYPED: dict[type, str] = {
    bytes: "BLOB", dt.date: "DATE", dt.datetime: "TIMESTAMP", dt.time: "TIME", dt.timedelta: "INTERVAL",
    decimal.Decimal: "DECIMAL",
}  # fmt: skip
"""What stands before the text of a constant that is no text."""


def told_constant(value: Any) -> str:
    """A constant as SQL writes it."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, Pointed)):
        return f"{value:f}" if isinstance(value, Pointed) else str(value)
    if isinstance(value, float):
        # As SQL tells a float from a number of so many digits
        shown = repr(value)
        return shown if set(shown) & set("ein") else f"{shown}e0"
    text = _length(value) if isinstance(value, dt.timedelta) else str(value)
    quoted = "'" + text.replace("'", "''") + "'"
    # Texts tell expressions apart: what is written alike must be alike
    return f"{_TYPED[type(value)]} {quoted}" if type(value) in _TYPED else quoted


def _length(value: dt.timedelta) -> str:
    """`90 days`, `1 day 2:30:00`."""
    if value < dt.timedelta():
        return f"{value // dt.timedelta(microseconds=1)} microseconds"
    return str(value).replace(", 0:00:00", "").replace(",", "")
