"""How a call is written in SQL: words and signs, and its arguments among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

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
