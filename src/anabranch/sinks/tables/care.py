"""What is said of the care for a table of files: when small files are brought together, when old ones go."""

from __future__ import annotations

from typing import Any

from anabranch.errors import SettingsError
from anabranch.language.window import duration

TARGET_BYTES = 128 << 20
"""How large files become that small ones are brought together in."""


def require_care(what: str, optimize: Any, target_bytes: Any, retain: Any) -> None:
    """Refuses anything but a number of epochs, of bytes, and a length of time."""
    for name, value, least in (("optimize", optimize, 0), ("target_bytes", target_bytes, 1)):
        if type(value) is not int or value < least:
            raise SettingsError(
                f"{what}: {name} is {value!r:.100}; expected a whole number from {least} on."
            )
    if retain is not None:
        microseconds(retain)


def microseconds(retain: str) -> int:
    """A length of time as a number."""
    return duration(retain, True, "retain")


def checked_columns(what: str, columns: Any) -> tuple[str, ...]:
    """The names of partitioning columns, of which one may be given by itself."""
    given = (columns,) if isinstance(columns, str) else columns
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        raise SettingsError(
            f"{what}: partition_by is {columns!r:.100}; expected a list of columns."
        )
    return tuple(given)
