"""The borders of the window of GROUP BY under the names that other systems give them.

`window.start` of Spark and Arroyo, the whole window as a struct, `TUMBLE_START(ts, …)` of Flink.
"""

from __future__ import annotations

from sqlglot import exp

from anabranch.language.expression import Call, Column, Expression, Literal
from anabranch.language.sql.dialect import Scope
from anabranch.language.window import END, START

_BORDERS = {"start": START, "end": END}
_FUNCTIONS = {
    f"{window}_{end}": (window, border)
    for window in ("tumble", "hop", "session")
    for end, border in (("start", START), ("end", END), ("rowtime", "rowtime"))
}


def border_of(tree: exp.Column, scope: Scope) -> Expression | None:
    """`window.start`, or `window` itself, above GROUP BY with a window of that name; else None."""
    if not scope.window or START not in scope.own:
        return None
    name, called = tree.name.lower(), {scope.window.lower()}
    if called == {"session_window"}:
        called.add("window")
    if tree.table.lower() in called and name in _BORDERS:
        return Column(_BORDERS[name])
    if not tree.table and name in called and tree.name not in scope.own:
        return Call("struct", (Literal("start"), Column(START), Literal("end"), Column(END)))
    return None


def with_borders(tree: exp.Expr, window: exp.Anonymous | None, name: str, scope: Scope) -> exp.Expr:
    """The tree with columns in place of TUMBLE_START(…) and of the window as it stands in GROUP BY."""
    calls = [node for node in tree.find_all(exp.Anonymous) if _meant(node) is not None]
    same = window is not None and any(node == window for node in tree.find_all(exp.Anonymous))
    if not calls and not same:
        return tree
    tree = tree.copy()
    for node in list(tree.find_all(exp.Anonymous)):
        if window is not None and node == window:
            tree = _replaced(tree, node, exp.column(name))
            continue
        meant = _meant(node)
        if meant is None:
            continue
        kind, border = meant
        if (
            window is None
            or str(window.this).lower() != kind
            or node.expressions != window.expressions
        ):
            written = window.sql() if window is not None else "no window"
            raise scope.error(
                f"{str(node.this).upper()} must repeat the window of GROUP BY, which has {written}. "
                f"{START} and {END} name its borders.",
                node,
            )
        column: exp.Expr = exp.column(START if border == START else END)
        if border == "rowtime":
            column = exp.Sub(
                this=column, expression=exp.Interval(this=exp.Literal.string("1 millisecond"))
            )
        tree = _replaced(tree, node, column)
    return tree


def _meant(node: exp.Anonymous) -> tuple[str, str] | None:
    return _FUNCTIONS.get(str(node.this).lower())


def _replaced(tree: exp.Expr, node: exp.Expr, by: exp.Expr) -> exp.Expr:
    if node is tree:
        return by
    node.replace(by)
    return tree
