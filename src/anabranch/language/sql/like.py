"""LIKE and ILIKE in texts."""

from __future__ import annotations

import polars as pl
from sqlglot import exp

from anabranch.language.expression import Call, Expression, Literal
from anabranch.language.sql.dialect import Scope


def like(
    tree: exp.Like | exp.ILike, value: Expression, pattern: Expression, scope: Scope
) -> Expression:
    """A text compared with a pattern: `%` is any text, `_` one character."""
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        raise scope.error(
            f"{tree.key.upper()} needs a constant pattern such as 'a%'; for a text from a column use "
            "CONTAINS, STARTS_WITH or ENDS_WITH.",
            tree,
        )
    if scope.kind(value) not in (pl.String, pl.Null):
        raise scope.error(
            f"{tree.key.upper()} needs a text, but {value} is {scope.kind(value)}.", tree
        )
    if isinstance(tree, exp.ILike):
        value, pattern = Call("lower", (value,)), Literal(pattern.value.lower())
    found = Call("like", (value, pattern))
    return ~found if tree.args.get("negate") else found
