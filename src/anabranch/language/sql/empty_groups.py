"""What an expression of aggregates is for rows that have no group: SQL aggregates no rows then.

A sub-query in the place of a value always has one, also where nothing meets its WHERE: counts are 0 then and
other aggregates NULL. So groups are joined with their aggregates alone, and what is made of those is
computed after the join.
"""

from __future__ import annotations

from sqlglot import exp

from anabranch.language.sql.aggregate import aggregates_in

_COUNTS = (
    "count", "count_distinct", "count_if", "countif", "approx_distinct", "approx_count_distinct",
    "regr_count",
)  # fmt: skip


def apart(value: exp.Expr, table: str) -> tuple[list[exp.Expr], exp.Expr]:
    """The aggregates of an expression, named, and the expression of their columns in a table."""
    whole = exp.Paren(this=value.copy())
    named: dict[str, exp.Expr] = {}
    for call in aggregates_in(whole):
        found = named.setdefault(
            call.sql(), exp.alias_(call.copy(), f"sub_value{len(named) or ''}")
        )
        column: exp.Expr = exp.column(found.alias, table=table)
        if _name(call) in _COUNTS:
            column = exp.Anonymous(this="COALESCE", expressions=[column, exp.Literal.number(0)])
        call.replace(column)
    inner = whole.this
    assert isinstance(inner, exp.Expr)
    return list(named.values()), (whole if inner.args.get("expression") else inner.pop())


def _name(call: exp.Expr) -> str:
    while isinstance(call, (exp.Filter, exp.WithinGroup)):
        call = call.this
    return str(call.this).lower()
