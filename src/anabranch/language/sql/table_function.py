"""Functions in FROM: windows of rows, as Flink, RisingWave and Arroyo write them, and elements of lists."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import polars as pl
from sqlglot import exp

from anabranch.errors import LanguageError
from anabranch.language.builder import Query
from anabranch.language.expression import Column, Literal
from anabranch.language.order import told_by
from anabranch.language.sql.dialect import Inputs, Scope
from anabranch.language.sql.expression import translate
from anabranch.language.stateless import retimed
from anabranch.language.window import duration, length_text
from anabranch.language.windowed import Covering, Windowed

SIZES = {"tumble": ("size",), "hop": ("slide", "size"), "cumulate": ("step", "size")}
"""The window functions of FROM and their lengths, in the order of Flink and RisingWave."""
EXAMPLES = {
    "tumble": "FROM TUMBLE(bid, ts, INTERVAL '10' SECOND)",
    "hop": "FROM HOP(bid, ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND), the slide before the size",
    "cumulate": "FROM CUMULATE(bid, ts, INTERVAL '1' HOUR, INTERVAL '1' DAY), the step before the size",
    "session": "GROUP BY SESSION(ts, INTERVAL '10' SECOND)",
}


def function_of(tree: exp.Expr) -> exp.Anonymous | None:
    """The call of a table function in FROM, with or without TABLE(…) around it; None if it is none."""
    called = tree.this if isinstance(tree, exp.Table) else None
    if not isinstance(called, exp.Anonymous):
        return None
    inner = called.expressions[0] if len(called.expressions) == 1 else None
    if str(called.this).lower() == "table" and isinstance(inner, exp.Anonymous):
        return inner
    return called


def input_of(call: exp.Anonymous, scope: Scope) -> tuple[exp.Expr, list[exp.Expr]]:
    """What a window function reads, and its other arguments in order."""
    kind = str(call.this).lower()
    parts = list(call.expressions)
    if any(isinstance(part, exp.Kwarg) for part in parts):
        given = {
            part.this.name.lower(): part.expression for part in parts if isinstance(part, exp.Kwarg)
        }
        wanted = ("data", "timecol", *SIZES[kind])
        if len(given) < len(parts) or not {*wanted} <= {*given} <= {*wanted, "offset"}:
            raise _misused(kind, call, scope)
        parts = [given[name] for name in (*wanted, "offset") if name in given]
    if len(parts) < 2:
        raise _misused(kind, call, scope)
    return parts[0], parts[1:]


def read_by(table: exp.Table, scope: Scope) -> list[exp.Expr]:
    """The names that an input of FROM stands for: itself, what a window function reads, or none."""
    call = function_of(table)
    if call is None:
        return [table] if isinstance(table.this, exp.Identifier) else []
    if str(call.this).lower() not in SIZES:
        return [table]
    read = input_of(call, scope)[0]
    return [read] if isinstance(read, exp.Column) else []


def windowed(call: exp.Anonymous, query: Query, rest: list[exp.Expr], scope: Scope) -> Query:
    """The rows of a query in the windows of a call, by its time, its lengths and, if any, its offset."""
    kind = str(call.this).lower()
    column, *lengths = rest
    if isinstance(column, exp.Anonymous) and str(column.this).lower() == "descriptor":
        column = column.expressions[0] if len(column.expressions) == 1 else column
    sizes = SIZES[kind]
    if not len(sizes) <= len(lengths) <= len(sizes) + 1:
        raise _misused(kind, call, scope)
    names = {name: name for name in query.node.schema}
    own = replace(scope, schema=query.node.schema, inputs=Inputs({"": names}))
    found = translate(column, own) if isinstance(column, exp.Column) else None
    known = [time.column for time in told_by(query.node.ordered)] if query.node.ordered else []
    node = retimed(query.node, found.name) if isinstance(found, Column) else None
    if node is None:
        shown = " or ".join(f"'{name}'" for name in known) or "gone"
        raise scope.error(
            f"{kind.upper()} needs the ordered attribute of its input, which is {shown}.", call
        )
    assert node.ordered
    days = node.schema[node.ordered.column] == pl.Date
    numbers = [length_of(part, own, node.ordered.timestamps, days, kind) for part in lengths]
    offset = numbers[len(sizes)] if len(numbers) > len(sizes) else 0
    with scope.placed(call):
        covering = Covering(kind, numbers[len(sizes) - 1], numbers[0], offset)
        return Query(Windowed(node, covering))


def length_of(tree: exp.Expr, scope: Scope, timestamps: bool, days: bool, kind: str) -> int:
    """A length of time in the unit of the ordered attribute: 60, '10 seconds', INTERVAL '10' SECOND."""
    found = translate(tree, scope)
    value = found.value if isinstance(found, Literal) else None
    if isinstance(value, dt.timedelta):
        # An offset may be below zero
        sign = -1 if value < dt.timedelta() else 1
        with scope.placed(tree):
            return sign * duration(length_text(abs(value)), timestamps, f"{kind.upper()}", days)
    if type(value) is int or isinstance(value, str):
        with scope.placed(tree):
            return duration(value, timestamps, f"{kind.upper()}", days)
    raise scope.error(
        f"{kind.upper()} takes constant lengths, e.g. {EXAMPLES[kind]}; this is {found}.", tree
    )


def _misused(kind: str, call: exp.Expr, scope: Scope) -> LanguageError:
    return scope.error(
        f"{kind.upper()} in FROM takes an input, its ordered attribute, "
        f"{' and '.join(f'a {name}' for name in SIZES[kind])} and, if need be, an offset: "
        f"{EXAMPLES[kind]}.",
        call,
    )
