"""What a join may compare, what it calls its columns, and how time on one side bounds time on the other."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping

import polars as pl

from anabranch.language.expression import Call, Column, Expression, Literal

Steps = tuple[tuple[str, int], ...]


def right_names(left: Iterable[str], right: Iterable[str], suffix: str) -> dict[str, str]:
    """What the right side's columns are called beside the left's: `tb`, or `tb_S2` if that is taken.

    >>> right_names(["tb", "n"], ["tb", "m"], "S2")
    {'tb': 'tb_S2', 'm': 'm'}
    """
    taken = set(left)
    return {name: f"{name}_{suffix}" if name in taken else name for name in right}


def comparable(left: pl.DataType, right: pl.DataType) -> bool:
    """Whether an equality of values of these types means something."""
    if pl.Null in (left, right):
        return True
    if isinstance(left, pl.Datetime) and isinstance(right, pl.Datetime):
        return (left.time_zone is None) == (right.time_zone is None)
    return left == right or (left.is_numeric() and right.is_numeric())


def bound_through(left: Expression, right: Expression, times: Mapping[str, str]) -> Steps | None:
    """The steps from the right side's time to the least time of left rows it can meet.

    `times` names the ordered attribute of "left" and "right"; None if the equality is not one of times.

    >>> from anabranch.language.expression import col
    >>> bound_through(col("tb"), col("tb") + 1, {"left": "tb", "right": "tb"})
    (('+', 1),)
    """
    there, back = _steps(right, times["right"]), _steps(left, times["left"])
    if there is None or back is None:
        return None
    return (*there, *(_undo(step) for step in reversed(back)))


def _steps(expression: Expression, time: str) -> Steps | None:
    """How an expression follows from the time, never falling as it grows."""
    match expression:
        case Column(name):
            return () if name == time else None
        case Call("+" | "-" as sign, (inner, Literal(int(number)))) if type(number) is int:
            step = ("+", number if sign == "+" else -number)
        case Call("+", (Literal(int(number)), inner)) if type(number) is int:
            step = ("+", number)
        case Call("+" | "-" as sign, (inner, Literal(dt.timedelta() as span))):
            length = span // dt.timedelta(microseconds=1)
            step = ("+", length if sign == "+" else -length)
        case Call("//", (inner, Literal(int(number)))) if type(number) is int and number > 0:
            step = ("//", number)
        case _:
            return None
    below = _steps(inner, time)
    return None if below is None else (*below, step)


def _undo(step: tuple[str, int]) -> tuple[str, int]:
    """The least that a step can have come from: x // n is v from v * n on."""
    sign, number = step
    return ("*", number) if sign == "//" else ("+", -number)
