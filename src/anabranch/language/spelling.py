"""How a call is written in SQL: words and signs, and its arguments among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

INFIX = (
    "+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "=", "<>", "<", "<=", ">", ">=",
)  # fmt: skip
"""The functions that stand between their arguments, as they are written."""
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
    return [f"{function.upper()}(", *_listed(arguments), ")"]


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
