"""Division of integers, as the dialect of a text has it."""

from __future__ import annotations

from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.sql.spelling import Spelling


def remainder(left: Expression, right: Expression, whole: bool, spelling: Spelling) -> Expression:
    """`%` of two numbers, which are integers if `whole`: never below zero here, as `left` in dialects."""
    if whole or spelling.floors:
        return divided("%", left, right, spelling)
    # A constant keeps its digits beside decimals
    kept = isinstance(right, Literal) and right.value is not None and right.value >= 0  # type: ignore[operator]
    size = right if kept else Call("abs", (right,))
    above, below = Call("%", (left, size)), Call("%", (Call("negate", (left,)), size))
    return Call("case", (Call("<", (left, Literal(0))), Call("negate", (below,)), above))


def divided(sign: str, left: Expression, right: Expression, spelling: Spelling) -> Expression:
    """`/` or `%` of two integers: rounded down here, a fraction in some dialects, cut off in others."""
    if sign == "/" and spelling.fractions:
        return Call("/", (left, right))
    down, rest = Call("//", (left, right)), Call("%", (left, right))
    if spelling.floors:
        return down if sign == "/" else rest
    # Rounded down and cut off differ by one where there is a rest and just one of the two is below zero
    below = [Call("<", (side, Literal(0))) for side in (left, right)]
    apart = Call("&", (Call("<>", (rest, Literal(0))), Call("is_distinct", (below[0], below[1]))))
    if sign == "/":
        return Call("case", (apart, Call("+", (down, Literal(1))), down))
    return Call("case", (apart, Call("-", (rest, right)), rest))
