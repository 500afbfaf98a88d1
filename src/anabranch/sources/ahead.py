"""How far ahead of the clock the rows of a stream may be: one from the year 2999 must not move its time."""

from __future__ import annotations

from dataclasses import dataclass

from anabranch.errors import SettingsError
from anabranch.language.node import Stream
from anabranch.language.window import LONGEST, duration

TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""Units in which integers may count the time since 1970, by how many of them are a second."""


@dataclass(frozen=True)
class Ahead:
    """The most that a time may be ahead of the clock, in ticks of the ordered attribute."""

    most: int
    ticks: int
    """Ticks of a second."""

    def latest(self, now: float) -> int:
        """The latest time that a row may have, at this moment in seconds since 1970."""
        return int(now * self.ticks) + self.most


def read_ahead(node: Stream, most: int | str | None, unit: str | None) -> Ahead | None:
    """The limit of a stream, from what a user gives for it."""
    assert node.ordered
    name, stamps = node.name, node.ordered.timestamps
    if most is None:
        if unit is not None:
            raise SettingsError(
                f"Stream '{name}': time_unit goes with max_ahead, which is not given."
            )
        return None
    if stamps and unit is not None:
        raise SettingsError(
            f"Stream '{name}': time_unit is for integers; its times are timestamps."
        )
    if not stamps and unit not in TICKS:
        raise SettingsError(
            f"Stream '{name}': max_ahead is measured against the clock, so say what its integers count since "
            f"1970: time_unit={' or '.join(map(repr, TICKS))}, not {unit!r}."
        )
    ticks = TICKS["us" if stamps or unit is None else unit]
    if isinstance(most, str) and not stamps:
        length = duration(most, True, "max_ahead") * ticks // TICKS["us"]
    else:
        length = duration(most, stamps, "max_ahead")
    if not 0 <= length <= LONGEST:
        raise SettingsError(f"Stream '{name}': max_ahead is {most!r}; expected 0 or more.")
    return Ahead(length, ticks)
