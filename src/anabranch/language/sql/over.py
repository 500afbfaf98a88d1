"""Aggregates OVER the last rows of a group: every row of the input with values over its history."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from anabranch.language import aggregate
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.builder import Query
from anabranch.language.expression import Named
from anabranch.language.over import NUMBERS, PICKS, SHIFTS
from anabranch.language.shorthand import ALIASES
from anabranch.language.sql.aggregate import translate_aggregate
from anabranch.language.sql.column import resolved
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate
from anabranch.language.sql.function import NAMED_FUNCTIONS, apply_function
from anabranch.language.sql.window import is_ordered

Item = tuple[exp.Expr, str]
"""A column of the SELECT list and its name."""


def read_histories(
    items: list[Item], windows: list[exp.Window], query: Query, scope: Scope
) -> Query:
    """Aggregates OVER (PARTITION BY keys ORDER BY time ROWS n PRECEDING): one history of all."""
    frames = {_frame(window, query, scope) for window in windows}
    partitions = {_listed(window.args.get("partition_by")) for window in windows}
    if len(frames) > 1 or len(partitions) > 1:
        raise scope.error(
            "all OVER clauses of a SELECT must have the same PARTITION BY and ROWS.", windows[1]
        )
    calls: dict[str, NamedAggregate] = {}
    computed = []
    for item, name in items:
        copy = item.copy()
        for window in [copy] if isinstance(copy, exp.Window) else list(copy.find_all(exp.Window)):
            call = _call(window, scope)
            noted = calls.setdefault(str(call), NamedAggregate(f"{call} OVER", call))
            column = resolved(noted.name)
            if window is copy:
                copy = column
            else:
                window.replace(column)
        computed.append((copy, name))
    keys = tuple(windows[0].args.get("partition_by") or ())
    named = [Named(f"key{at}", translate(key, scope)) for at, key in enumerate(keys)]
    over = query.history(*named, rows=frames.pop()).agg(*calls.values())
    after = replace(scope, schema=over.node.schema)
    return over.select(*(Named(name, translate(item, after)) for item, name in computed))


def is_history(window: exp.Window) -> bool:
    """Whether this is an aggregate over a number of rows up to the current one."""
    spec = window.args.get("spec")
    start = spec.args.get("start") if spec is not None else None
    return (
        spec is not None
        and spec.args.get("kind") == "ROWS"
        and spec.args.get("start_side") == "PRECEDING"
        and spec.args.get("end") in (None, "CURRENT ROW")
        and isinstance(start, exp.Literal)
        and isinstance(window.this, (exp.Anonymous, exp.Filter))
        and str(window.this.this).lower() not in (*NUMBERS, *SHIFTS, *PICKS)
    )


def _call(window: exp.Window, scope: Scope) -> AggregateCall:
    called = str(window.this.this).lower() if isinstance(window.this, exp.Anonymous) else ""
    if called in (*NAMED_FUNCTIONS, *ALIASES):
        raise scope.error(f"OVER needs an aggregate, and {called.upper()} is none.", window)
    if called and aggregate.known_as(called) is None:
        # Not there at all, or there is something to write instead
        apply_function(called, [], window, scope)
    return translate_aggregate(window.this, scope)


def _frame(window: exp.Window, query: Query, scope: Scope) -> int:
    """The number of rows an OVER clause covers, the current one included."""
    ordered = query.node.ordered
    called = window.this
    if isinstance(called, exp.Anonymous) and aggregate.known_as(str(called.this)) is None:
        _call(window, scope)
    order = window.args.get("order")
    by = list(order.expressions) if order else []
    if len(by) != 1 or not is_ordered(by[0].this, query, scope) or by[0].args.get("desc"):
        name = ordered.column if ordered else "the ordered attribute"
        raise scope.error(f"OVER needs ORDER BY {name}, ascending.", window)
    spec = window.args.get("spec")
    start = spec.args.get("start") if spec else None
    fits = (
        spec is not None
        and spec.args.get("kind") == "ROWS"
        and spec.args.get("start_side") == "PRECEDING"
        and spec.args.get("end") in (None, "CURRENT ROW")
        and isinstance(start, exp.Literal)
        and str(start.this).isdigit()
    )
    if not fits:
        raise scope.error(
            "OVER needs a number of rows: ROWS n PRECEDING (up to the current row). A stretch of time "
            "is a window of GROUP BY, such as HOP.",
            window,
        )
    assert isinstance(start, exp.Literal)
    return int(start.this) + 1


def _listed(parts: list[exp.Expr] | None) -> str:
    return ", ".join(part.sql() for part in parts or ())
