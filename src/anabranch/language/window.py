"""Windows: which stretch of its group's rows an aggregate covers.

Sizes are integers in the unit of the ordered attribute: as they are for integer attributes,
microseconds for timestamps.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TypeAlias

from anabranch.errors import LanguageError, shorten

START, END = "window_start", "window_end"

MOST_WINDOWS = 10_000
"""Windows that a row may be in: the work on it grows with them."""

LATEST = 3 << 60
"""Times are at most so far from zero: in nanoseconds until 2079, in microseconds 109,000 years."""
LONGEST = 1 << 59
"""Lengths of time are at most this, so that no time and length together leave what 64 bits can count."""
MOST_DIGITS = 18
"""Digits of an amount of time: all such numbers fit 64 bits."""
MOST_COUNTED = 1_000_000
"""Rows of a count window: so many of every group are kept."""


@dataclass(frozen=True)
class Tumble:
    """Windows [k*size, (k+1)*size). With `index`, the output has k under that name."""

    size: int
    index: str | None = None
    kind: str | None = None
    """What k is told as, if not as a number: a `date`, a `float64`."""

    def __post_init__(self) -> None:
        require_length(self.size, "The size of a window")

    def __str__(self) -> str:
        kind = f" {self.kind.upper()}" if self.kind else ""
        return (
            f"TUMBLE({self.size} AS {self.index}{kind})" if self.index else f"TUMBLE({self.size})"
        )


@dataclass(frozen=True)
class Hop:
    """Windows of `size` that start every `slide`, kept as panes of their common divisor."""

    size: int
    slide: int

    def __post_init__(self) -> None:
        require_length(self.size, "The size of a window")
        require_length(self.slide, "The slide of a window")
        _refuse_gaps(self.size, self.slide, "slide", "hop(size, slide)")
        windows = -(-self.size // self.slide)
        if windows > MOST_WINDOWS:
            raise LanguageError(
                f"{self}: every row would be in {windows:,} windows; expected at most {MOST_WINDOWS:,}. Make "
                "the slide longer or the size shorter."
            )

    def __str__(self) -> str:
        return f"HOP({self.size}, {self.slide})"


@dataclass(frozen=True)
class SessionGap:
    """Windows that end when a group has had no row for `gap`."""

    gap: int

    def __post_init__(self) -> None:
        require_length(self.gap, "The gap of a session")

    def __str__(self) -> str:
        return f"SESSION({self.gap})"


@dataclass(frozen=True)
class CountWindow:
    """Windows of `size` rows of a group, one starting every `advance` rows, in time order."""

    size: int
    advance: int

    def __post_init__(self) -> None:
        _refuse_gaps(self.size, self.advance, "advance", "count_window(size, advance)")
        windows = -(-self.size // self.advance)
        if windows > MOST_WINDOWS:
            raise LanguageError(
                f"{self}: every row would be in {windows:,} windows; expected at most {MOST_WINDOWS:,}. Make "
                "the advance longer or the size shorter."
            )
        if self.size > MOST_COUNTED:
            raise LanguageError(
                f"{self}: expected at most {MOST_COUNTED:,} rows, for so many of every group are kept. A "
                "window of time keeps none: tumble, hop."
            )

    def __str__(self) -> str:
        return f"ROWS({self.size}, {self.advance})"


@dataclass(frozen=True)
class Everything:
    """No window: the whole past of the group. Its state is never given back."""

    def __str__(self) -> str:
        return "UNBOUNDED"


def _refuse_gaps(size: int, step: int, what: str, order: str) -> None:
    """Windows further apart than they are long would drop the rows between them in silence."""
    if step > size:
        raise LanguageError(
            f"the {what} is {step} and the size {size}, so rows between two windows would be in none. Here "
            f"the size comes first, {order}; some other systems have it second. To leave rows out on "
            "purpose, filter with WHERE."
        )


def require_length(value: int, what: str) -> None:
    """Refuses a length of time that cannot be counted with beside all times."""
    if value > LONGEST:
        raise LanguageError(
            f"{what} is {value}; expected at most 2**59 ({LONGEST}) in the unit of the ordered attribute."
        )


Window: TypeAlias = Tumble | Hop | SessionGap | CountWindow | Everything


UNITS = {
    "microsecond": 1, "millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000,
    "hour": 3_600_000_000, "day": 86_400_000_000, "week": 604_800_000_000,
}  # fmt: skip
SHORT = {"us": "microsecond", "ms": "millisecond", "s": "second", "sec": "second", "m": "minute",
         "min": "minute", "h": "hour", "hr": "hour", "d": "day"}  # fmt: skip


def length_text(length: dt.timedelta) -> str:
    """A length of time as `duration` reads it, in the largest unit that it is whole in.

    >>> length_text(dt.timedelta(minutes=90))
    '90 minutes'
    """
    microseconds = length // dt.timedelta(microseconds=1)
    unit = next(unit for unit in reversed(UNITS) if microseconds % UNITS[unit] == 0)
    return f"{microseconds // UNITS[unit]} {unit}s"


def duration(value: int | str, timestamps: bool, what: str, days: bool = False) -> int:
    """A length of time in the ordered attribute's unit, e.g. 60, "10 seconds" or "1 hour 30 minutes".

    With `days` the attribute is a date, and its unit a day.
    """
    if days and isinstance(value, str):
        number, rest = divmod(duration(value, True, what), UNITS["day"])
        if rest:
            raise LanguageError(
                f"{what} is '{value}', but the ordered attribute is a date: expected whole days."
            )
        return number
    if isinstance(value, int):
        if timestamps:
            raise LanguageError(
                f"{what} is {value}, but the ordered attribute is a timestamp: "
                f'give a length with its unit, e.g. "{value} seconds".'
            )
        return value
    if not timestamps:
        raise LanguageError(
            f"{what} is '{value}', but the ordered attribute is an integer: "
            "give a plain number in its unit."
        )
    # As they follow each other: 1 hour 30 minutes
    amounts = re.findall(r"(\d+)\s*([a-z]+)", value.lower())
    units = [
        SHORT.get(word) or SHORT.get(word.rstrip("s")) or word.rstrip("s") for _, word in amounts
    ]
    whole = re.fullmatch(r"(\s*\d+\s*[a-z]+)+\s*", value.lower())
    if not whole or any(unit not in UNITS for unit in units):
        raise LanguageError(
            f"{what} '{value.strip()}' is not a length of time: expected a whole number and one of "
            f'{", ".join(UNITS)}, e.g. "10 seconds".'
        )
    if any(len(number) > MOST_DIGITS for number, _ in amounts):
        raise LanguageError(f"{what} '{shorten(value.strip(), 100)}' is too long to count with.")
    length = sum(
        int(number) * UNITS[unit] for (number, _), unit in zip(amounts, units, strict=True)
    )
    require_length(length, what)
    return length
