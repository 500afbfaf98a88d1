"""The ordered attribute of rows: which column tells their time, and how it follows the streams' watermark."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from anabranch.language.expression import Call, Column, Expression, Literal

Steps = tuple[tuple[str, int], ...]
"""What is done to a time, one after another: `+`, `*` or `//` with a number."""


@dataclass(frozen=True)
class Near:
    """A column that follows the ordered attribute: never further from it than this, in stream time."""

    column: str
    unit: int
    low: int
    high: int


@dataclass(frozen=True)
class Ordered:
    """The ordered attribute of a node's rows and how its watermark follows from the streams'.

    `clocks` has one list of steps per way the rows come: each maps the streams' watermark to a
    lower bound on this column in rows still to come; the least of them holds.
    """

    column: str
    timestamps: bool
    clocks: tuple[Steps, ...] = ((),)
    near: tuple[Near, ...] = ()
    """Other columns that tell the time too, as the right side's after a join."""

    @functools.cached_property
    def unit(self) -> int | None:
        """How much stream time one step of the column is: 60 for `time // 60`; None if that varies."""
        found = {_unit(clock) for clock in self.clocks}
        return found.pop() if len(found) == 1 else None

    def then(self, column: str, *steps: tuple[str, int]) -> Ordered:
        return Ordered(column, self.timestamps, tuple((*clock, *steps) for clock in self.clocks))

    def by(self, near: Near) -> Ordered:
        """The same order, told by another column."""
        assert self.unit == near.unit
        step = ("+", -(-near.low // near.unit))
        others = tuple(
            Near(other.column, other.unit, other.low - near.high, other.high - near.low)
            for other in (*self.near, Near(self.column, near.unit, 0, 0))
            if other.column != near.column
        )
        return Ordered(
            near.column,
            self.timestamps,
            tuple((*clock, *((step,) if step[1] else ())) for clock in self.clocks),
            others,
        )

    def watermark(self, source: int | None) -> int | None:
        """The watermark of this column, given that of the streams."""
        return None if source is None else min(_advance(clock, source) for clock in self.clocks)

    def source_time(self, value: np.ndarray) -> np.ndarray:
        """The least watermark of the streams at which this column's watermark has reached a value."""
        return functools.reduce(np.maximum, (_undone(clock, value) for clock in self.clocks))


def _advance(clock: Steps, value: int) -> int:
    for operation, amount in clock:
        match operation:
            case "//":
                value //= amount
            case "*":
                value *= amount
            case "+":
                value += amount
    return value


def _undone(clock: Steps, value: np.ndarray) -> np.ndarray:
    """The least that the steps of a clock take to a value or beyond it."""
    for operation, amount in reversed(clock):
        match operation:
            case "//":
                value = value * amount
            case "*":
                value = -(-value // amount)
            case "+":
                value = value - amount
    return value


def _unit(clock: Steps) -> int | None:
    unit = Fraction(1)
    for operation, amount in clock:
        if operation == "//":
            unit *= amount
        elif operation == "*":
            unit /= amount
    return int(unit) if unit.denominator == 1 else None


def told_by(time: Ordered) -> list[Ordered]:
    """The same order by each of the columns that tell it."""
    return [time, *(time.by(near) for near in time.near if near.unit == time.unit)]


def tumble_size(expression: Expression, ordered: Ordered) -> int | None:
    """n if the expression is `time // n` (1 for the attribute itself), else None."""
    match expression:
        case Column(name) if name == ordered.column:
            return 1
        case Call("//", (Column(name), Literal(int(size)))) if name == ordered.column and size > 0:
            return size
    return None
