"""Division of integers and powers, as the dialect of a text has them."""

from __future__ import annotations

from sqlglot import exp

from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.sql.dialect import Scope
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


def not_zero(divisor: Expression) -> Expression:
    """A divisor, NULL in place of zero: so is what Spark divides by zero."""
    if isinstance(divisor, Literal) and divisor.value:
        return divisor
    return Call("case", (divisor == Literal(0), Literal(None), divisor))


def power(tree: exp.BitwiseXor, base: Expression, exponent: Expression, scope: Scope) -> Expression:
    """`x ^ y` as a power; the parser knows it as an operator of bits, which binds less."""
    for side in (tree.this, tree.expression):
        if isinstance(side, (exp.Binary, exp.Unary)) and not isinstance(side, (exp.Paren, exp.Dot)):
            raise scope.error(
                "^ is a power here, among other operators: write POWER(x, y), or parentheses.", side
            )
    return Call("power", (base, exponent))
