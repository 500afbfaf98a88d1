"""How far apart in time the rows that meet in a join can be, as its conditions say.

All times are counted as stream time: the number of a window times its length. A condition between the
times of two inputs (`b.time <= a.time + 60`, `S1.tb = S2.tb + 1`, `a.time // 60 = S.tb`, `abs(a.time -
b.time) < 9`) bounds their difference; what follows from several of them together is found by adding them
up along the way from one input to the other.
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anabranch.language.expression import Call, Column, Expression, Literal
from anabranch.language.window import LONGEST

Bounds = tuple[tuple[int | None, ...], ...]
"""`bounds[i][j]`: how much later than a row of input i one of input j can be; None: no limit."""

FARTHEST = LONGEST
"""Rows that may be further apart than this might as well be any time apart; and times do not overflow."""

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


@dataclass(frozen=True)
class Telling:
    """What a number tells of an input's time: it lies in [number * unit + low, number * unit + high]."""

    input: int
    unit: int
    low: int = 0
    high: int = 0

    def plus(self, number: int) -> Telling:
        """What it tells when `number` has been added to it."""
        shift = number * self.unit
        return replace(self, low=self.low - shift, high=self.high - shift)

    def divided(self, number: int) -> Telling:
        high = self.high + (number - 1) * self.unit
        return replace(self, unit=self.unit * number, high=high)


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The conditions that must all hold."""
    conditions: list[Expression] = []
    waiting = [] if condition is None else [condition]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Call) and part.function == "&":
            waiting += reversed(part.arguments)
        else:
            conditions.append(part)
    return conditions


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """One condition that holds if all do; None if there are none."""
    if not conditions:
        return None
    return functools.reduce(lambda left, right: Call("&", (left, right)), conditions)


def bounds_of(
    inputs: int, conditions: Sequence[Expression], columns: Mapping[str, Telling]
) -> tuple[Bounds, list[Expression]]:
    """The bounds between all inputs, and the conditions that these bounds do not say in full.

    `columns` has what the columns of the joined rows tell of time.
    """
    most: list[list[int | None]] = [[None] * inputs for _ in range(inputs)]
    rest = []
    for condition in conditions:
        exact = False
        for earlier, later, distance, precise in _limits(condition, columns):
            if abs(distance) > FARTHEST:
                exact = False
                break
            known = most[earlier][later]
            most[earlier][later] = distance if known is None else min(known, distance)
            exact = precise
        if not exact:
            rest.append(condition)
    for through in range(inputs):
        for start in range(inputs):
            for end in range(inputs):
                legs = most[start][through], most[through][end]
                if start != end and legs[0] is not None and legs[1] is not None:
                    known, around = most[start][end], legs[0] + legs[1]
                    if abs(around) > FARTHEST:
                        continue
                    most[start][end] = around if known is None else min(known, around)
    return tuple(map(tuple, most)), rest


def _limits(
    condition: Expression, columns: Mapping[str, Telling]
) -> Iterator[tuple[int, int, int, bool]]:
    """(i, j, d, exact): rows of input j are at most d later than those of i, by this condition."""
    match condition:
        case Call(sign, (Call("abs", (inner,)), Literal(value))) if sign in ("<", "<="):
            size = _number(value)
            if size is not None:
                yield from _compared(inner, sign, Literal(size), columns)
                yield from _compared(inner, _MIRRORED[sign], Literal(-size), columns)
        case Call(sign, (Literal() as size, Call("abs") as inner)) if sign in (">", ">="):
            yield from _limits(Call(_MIRRORED[sign], (inner, size)), columns)
        case Call(sign, (left, right)) if sign in _MIRRORED:
            yield from _compared(left, sign, right, columns)


def _compared(
    left: Expression, sign: str, right: Expression, columns: Mapping[str, Telling]
) -> Iterator[tuple[int, int, int, bool]]:
    found = _summed(Call("-", (left, right)), 1, columns)
    if found is None or len(found[0]) != 2:
        return
    (first, one), (second, other) = found[0]
    if first < second:
        one, other = other, one
    if first == second or one.input == other.input or one.unit != other.unit:
        return
    # one + constant (sign) other, for the numbers that tell the times
    one = one.plus(found[1])
    exact = one.low == one.high and other.low == other.high
    if sign in ("<", "<=", "="):
        yield (other.input, one.input, _most(one, sign, other), exact)
    if sign in (">", ">=", "="):
        yield (one.input, other.input, _most(other, sign, one), exact)


def _most(later: Telling, sign: str, earlier: Telling) -> int:
    """How much later the one can be that is less (or equal, if so told) in numbers."""
    return later.high - earlier.low - (later.unit if sign in ("<", ">") else 0)


def _summed(
    expression: Expression, sign: int, columns: Mapping[str, Telling]
) -> tuple[list[tuple[int, Telling]], int] | None:
    """The tellings in a sum with their signs, and the constant; None if there is anything else."""
    match expression:
        case Column(name) if name in columns:
            return [(sign, columns[name])], 0
        case Literal(value):
            number = _number(value)
            return None if number is None else ([], sign * number)
        case Call("negate", (inner,)):
            return _summed(inner, -sign, columns)
        case Call("+" | "-" as way, (left, right)):
            one = _summed(left, sign, columns)
            other = _summed(right, sign if way == "+" else -sign, columns)
            return one and other and ([*one[0], *other[0]], one[1] + other[1])
        case Call("//", (inner, Literal(int(number)))) if type(number) is int and number > 0:
            below = _summed(inner, 1, columns)
            if below and len(below[0]) == 1 and below[0][0][0] == 1:
                return [(sign, below[0][0][1].plus(below[1]).divided(number))], 0
    return None


def _number(value: object) -> int | None:
    """A constant in the unit of time."""
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    return value if type(value) is int else None
