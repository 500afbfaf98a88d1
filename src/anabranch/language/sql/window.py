"""Windows of GROUP BY: TUMBLE, HOP, SESSION, COUNT_WINDOW and Spark's window(), of the ordered attribute."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from anabranch.language.builder import Query
from anabranch.language.expression import Column, Literal
from anabranch.language.order import told_by
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.window import length_text
from anabranch.language.window_key import WindowKey

WINDOWS = {
    "tumble": 1, "hop": 2, "session": 1, "count_window": 2, "window": 2, "session_window": 1,
}  # fmt: skip
"""The window functions of GROUP BY and the most sizes each takes."""
_SHIFTED = ("tumble", "hop", "window")
"""Those that may have an offset after their sizes."""


def read_window(tree: exp.Anonymous, query: Query, scope: Scope) -> WindowKey:
    """The window that a call in GROUP BY stands for."""
    kind = str(tree.this).lower()
    parts = list(tree.expressions)
    column = None
    if parts and isinstance(parts[0], exp.Column) and kind != "count_window":
        found = translate(parts[0], scope)
        known = [time.column for time in told_by(query.node.ordered)] if query.node.ordered else []
        if not isinstance(found, Column) or found.name not in known:
            raise scope.error(
                f"{kind.upper()} needs the ordered attribute, which is {_written(known, scope)}.",
                tree,
            )
        column, parts = found.name, parts[1:]
    parts = _in_order(kind, parts, tree, scope)
    sizes = [translate(part, scope) for part in parts]
    values = [size.value for size in sizes if isinstance(size, Literal)]
    lengths = [_length(value) for value in values if isinstance(value, (int, str, dt.timedelta))]
    offset = None
    if kind in _SHIFTED and len(lengths) == len(parts) == WINDOWS[kind] + 1:
        offset = lengths.pop()
        parts = parts[:-1]
    if not 1 <= len(lengths) <= WINDOWS[kind] or len(lengths) < len(parts):
        raise scope.error(
            f"{kind.upper()} takes the ordered attribute and up to {WINDOWS[kind]} constant "
            "size(s), e.g. TUMBLE(time, 60), HOP(ts, '1 minute', INTERVAL '10 seconds').", tree,
        )  # fmt: skip
    if kind == "window":
        kind = "hop" if len(lengths) == 2 and lengths[0] != lengths[1] else "tumble"
        lengths = lengths if kind == "hop" else lengths[:1]
    elif kind == "hop" and scope.spelling.slide_first:
        lengths = lengths[::-1]
    elif kind == "session_window":
        kind = "session"
    if kind == "count_window":
        kind, lengths = "rows", lengths if len(lengths) == 2 else lengths * 2
    if kind == "hop" and len(lengths) == 1:
        raise scope.error("HOP needs a size and a slide: HOP(time, 60, 10).", tree)
    return WindowKey(kind, tuple(lengths), column, offset)


def _length(value: int | str | dt.timedelta) -> int | str:
    if not isinstance(value, dt.timedelta):
        return value
    return f"-{length_text(-value)}" if value < dt.timedelta() else length_text(value)


def _in_order(kind: str, parts: list[exp.Expr], tree: exp.Expr, scope: Scope) -> list[exp.Expr]:
    """The sizes in our order; with names, `HOP(ts, slide => 10, size => 60)`, any order will do."""
    if not any(isinstance(part, exp.Kwarg) for part in parts):
        return parts
    order = ("size", "advance" if kind == "count_window" else "slide")[: WINDOWS[kind]]
    named = {
        part.this.name.lower(): part.expression for part in parts if isinstance(part, exp.Kwarg)
    }
    wanted = order[: len(parts)]
    if len(named) < len(parts) or set(named) != set(wanted):
        raise scope.error(
            f"{kind.upper()} takes sizes without names, or all of them with: "
            f"{', '.join(f'{name} => …' for name in order)}.",
            tree,
        )
    return [named[name] for name in wanted]


def _written(columns: list[str], scope: Scope) -> str:
    """Columns as a statement names them: with their inputs, if there are several."""
    tables = scope.inputs.tables
    names = {
        shown: f"{table}.{own}" if len(tables) > 1 else own
        for table, shown_of in tables.items()
        for own, shown in shown_of.items()
    }
    found = [f"'{names.get(column, column)}'" for column in columns]
    return " or ".join(found) or "nothing: a full join, or a select without it, loses it"


def is_ordered(tree: exp.Expr, query: Query, scope: Scope) -> bool:
    """Whether this is the ordered attribute of the input."""
    ordered = query.node.ordered
    if ordered is None or not isinstance(tree, exp.Column):
        return False
    found = translate(tree, scope)
    return isinstance(found, Column) and found.name == ordered.column
