"""What is drawn at random, and the pairs of texts it becomes: one in our dialect, one in DuckDB's.

Nothing here knows the generator of the equivalence tests: two minds miss different things.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


class Draw(random.Random):
    """Random choices that a seed repeats."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return options[self.randrange(len(options))]

    def some(self, options: Sequence[T], most: int) -> list[T]:
        """One or more of the options, in any order."""
        return self.sample(options, self.randint(1, min(most, len(options))))


@dataclass(frozen=True)
class Both:
    """An expression in both dialects, with what is known of its values."""

    ours: str
    duck: str
    kind: str
    tame: bool = True
    """Numbers so small, and fractions of two, that sums of them are exact in any order."""
    exact: bool = True
    """To be compared, grouped and joined by: not the last digits of a logarithm."""

    def as_(self, name: str) -> Both:
        """With a name in a SELECT list."""
        return Both(f"{self.ours} AS {name}", f'{self.duck} AS "{name}"', self.kind)


@dataclass(frozen=True)
class DrawnColumn:
    """A column of a stream or of a query's results."""

    name: str
    kind: str
    tame: bool = True
    exact: bool = True

    def of(self, table: str | None) -> Both:
        """The column, in ours with the name of its input unless that is None."""
        ours = f"{table}.{self.name}" if table else self.name
        duck = f'{table}."{self.name}"' if table else f'"{self.name}"'
        return Both(ours, duck, self.kind, self.tame, self.exact)


SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32")
INTEGERS = (*SIGNED, *UNSIGNED)
"""Whole numbers that can be computed with; those of u64 can only be compared and grouped."""
FLOATS = ("f32", "f64")

TYPES = {
    "i8": "TINYINT", "i16": "SMALLINT", "i32": "INTEGER", "i64": "BIGINT", "u8": "UTINYINT",
    "u16": "USMALLINT", "u32": "UINTEGER", "u64": "UBIGINT", "f32": "FLOAT", "f64": "DOUBLE",
    "text": "VARCHAR", "truth": "BOOLEAN", "day": "DATE", "stamp": "TIMESTAMP", "d2": "DECIMAL(12, 2)",
    "d4": "DECIMAL(18, 4)",
}  # fmt: skip
"""The kinds of values by the names that CAST has for them."""
DECIMALS = ("d2", "d4")
BOUNDS = {
    **{f"i{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"u{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
"""The least and the greatest whole number of each kind."""
