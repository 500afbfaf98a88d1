"""What a planted bug is: a wrong function in the place of a right one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Wrong = Callable[..., Any]


@dataclass(frozen=True)
class Bug:
    """One function of the product, and what takes its place."""

    name: str
    what: str
    """What goes wrong, as one would say it of a real one."""
    places: tuple[tuple[Any, str], ...]
    """The classes and modules that have the function, and its name there."""
    wrong: Callable[[Wrong], Wrong]
    """Makes the wrong function of the right one."""


def nothing(result: Any) -> Callable[[Wrong], Wrong]:
    """A function that does nothing and gives the same each time."""
    return lambda right: lambda *arguments, **named: result
