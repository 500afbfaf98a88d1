"""Elements of lists as rows: UNNEST in FROM, LATERAL VIEW explode, explode in the SELECT list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.unnest import Unnest

FUNCTIONS = {"unnest": False, "explode": False, "explode_outer": True, "posexplode": False}
"""The functions that give elements as rows, and whether a row without any stays."""


@dataclass(frozen=True)
class Elements:
    """The rows with the elements of a list, and the columns that these are in under their names."""

    query: Query
    columns: Mapping[str, str]


def unnested(tree: exp.Expr, query: Query, scope: Scope) -> Elements:
    """The rows of a query with the elements that a part of FROM gives: UNNEST(…) AS u(x)."""
    call = tree.this if isinstance(tree, exp.Lateral) else tree
    arguments = list(call.expressions)
    name = str(call.this).lower() if isinstance(call, exp.Anonymous) else "unnest"
    if name not in FUNCTIONS or len(arguments) != 1:
        raise scope.error(
            "a function beside other inputs of FROM gives the elements of one list: "
            "CROSS JOIN UNNEST(xs) AS u(x), LATERAL VIEW explode(xs) u AS x.",
            tree,
        )
    alias = tree.args.get("alias")
    given = [column.name for column in (alias.args.get("columns") or ())] if alias else []
    outer = FUNCTIONS[name] or bool(tree.args.get("outer"))
    if name == "posexplode":
        raise scope.error(
            "POSEXPLODE is not available: write CROSS JOIN UNNEST(xs) WITH ORDINALITY AS u(x, n).",
            tree,
        )
    element = given[0] if given else (alias.name if alias and alias.name else "unnest")
    offset = tree.args.get("offset")
    position = offset.name if isinstance(offset, exp.Expr) else "ordinality" if offset else ""
    taken = query.node.schema
    shown = {one: one if one not in taken else f"{one}_{alias.name if alias else 'unnest'}"
             for one in (element, position) if one}  # fmt: skip
    with scope.placed(tree):
        node = Unnest(
            query.node, translate(arguments[0], scope), shown[element], outer,
            shown.get(position) if position else None,
        )  # fmt: skip
    return Elements(Query(node), shown)


def elements_in(tree: exp.Expr) -> exp.Anonymous | exp.Unnest | None:
    """The call that makes rows of a list, if a column of SELECT is one."""
    if isinstance(tree, exp.Unnest):
        return tree
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() in FUNCTIONS:
        return tree
    return None


def gives_elements(tree: exp.Expr) -> bool:
    """Whether an input of FROM gives the elements of a list of those before it."""
    called = tree.this if isinstance(tree, exp.Table) else None
    named = isinstance(called, exp.Anonymous) and str(called.this).lower() in FUNCTIONS
    return isinstance(tree, (exp.Unnest, exp.Lateral)) or named
