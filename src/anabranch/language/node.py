"""What every node of the query graph has: a schema, an ordered attribute, inputs; and the streams below.

The nodes themselves are in `graph.py` and `join.py`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Expression, type_of
from anabranch.language.matching import Steps


@dataclass(frozen=True)
class Ordered:
    """The ordered attribute of a node's rows and how its watermark follows from the streams'.

    `clocks` has one list of steps per way the rows come: each maps the streams' watermark to a
    lower bound on this column in rows still to come; the least of them holds.
    """

    column: str
    timestamps: bool
    clocks: tuple[Steps, ...] = ((),)

    def then(self, column: str, *steps: tuple[str, int]) -> Ordered:
        return Ordered(column, self.timestamps, tuple((*clock, *steps) for clock in self.clocks))

    def watermark(self, source: int | None) -> int | None:
        """The watermark of this column, given that of the streams."""
        return None if source is None else min(_advance(clock, source) for clock in self.clocks)


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


class Node:
    """Something that yields rows; subclasses say what."""

    schema: pl.Schema
    ordered: Ordered | None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @functools.cached_property
    def signature(self) -> str:
        """A text that is the same for nodes that yield the same rows."""
        return f"{self}({', '.join(node.signature for node in self.inputs)})"


@dataclass(frozen=True, eq=False)
class Stream(Node):
    """The rows of a registered stream."""

    name: str
    schema: pl.Schema
    ordered: Ordered | None

    def __str__(self) -> str:
        return f"STREAM {self.name}"


def require_boolean(predicate: Expression, schema: pl.Schema, where: str) -> None:
    kind = type_of(predicate, schema, f"{where} {predicate}")
    if kind not in (pl.Boolean, pl.Null):
        raise LanguageError(f"{where} {predicate}: expected a condition, but this is {kind}.")


def require_distinct(names: list[str], where: str) -> None:
    for name in names:
        if name.startswith("__"):
            raise LanguageError(f"{where}: '{name}' is not a name for a column: `__` is reserved.")
        if names.count(name) > 1:
            raise LanguageError(
                f"{where}: two columns are called '{name}'. Give one another name with alias()."
            )
