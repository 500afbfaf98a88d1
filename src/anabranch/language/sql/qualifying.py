"""Columns that say which input they are of, and what conditions say of them."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp


def inputs(tree: exp.Select) -> list[exp.Expr]:
    """What FROM and the joins of a SELECT name."""
    first = [tree.args["from_"].this] if tree.args.get("from_") else []
    return [*first, *(join.this for join in tree.args.get("joins") or ())]


def tables(tree: exp.Expr) -> set[str]:
    """The inputs that the columns of an expression say they are of."""
    return {part.table for part in tree.find_all(exp.Column)}


def qualified(
    tree: exp.Expr, columns: Collection[str], name: str, written: str | None = None
) -> exp.Expr:
    """An expression of a sub-query whose own columns say so, by the name that its input gets."""
    whole = exp.Paren(this=tree.copy())
    for column in whole.find_all(exp.Column):
        if (not column.table and column.name in columns) or column.table == (written or name):
            column.set("table", exp.to_identifier(name))
    inner = whole.this
    assert isinstance(inner, exp.Expr)
    return inner.pop()


def never_null(value: exp.Expr, conditions: list[exp.Expr]) -> bool:
    """Whether conditions leave no row in which this is NULL."""
    wanted = value.this if isinstance(value, exp.Alias) else value
    for part in conditions:
        if isinstance(part, exp.Not) and isinstance(part.this.unnest(), exp.Is):
            told = part.this.unnest()
            if isinstance(told.expression, exp.Null) and told.this == wanted:
                return True
    return False
