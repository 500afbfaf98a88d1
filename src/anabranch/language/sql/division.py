"""Division of integers, as the dialect of a text has it."""

from __future__ import annotations

from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.sql.spelling import Spelling


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
