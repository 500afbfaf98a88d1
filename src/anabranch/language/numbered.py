"""Rows numbered in the order of two inputs: what plans put below joins that go by rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from anabranch.language.join import Join
from anabranch.language.node import Node
from anabranch.language.order import Ordered

PLACE, SEEN = "__place", "__seen"


@dataclass(frozen=True, eq=False)
class Numbered(Node):
    """The rows of an input, numbered in the order of two; plans put it below joins that go by rows.

    `PLACE` is the number of a row in its own input, `SEEN` how many of the other came before it.
    """

    input: Node
    other: Node
    first: bool
    """Whether it is the first input of the join."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        added = {PLACE: pl.Int64(), SEEN: pl.Int64()}
        object.__setattr__(self, "schema", pl.Schema({**self.input.schema, **added}))
        time, other = self.input.ordered, self.other.ordered
        assert time is not None
        assert other is not None
        clocks = tuple(dict.fromkeys((*time.clocks, *other.clocks)))
        object.__setattr__(self, "ordered", Ordered(time.column, time.timestamps, clocks))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input, self.other)

    def __str__(self) -> str:
        return f"NUMBER {'FIRST' if self.first else 'SECOND'}"


def numbered(node: Join) -> Join:
    """A join that goes by rows, with its inputs numbered in the order of both."""
    left, right = node.parts
    parts = (Numbered(left, right, first=True), Numbered(right, left, first=False))
    return Join(parts, "inner", node.keys, node.predicate, node.suffixes, node.rows)
