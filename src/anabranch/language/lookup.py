"""Rows beside those of a table that have their key: joins with what is no stream.

A table is read as a whole and has no time. It is never an input of the query graph by itself: a join with it
is a stateless node over the stream's rows, each of which meets the version of the table that its epoch has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import LanguageError
from anabranch.language.expression import Expression, type_of
from anabranch.language.join import FILTERING, Join
from anabranch.language.kinds import type_words
from anabranch.language.matching import cast_to_write, comparable, in_one_type, right_names
from anabranch.language.node import Node, in_order, require_distinct
from anabranch.language.order import Ordered
from anabranch.language.stateless import Filter
from anabranch.language.updates import refuse_updates

KINDS = ("inner", "left", "semi", "anti")
Keys = tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, eq=False)
class Table(Node):
    """The rows of a registered table; a query can only join with them."""

    name: str
    schema: pl.Schema
    ordered: Ordered | None = None

    def __str__(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.schema.items())
        return f"TABLE {self.name} ({columns})"


@dataclass(frozen=True, eq=False)
class Lookup(Node):
    """The rows of the input beside those of a table that have the same keys."""

    input: Node
    table: Table
    kind: str
    keys: Keys
    """Over the input, and as many over the table."""
    predicates: tuple[Expression, ...] = ()
    """What rows of the table have to fulfil to be met."""
    suffix: str = "right"
    schema: pl.Schema = field(init=False)
    ordered: Ordered | None = field(init=False)

    def __post_init__(self) -> None:
        refuse_updates("A join", self.input.updates)
        if self.kind not in KINDS:
            raise LanguageError(
                f"A {self.kind} join with the table '{self.table.name}' would have rows of the table that no "
                "row of the stream meets, which is never known: write the stream first, and JOIN or LEFT "
                "JOIN."
            )
        if not self.keys[0]:
            raise LanguageError(
                f"A join with the table '{self.table.name}' needs an equality between its columns and those "
                "of the stream: ON stream.column = table.column."
            )
        object.__setattr__(self, "keys", self._comparable_keys())
        names = list(self.names.values())
        require_distinct([*self.input.schema, *names], f"JOIN {self.table.name}")
        added = {shown: self.table.schema[own] for own, shown in self.names.items()}
        object.__setattr__(self, "schema", pl.Schema({**self.input.schema, **added}))
        object.__setattr__(self, "ordered", self.input.ordered)

    def _comparable_keys(self) -> Keys:
        schemas = self.input.schema, self.table.schema
        found = []
        for ours, theirs in zip(*self.keys, strict=True):
            left = type_of(ours, schemas[0], f"JOIN ON {ours}")
            right = type_of(theirs, schemas[1], f"JOIN ON {theirs}, of the table")
            if not comparable(left, right):
                raise LanguageError(
                    f"JOIN ON {ours} = {theirs}: the stream has {type_words(left)} and the table "
                    f"{type_words(right)}; expected one "
                    f"type. {cast_to_write((ours, left), (theirs, right))}"
                )
            found.append(in_one_type((ours, theirs), schemas))
        return tuple(zip(*found, strict=True))

    @property
    def names(self) -> Mapping[str, str]:
        """What the columns of the table are called in the results; none, if it only filters."""
        if self.kind in FILTERING:
            return {}
        return right_names(self.input.schema, self.table.schema, self.suffix)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def __str__(self) -> str:
        on = ", ".join(f"{ours} = {theirs}" for ours, theirs in zip(*self.keys, strict=True))
        where = f" WHERE {', '.join(map(str, self.predicates))}" if self.predicates else ""
        called = ", ".join(self.names.values())
        return f"LOOK UP {self.kind} {self.table} ON {on}{where} AS {called}"


def join_of(
    left: Node, right: Node, kind: str, keys: Keys, predicate: Expression | None, suffix: str,
    rows: int | None = None, written: Mapping[str, str] | None = None,
) -> Node:  # fmt: skip
    """The join of two inputs, of which the right one may be a table."""
    for node in (left, right):
        if not node.streams and (node is left or _table_of(right) is None):
            raise LanguageError(
                "A table stands by itself on the right side of a join, with a stream on the left: FROM "
                "stream JOIN table ON stream.column = table.column. What is computed of its columns can be "
                "written in ON and after the join."
            )
    found = _table_of(right)
    if found is None:
        return Join((left, right), kind, keys, predicate, (suffix,), rows, written or {})
    table, conditions = found
    if rows is not None:
        raise LanguageError(f"WITHIN_ROWS: the table '{table.name}' has no rows before others.")
    looked_up = Lookup(left, table, kind, keys, conditions, suffix)
    if predicate is None:
        return looked_up
    if kind != "inner":
        raise LanguageError(
            f"A {kind} join with the table '{table.name}' takes equalities, and conditions on the columns of "
            f"the table alone; '{predicate}' is neither."
        )
    return Filter(looked_up, predicate)


def _table_of(node: Node) -> tuple[Table, tuple[Expression, ...]] | None:
    """The table behind filters, and these; None for what is no table."""
    conditions: list[Expression] = []
    while isinstance(node, Filter):
        conditions.append(node.predicate)
        node = node.input
    return (node, tuple(conditions)) if isinstance(node, Table) else None


def tables_in(node: Node) -> dict[str, Table]:
    """The tables that a query joins with, by name."""
    return {part.table.name: part.table for part in in_order(node) if isinstance(part, Lookup)}


def require_streams(query: str, node: Node) -> None:
    """Refuses a query that reads tables alone."""
    if not node.streams:
        raise LanguageError(
            f"Query '{query}' reads a table and no stream, so there is nothing that comes: join a stream "
            "with the table, FROM stream JOIN table ON stream.column = table.column."
        )
