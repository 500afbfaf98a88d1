"""Values that a row gets from the rows around it: what OVER asks for, in which order, over which of them.

The nodes that give them are in `ranked.py` (rows of a window, in any order) and `timeline.py` (rows of a
group, in the order of time).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.aggregate import AggregateCall, result_type
from anabranch.language.checked import checked
from anabranch.language.expression import Column, Expression, columns_of, lift, type_of

NUMBERS = ("row_number", "rank", "dense_rank")
"""The place of a row among the others."""
SHIFTS = ("lag", "lead")
"""The value of the row so many places before or after."""
PICKS = ("first_value", "last_value", "nth_value")
"""The value of one row of the frame."""
CARRIED = "latest"
"""The value of the last row so far for which a condition holds."""
ROW_FUNCTIONS = (*NUMBERS, *SHIFTS, *PICKS, CARRIED)
RUNNING = ("count", "sum", "min", "max", "avg")
"""Aggregates that can go on for ever, from row to row."""
MOST_ROWS = 10_000
"""Rows that a frame may count, or that LAG and LEAD may go: so many of every group are kept."""


@dataclass(frozen=True)
class Sort:
    """One expression of ORDER BY."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False

    def __str__(self) -> str:
        return (
            f"{self.expression}{' DESC' if self.descending else ''}"
            f"{' NULLS FIRST' if self.nulls_first else ''}"
        )


@dataclass(frozen=True)
class RowFrame:
    """Which rows around a row: counted, or by how far apart in time they are; None goes to the end.

    With `by_time`, rows of the same time (of the same place in the order) belong to it together.
    """

    before: int | None = None
    after: int | None = 0
    by_time: bool = True

    def __str__(self) -> str:
        kind = "RANGE" if self.by_time else "ROWS"
        before = "UNBOUNDED" if self.before is None else str(self.before)
        after = "UNBOUNDED" if self.after is None else str(self.after)
        return f"{kind} {before} PRECEDING {after} FOLLOWING"

    @property
    def whole(self) -> bool:
        return self.before is None and self.after is None


SO_FAR = RowFrame()
"""What SQL means where no frame is written: all rows up to this one, and those of the same place."""


@dataclass(frozen=True)
class RowCall:
    """One value of the rows around: its function, what it takes of each row, and the frame."""

    function: str
    arguments: tuple[Expression, ...] = ()
    """The value; of `lag` and `lead` also the default, of `latest` the condition."""
    number: int = 1
    """How many places LAG and LEAD go, or which value NTH_VALUE takes."""
    frame: RowFrame = SO_FAR
    aggregate: AggregateCall | None = None
    """An aggregate over the frame, if it is one."""

    def alias(self, name: str) -> NamedRowCall:
        return NamedRowCall(name, self)

    def __str__(self) -> str:
        if self.aggregate is not None:
            return f"{self.aggregate} OVER {self.frame}"
        inner = ", ".join(map(str, self.arguments))
        places = f" {self.number}" if self.function in (*SHIFTS, "nth_value") else ""
        framed = f" OVER {self.frame}" if self.function in PICKS else ""
        return f"{self.function.upper()}{places}({inner}){framed}"


@dataclass(frozen=True)
class NamedRowCall:
    """Such a value with its name."""

    name: str
    call: RowCall

    def __str__(self) -> str:
        return f"{self.call} AS {self.name}"


def kind_of_call(call: RowCall, schema: pl.Schema) -> pl.DataType:
    """The type of its values, over rows of a schema."""
    if call.function in NUMBERS:
        return pl.Int64()
    kinds = [type_of(part, schema, str(call)) for part in call.arguments]
    if call.aggregate is not None:
        parts = [type_of(part, schema, str(call)) for part in call.aggregate.arguments]
        return result_type(call.aggregate, parts[0] if parts else None)
    return kinds[0]


