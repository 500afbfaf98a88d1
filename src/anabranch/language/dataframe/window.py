"""Windows in Spark's plans, told from the arithmetic that its analyser has made of them.

`window(ts, '1 minute', '20 seconds')` has become a structure of two expressions of microseconds: the start is
the time less its remainder by the slide, the end is the start and the size.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from anabranch.language.dataframe.catalyst import SparkNode
from anabranch.language.dataframe.values import constant, refused
from anabranch.language.window import duration, length_text
from anabranch.language.window_key import WindowKey

BEYOND = 1


@dataclass(frozen=True)
class FoundWindow:
    """A window over a column of times."""

    key: WindowKey
    time: int
    """The id of the column."""
    beyond: int = 0
    """By how many microseconds our window ends later than Spark's."""


def window_of(structure: SparkNode) -> FoundWindow | None:
    """The window that a structure of two times stands for; None if it is none."""
    if structure.kind != "CreateNamedStruct" or len(structure.children) != 4:
        return None
    names = [part.fields.get("value") for part in structure.children[::2]]
    if names != ["start", "end"]:
        return None
    start, end = structure.children[1::2]
    if not any(part.kind == "PreciseTimestampConversion" for part in start.walk()):
        return None
    (time,) = {part.id for part in start.walk() if part.kind == "AttributeReference"}
    gap = next((part for part in end.walk() if part.kind == "TimestampAddInterval"), None)
    if gap is not None:
        # Spark joins two rows that are the gap apart, too
        size = _length(_microseconds(gap.children[1]) + BEYOND)
        return FoundWindow(WindowKey("session", (size,)), time, BEYOND)
    remainder = next(part for part in start.walk() if part.kind == "Remainder")
    shifted, slide = remainder.children
    later = constant(shifted.children[1])
    offset = ("-" if later < 0 else "") + _length(abs(later)) if later else None
    added = next(part for part in end.walk() if part.kind == "Add")
    size, every = constant(added.children[1]), constant(slide)
    sizes = (_length(size),) if size == every else (_length(size), _length(every))
    kind = "tumble" if size == every else "hop"
    return FoundWindow(WindowKey(kind, sizes, offset=offset), time)


def _microseconds(part: SparkNode) -> int:
    while part.kind == "Cast":
        part = part.children[0]
    if part.kind != "Literal":
        raise refused(part, "a session whose gap is no constant")
    value = str(part.fields["value"])
    # A calendar interval stands there as people write it
    return int(value) if value.isdigit() else duration(value, True, "the gap of a session")


def _length(microseconds: int) -> str:
    return length_text(dt.timedelta(microseconds=microseconds))
