"""What the conditions of a join are about: the inputs before, the new one, their columns side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl
from sqlglot import exp

from anabranch.language.expression import Column, Expression, columns_of, substitute, type_of
from anabranch.language.kinds import type_words
from anabranch.language.matching import cast_to_write, comparable, right_names
from anabranch.language.sql.dialect import Inputs, Scope
from anabranch.language.sql.expression import translate

Pair = tuple[Expression, Expression]


@dataclass(frozen=True)
class JoinScope:
    """One join on its way."""

    before: Scope
    name: str
    right: pl.Schema
    names: Mapping[str, str]
    both: Scope

    @classmethod
    def of(cls, before: Scope, name: str, right: pl.Schema) -> JoinScope:
        names = right_names(before.schema, right, name)
        columns = {**before.schema, **{names[own]: kind for own, kind in right.items()}}
        inputs = Inputs({**before.inputs.tables, name: names}, before.inputs.merged)
        both = replace(before, schema=pl.Schema(columns), inputs=inputs)
        return cls(before, name, right, names, both)

    def pair(self, tree: exp.Expr) -> Pair | None:
        """The two sides of an equality between the inputs before and the new one; None if it is none."""
        if not isinstance(tree, exp.EQ):
            return None
        sides = [(translate(side, self.both), side) for side in (tree.this, tree.expression)]
        left, right = set(self.before.schema), set(self.names.values())
        for (ours, first), (theirs, second) in (sides, sides[::-1]):
            here, there = set(columns_of(ours)), set(columns_of(theirs))
            if here and there and here <= left and there <= right:
                own: dict[str, Expression] = {new: Column(old) for old, new in self.names.items()}
                pair = ours, substitute(theirs, own)
                self.check(pair, tree, (first.sql(), second.sql()))
                return pair
        return None

    def check(self, pair: Pair, at: exp.Expr, written: tuple[str, str]) -> None:
        kinds = (
            self.before.kind(pair[0]),
            type_of(pair[1], self.right, self.before.where),
        )
        if not comparable(*kinds):
            raise self.before.error(
                f"{pair[0]} is {type_words(kinds[0])} and {pair[1]} of '{self.name}' is "
                f"{type_words(kinds[1])}; expected one type. "
                f"{cast_to_write(*zip(written, kinds, strict=True))}",
                at,
            )


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND holds together."""
    conditions: list[exp.Expr] = []
    waiting = [] if tree is None else [tree]
    while waiting:
        part = waiting.pop().unnest()
        if isinstance(part, exp.And):
            waiting += [part.expression, part.this]
        elif isinstance(part, exp.Boolean) and part.this:
            continue  # ON TRUE says nothing
        else:
            conditions.append(part)
    return conditions


def within_rows(conditions: list[exp.Expr], scope: Scope) -> tuple[int | None, list[exp.Expr]]:
    """The number of WITHIN_ROWS(n) among the conditions, and the others."""
    found = [
        part
        for part in conditions
        if isinstance(part, exp.Anonymous) and str(part.this).upper() == "WITHIN_ROWS"
    ]
    for part in found:
        size = part.expressions[0] if len(part.expressions) == 1 else None
        if not isinstance(size, exp.Literal) or not str(size.this).isdigit() or size.is_string:
            raise scope.error(
                "WITHIN_ROWS takes one number: how many of the other input's last rows a row meets.",
                part,
            )
        return int(size.this), [other for other in conditions if other not in found]
    return None, conditions