def can_run(call: RowCall, schema: pl.Schema) -> bool:
    """Whether an aggregate from the first row on goes from row to row."""
    if call.aggregate is None or call.function not in RUNNING:
        return False
    arguments = call.aggregate.arguments
    kind = type_of(arguments[0], schema, str(call)) if arguments else pl.Int64()
    plain = kind.is_integer() or kind.is_float() or call.function == "count"
    return plain or (call.function in ("min", "max") and kind.is_temporal())


def check_calls(calls: Sequence[NamedRowCall], schema: pl.Schema) -> None:
    """Refuses calls that no order of rows can answer."""
    for named in calls:
        call = named.call
        if call.aggregate is None and call.function not in ROW_FUNCTIONS:
            raise LanguageError(
                f"{named}: there is no such value of a row among others; expected one of "
                f"{', '.join(ROW_FUNCTIONS)} or an aggregate."
            )
        least = 0 if call.function in SHIFTS else 1
        if not least <= call.number <= MOST_ROWS:
            raise LanguageError(
                f"{call.function.upper()} takes a number from {least} to {MOST_ROWS:,}, not {call.number}."
            )
        frame = call.frame
        lengths = () if frame.by_time else (frame.before, frame.after)
        if any(length is not None and length >= MOST_ROWS for length in lengths):
            raise LanguageError(
                f"{frame}: expected at most {MOST_ROWS - 1:,} rows. So many of every group would be kept; "
                "a stretch of time is RANGE … PRECEDING."
            )
        if call.function in SHIFTS and len(call.arguments) == 2:
            value, default = (type_of(part, schema, str(named)) for part in call.arguments)
            if value != default and default != pl.Null() and any(columns_of(call.arguments[1])):
                raise LanguageError(
                    f"{call.function.upper()}: the value is {value} and the default {default}; expected one "
                    "type. Cast the default."
                )


def row_number() -> RowCall:
    """The place of a row among the others, from 1 on; rows in the same place have a place each."""
    return RowCall("row_number")


def rank() -> RowCall:
    """One more than the number of rows before its place: 1, 1, 3."""
    return RowCall("rank")


def dense_rank() -> RowCall:
    """One more than the number of places before its own: 1, 1, 2."""
    return RowCall("dense_rank")


@checked
def lag(value: str | Expression, places: int = 1, default: Any = None) -> RowCall:
    """The value of the row so many places before; the default where there is none."""
    return RowCall("lag", _values(value, default), places)


@checked
def lead(value: str | Expression, places: int = 1, default: Any = None) -> RowCall:
    """The value of the row so many places after; the default where there is none."""
    return RowCall("lead", _values(value, default), places)


@checked
def over_frame(
    call: AggregateCall | RowCall, before: int | None = None, after: int | None = 0,
    by_time: bool = False,
) -> RowCall:  # fmt: skip
    """An aggregate, or FIRST_VALUE and its like, over these rows around; None goes to the end."""
    frame = RowFrame(before, after, by_time)
    if isinstance(call, AggregateCall):
        return RowCall(call.function, (), frame=frame, aggregate=call)
    return replace(call, frame=frame)


@checked
def first_value(value: str | Expression) -> RowCall:
    """The value of the first row of the frame."""
    return RowCall("first_value", _values(value, None))


@checked
def last_value(value: str | Expression) -> RowCall:
    """The value of the last row of the frame."""
    return RowCall("last_value", _values(value, None))


@checked
def nth_value(value: str | Expression, number: int) -> RowCall:
    """The value of the n-th row of the frame, from 1 on."""
    return RowCall("nth_value", _values(value, None), number)


@checked
def desc(value: str | Expression, nulls_first: bool = False) -> Sort:
    """For `by=`: greatest first."""
    return Sort(Column(value) if isinstance(value, str) else value, True, nulls_first)


def _values(value: str | Expression, default: Any) -> tuple[Expression, ...]:
    first = Column(value) if isinstance(value, str) else value
    return (first,) if default is None else (first, lift(default))
