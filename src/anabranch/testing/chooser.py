"""Who decides in a random case: a seed, or a property-testing library behind the same three questions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import polars as pl

T = TypeVar("T")


class Chooser(Protocol):
    """Makes the decisions of a random case."""

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""

    def choice(self, options: Sequence[T]) -> T:
        """One of the options; the first is the simplest."""

    def flag(self, chance: float = 0.5) -> bool:
        """True with about this chance."""


class SeededChooser:
    """Decisions by a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def flag(self, chance: float = 0.5) -> bool:
        return self._random.random() < chance


@dataclass(frozen=True)
class Clock:
    """The type of the ordered attribute and the unit its times are drawn in."""

    kind: pl.DataType
    unit: str = ""
    factor: int = 1
    """How many of the engine's units, microseconds for timestamps, one of these is."""

    def length(self, size: int) -> int | str:
        return f"{size} {self.unit}" if self.unit else size
