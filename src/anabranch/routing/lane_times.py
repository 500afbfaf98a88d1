"""How far the lanes of a stream have come, and streams that meet: time is that of the slowest that is alive.

Pure: times, and who is idle, in; how far all of them have come out. A lane is a part of a stream that goes
on by itself, as a folder or a partition of a topic does; within it time grows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import msgspec

Lane = tuple[str, str]
"""A stream and the name of one of its lanes."""


class LaneTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a lane has come, as the manifest has it."""

    newest: int | None
    """None while it has had no row."""
    last_rows_at: float = 0.0
    """The time of day at which it last had rows."""


@dataclass(frozen=True)
class Idle:
    """The streams and the lanes that were silent for so long that nobody waits for them."""

    streams: frozenset[str] = frozenset()
    lanes: frozenset[Lane] = frozenset()


NOBODY = Idle()


def come_together(times: Mapping[str, int | None], idle: Collection[str]) -> int | None:
    """How far all have come that others wait for; None while one of those has not begun.

    Where all are idle none waits for another: it is how far the first of them has come.

    >>> come_together({"a": 5, "b": 3}, []), come_together({"a": 5, "b": None}, [])
    (3, None)
    >>> come_together({"a": 5, "b": None}, ["b"]), come_together({"a": 5, "b": 3}, ["a", "b"])
    (5, 5)
    """
    awaited = [time for name, time in times.items() if name not in idle]
    begun = [time for time in awaited or times.values() if time is not None]
    if not begun or len(begun) < len(awaited):
        return None
    return min(begun) if awaited else max(begun)
