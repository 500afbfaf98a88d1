"""Nodes that look at each row alone: filters, case filters, computed columns, unions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from anabranch.language.alike import refuse_unlike
from anabranch.language.expression import Call, Column, Expression, Literal, Named, type_of
from anabranch.language.nearness import near_of, numbered_by
from anabranch.language.node import Node, require_boolean, require_distinct
from anabranch.language.order import Near, Ordered, Steps, told_by, tumble_size
from anabranch.language.updates import refuse_updates
from anabranch.language.window import LONGEST


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """The rows for which a predicate is true (not false, not NULL)."""

    input: Node
    predicate: Expression
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        require_boolean(self.predicate, self.input.schema, "WHERE")
        object.__setattr__(self, "schema", self.input.schema)
        object.__setattr__(self, "ordered", self.input.ordered)
        if self.input.updates:
            object.__setattr__(self, "updates", self.input.updates.where([self.predicate]))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return f"WHERE {self.predicate}"


@dataclass(frozen=True, eq=False)
class Branch(Node):
    """One output of a case filter: rows whose first true predicate is number `index`.

    With `index` equal to the number of predicates: the rows for which none is true.
    """

    input: Node
    predicates: tuple[Expression, ...]
    index: int
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        for predicate in self.predicates:
            require_boolean(predicate, self.input.schema, "case filter")
        object.__setattr__(self, "schema", self.input.schema)
        object.__setattr__(self, "ordered", self.input.ordered)
        if self.input.updates:
            object.__setattr__(self, "updates", self.input.updates.where(self.predicates))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        return f"CASE {self.index} OF {'; '.join(map(str, self.predicates))}"


@dataclass(frozen=True, eq=False)
class Project(Node):
    """Computed columns in place of the input's."""

    input: Node
    columns: tuple[Named, ...]
    by: str | None = None
    """The column that tells the time from here on, if another one could too."""
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        require_distinct([column.name for column in self.columns], "SELECT")
        types = {
            column.name: type_of(column.expression, self.input.schema, f"SELECT {column}")
            for column in self.columns
        }
        object.__setattr__(self, "schema", pl.Schema(types))
        object.__setattr__(self, "ordered", self._trace())
        if self.input.updates:
            object.__setattr__(self, "updates", self.input.updates.select(self.columns))

    def _trace(self) -> Ordered | None:
        """The ordered attribute survives as itself, in 64 bits, or scaled down as `time // 60`."""
        time = self.input.ordered
        if time is None:
            return None
        told = [known for known in told_by(time) if self.by in (None, known.column)]
        for ordered in told:
            for column in self.columns:
                if tumble_size(_widened(column.expression, ordered), ordered) == 1:
                    others = (near for near in self._near(ordered) if near.column != column.name)
                    return replace(ordered.then(column.name), near=tuple(others))
        for ordered in told:
            for column in self.columns:
                size = tumble_size(column.expression, ordered)
                if size is not None and size <= LONGEST:
                    return ordered.then(column.name, ("//", size))
        for ordered in told:
            told_near = tuple(self._near(ordered))
            if told_near:
                # The closest; the attribute itself is gone, whatever may be called like it now
                near = min(told_near, key=lambda one: one.high - one.low)
                found = replace(ordered, column="", near=told_near).by(near)
                return replace(found, near=tuple(one for one in found.near if one.column))
        for ordered in told:
            for column in self.columns:
                numbered = numbered_by(column.expression, ordered, self.input.schema)
                if numbered is not None:
                    return replace(ordered.then(column.name, ("//", numbered[0])), timestamps=False)
        return None

    def _near(self, ordered: Ordered) -> Iterator[Near]:
        """The columns that follow the time: those that did before, and what is computed of it."""
        for column in self.columns:
            near = near_of(column.name, column.expression, ordered, self.input.schema)
            if near is not None:
                yield near

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        by = "" if self.by is None else f" ORDERED BY {self.by}"
        return f"SELECT {', '.join(map(str, self.columns))}{by}"


def _widened(expression: Expression, ordered: Ordered) -> Expression:
    """What is cast to 64 bits, if the time is a number: that changes none."""
    match expression:
        case Call("cast", (inner, Literal("int64" | "bigint" | "long"))) if not ordered.timestamps:
            return inner
    return expression


@dataclass(frozen=True, eq=False)
class Union(Node):
    """The rows of several inputs with the same columns."""

    parts: tuple[Node, ...]
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        first = self.parts[0]
        refuse_unlike([part.schema for part in self.parts], sql=False)
        for part in self.parts:
            refuse_updates("A union", part.updates)
        object.__setattr__(self, "schema", first.schema)
        object.__setattr__(self, "ordered", self._merge())

    def _merge(self) -> Ordered | None:
        clocks: dict[Steps, None] = {}
        first = self.parts[0].ordered
        for part in self.parts:
            if part.ordered is None or first is None or part.ordered.column != first.column:
                return None
            clocks.update(dict.fromkeys(part.ordered.clocks))
        return first and Ordered(first.column, first.timestamps, tuple(clocks))

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def __str__(self) -> str:
        return "UNION"


def retimed(node: Node, column: str) -> Node | None:
    """The rows of a node ordered by this column; None if it does not tell their time."""
    for ordered in told_by(node.ordered) if node.ordered else ():
        if ordered.column == column:
            same = ordered.column == (node.ordered and node.ordered.column)
            columns = tuple(Named(name, Column(name)) for name in node.schema)
            return node if same else Project(node, columns, column)
    return None
