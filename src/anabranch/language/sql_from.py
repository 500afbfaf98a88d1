"""The FROM clause: streams, queries and sub-queries under the names they have there, and joins of them.

An inner join takes its equalities from ON, USING and WHERE alike; what is left of WHERE stays a filter. An
outer join takes them from ON or USING alone, for there WHERE means something else.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language.builder import Query
from anabranch.language.dialect import Inputs, Scope
from anabranch.language.expression import Call, Column, Expression, columns_of, substitute, type_of
from anabranch.language.graph import Join
from anabranch.language.matching import comparable, right_names
from anabranch.language.sql_refuse import refuse_input
from anabranch.language.text import translate

Pair = tuple[Expression, Expression]


class Reader(Protocol):
    """What reads a whole query; FROM asks it for sub-queries."""

    scope: Scope
    known: dict[str, Query]

    def query(self, tree: exp.Expr) -> Query: ...


@dataclass
class From:
    """The inputs of one SELECT, joined from the first on."""

    reader: Reader
    where: list[exp.Expr]
    """The parts of WHERE that hold together; a join takes its equalities out."""
    query: Query = field(init=False)
    tables: dict[str, Mapping[str, str]] = field(default_factory=dict)
    merged: dict[str, Expression] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        scope = self.reader.scope
        inputs = Inputs(dict(self.tables), dict(self.merged))
        return Scope(scope.text, self.query.node.schema, scope.where, inputs)

    def read(self, tree: exp.Select) -> None:
        source = tree.args.get("from_")
        if source is None:
            raise self.reader.scope.error("FROM is missing: name a stream or a query.", tree)
        name, self.query = self._input(source.this)
        self.tables[name] = {column: column for column in self.query.node.schema}
        joins = tree.args.get("joins") or []
        for number, join in enumerate(joins):
            filled = any(self._kind(later) in ("right", "full") for later in joins[number + 1 :])
            self._join(join, filled)

    def _input(self, tree: exp.Expr) -> tuple[str, Query]:
        """An input and its name."""
        refuse_input(tree, self.reader.scope)
        name = tree.alias_or_name
        if name in self.tables:
            raise self.reader.scope.error(
                f"two inputs are called '{name}': give one another name with AS.", tree
            )
        if isinstance(tree, exp.Subquery):
            return name, self.reader.query(tree.this)
        known = self.reader.known
        if tree.name not in known:
            raise self.reader.scope.error(
                f"there is no stream or query '{tree.name}'.{suggest(tree.name, known)}", tree
            )
        return name, known[tree.name]

    # -- joins ------------------------------------------------------------------------------------

    def _join(self, tree: exp.Join, filled: bool) -> None:
        """Joins one more input; with `filled`, a later join may put NULL in place of all there is so far."""
        kind = self._kind(tree)
        before = self.scope
        name, right = self._input(tree.this)
        meeting = _Meeting.of(before, name, right.node.schema)
        self.tables[name] = meeting.names
        pairs = [self._using(column, kind, meeting) for column in tree.args.get("using") or ()]
        on = tree.args.get("on")
        rest: list[Expression] = []
        for part in conjuncts(on):
            pair = meeting.pair(part)
            if pair:
                pairs.append(pair)
            else:
                rest.append(translate(part, meeting.both))
        if kind == "inner":
            pairs += self._from_where(meeting, keep=filled)
        if not pairs:
            others = " and ".join(repr(other) for other in before.inputs.tables)
            first = next(iter(before.inputs.tables))
            place = "ON" if kind != "inner" else "ON or WHERE"
            raise before.error(
                f"nothing says which rows of '{name}' belong to which of {others}, so every row would meet "
                f"every row: add an equality between their columns to {place}, such as "
                f"{first}.time = {name}.time.",
                tree.this,
            )
        self.query = Query(
            Join(self.query.node, right.node, kind, tuple(pairs), all_of(rest), name)
        )

    def _kind(self, tree: exp.Join) -> str:
        method, side, kind = (
            str(tree.args.get(part) or "").upper() for part in ("method", "side", "kind")
        )
        if method or kind not in ("", "INNER", "OUTER"):
            what = f"{method} {kind}".strip()
            instead = {
                "CROSS": "say in ON which columns are equal",
                "NATURAL": "name the columns with USING",
                "SEMI": "JOIN and GROUP BY the left columns",
                "ANTI": "LEFT JOIN and keep the rows where the right IS NULL",
            }.get(what, "there are JOIN, LEFT JOIN, RIGHT JOIN and FULL JOIN")
            raise self.reader.scope.error(f"{what} JOIN is not available: {instead}.", tree)
        return side.lower() or "inner"

    def _using(self, column: exp.Expr, kind: str, meeting: _Meeting) -> Pair:
        name = column.name
        if name not in meeting.right:
            known = suggest(name, meeting.right)
            raise meeting.before.error(
                f"USING: '{meeting.name}' has no column '{name}'.{known}", column
            )
        ours, theirs = translate(exp.column(name), meeting.before), Column(meeting.names[name])
        meeting.check((ours, Column(name)), column)
        merged: dict[str, Expression] = {"right": theirs, "full": Call("coalesce", (ours, theirs))}
        self.merged[name] = merged.get(kind, ours)
        return ours, Column(name)

    def _from_where(self, meeting: _Meeting, keep: bool) -> list[Pair]:
        """The equalities in WHERE between the new input and those before it.

        Those that are kept are a filter too: it drops rows that a later join fills with NULL.
        """
        found: list[Pair] = []
        for part in list(self.where):
            used: set[str] = set()
            for column in part.find_all(exp.Column):
                tables = meeting.both.inputs.holding(column.name)
                used |= {column.table} if column.table else set(tables or ("",))
            if meeting.name in used and used <= self.tables.keys():
                pair = meeting.pair(part)
                if pair:
                    found.append(pair)
                    if not keep:
                        self.where.remove(part)
        return found


@dataclass(frozen=True)
class _Meeting:
    """One join on its way: the inputs before, the new one, and the columns of all side by side."""

    before: Scope
    name: str
    right: pl.Schema
    names: Mapping[str, str]
    both: Scope

    @classmethod
    def of(cls, before: Scope, name: str, right: pl.Schema) -> _Meeting:
        names = right_names(before.schema, right, name)
        columns = {**before.schema, **{names[own]: kind for own, kind in right.items()}}
        inputs = Inputs({**before.inputs.tables, name: names}, before.inputs.merged)
        both = Scope(before.text, pl.Schema(columns), before.where, inputs)
        return cls(before, name, right, names, both)

    def pair(self, tree: exp.Expr) -> Pair | None:
        """The two sides of an equality between the inputs before and the new one; None if it is none."""
        if not isinstance(tree, exp.EQ):
            return None
        sides = [translate(side, self.both) for side in (tree.this, tree.expression)]
        left, right = set(self.before.schema), set(self.names.values())
        for ours, theirs in (sides, sides[::-1]):
            here, there = set(columns_of(ours)), set(columns_of(theirs))
            if here and there and here <= left and there <= right:
                own: dict[str, Expression] = {new: Column(old) for old, new in self.names.items()}
                pair = ours, substitute(theirs, own)
                self.check(pair, tree)
                return pair
        return None

    def check(self, pair: Pair, at: exp.Expr) -> None:
        kinds = (
            self.before.kind(pair[0]),
            type_of(pair[1], self.right, f"{self.before.where} '{self.before.text}'"),
        )
        if not comparable(*kinds):
            raise self.before.error(
                f"{pair[0]} is {kinds[0]} and {pair[1]} of '{self.name}' is {kinds[1]}, which are never "
                "equal: CAST one of them.",
                at,
            )


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND holds together."""
    if tree is None:
        return []
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    return [tree]


def all_of(conditions: list[Expression]) -> Expression | None:
    """One condition that holds if all do."""
    if not conditions:
        return None
    return functools.reduce(lambda left, right: Call("&", (left, right)), conditions)
