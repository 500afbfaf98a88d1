"""CURRENT_TIMESTAMP, NOW() and CURRENT_DATE in WHERE and SELECT: the time of the epoch, as in its manifest.

In a SELECT that groups, or has OVER, rows are worked on more than once: others refuse it there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Expression
from anabranch.language.sql.aggregate import aggregates_in, outside_queries
from anabranch.language.sql.column import CLOCKS, resolved
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.stamped import NOW, Stamped

NAMES = ("NOW", "GETDATE", "PROCTIME")


def reads_clock(tree: exp.Expr, columns: Collection[str] = ()) -> bool:
    """Whether the tree has the time of now in it, and not one of these columns of that name."""
    return any(_is_clock(node, columns) for node in outside_queries(tree))


def with_clock(
    tree: exp.Select, conditions: list[exp.Expr], query: Query, scope: Scope
) -> tuple[Query, Scope]:
    """The rows with the time of now, chosen by these conditions, and the SELECT list with a column for it."""
    named = {*query.node.schema, *(one for part in scope.inputs.tables.values() for one in part)}
    listed = [] if _regroups(tree) else [one for one in tree.expressions if reads_clock(one, named)]
    if not listed and not conditions:
        return query, scope
    name = NOW
    while name in query.node.schema:
        name += "_"
    query = Query(Stamped(query.node, name))
    scope = replace(scope, schema=query.node.schema)
    for condition in conditions:
        query = query.where(_translated(_told(condition, name, named), scope))
    for item in listed:
        shown = item if isinstance(item, exp.Alias) else exp.alias_(item.copy(), item.sql())
        item.replace(_told(shown, name, named))
    return query, scope


def _translated(condition: exp.Expr, scope: Scope) -> Expression:
    with scope.placed(condition):
        return translate(condition, scope)


def _regroups(tree: exp.Select) -> bool:
    return bool(
        tree.args.get("group")
        or tree.args.get("having")
        or tree.find(exp.Window)
        or any(aggregates_in(item) for item in tree.expressions)
    )


def _is_clock(node: exp.Expr, columns: Collection[str]) -> bool:
    if isinstance(node, exp.Anonymous):
        return not node.expressions and str(node.this).upper() in NAMES
    if isinstance(node, exp.Column):
        plain = not node.table and not node.this.args.get("quoted")
        return plain and node.name.upper() in CLOCKS and node.name not in columns
    return isinstance(node, (exp.CurrentTimestamp, exp.Localtimestamp, exp.CurrentDate))


def _told(tree: exp.Expr, name: str, columns: Collection[str]) -> exp.Expr:
    """The tree with a column in place of the time of now."""

    def told(node: exp.Expr) -> exp.Expr:
        if not _is_clock(node, columns):
            return node
        now = resolved(name)
        is_date = isinstance(node, exp.CurrentDate) or node.name.upper() == "CURRENT_DATE"
        return exp.cast(now, "DATE") if is_date else now

    return tree.transform(told)
