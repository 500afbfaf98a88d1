"""Aggregates written as text: `count(*)`, `sum(len) AS bytes`, `count(DISTINCT srcIP)`.

One aggregate at a time; what is computed from several is a select after them.
"""

from __future__ import annotations

import decimal
import inspect
from collections.abc import Callable, Iterator, Mapping

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language import aggregate
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.deep import deeply
from anabranch.language.expression import Literal
from anabranch.language.sql.aggregate_forms import NAMES, known_form, read_form, within_group
from anabranch.language.sql.dialect import Scope, parse
from anabranch.language.sql.expression import name_of, split_alias, translate


def read_aggregate(
    text: str, schema: Mapping[str, pl.DataType], where: str = "aggregate"
) -> NamedAggregate | AggregateCall:
    """One aggregate, such as `sum(len) AS bytes`."""
    scope = Scope(text, schema, where)

    def read() -> NamedAggregate | AggregateCall:
        tree, name = split_alias(parse(scope), scope)
        call = translate_aggregate(tree, scope)
        return call.alias(name) if name else call

    return deeply(read, where, size=len(text))


def outside_queries(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of a tree but for those inside of sub-queries, from the outside in."""
    # Of a long chain most of the time would go to a general walk
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, exp.Query):
            continue
        below: list[exp.Expr] = []
        for value in node.args.values():
            if isinstance(value, exp.Expr):
                below.append(value)
            elif isinstance(value, list):
                below += [part for part in value if isinstance(part, exp.Expr)]
        waiting += reversed(below)


def is_aggregate(name: str) -> bool:
    """Whether there is an aggregate of this name, in any case."""
    return aggregate.known_as(name) is not None or known_form(name) is not None


def aggregates_in(tree: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls in a tree with their FILTER, outermost first, without those with OVER."""
    found: list[exp.Expr] = []
    for node in outside_queries(tree):
        if isinstance(node, exp.Anonymous) and is_aggregate(str(node.this)):
            whole: exp.Expr = node
            while isinstance(whole.parent, (exp.Filter, exp.WithinGroup)):
                whole = whole.parent
            if not isinstance(whole.parent, exp.Window):
                found.append(whole)
    return found


def translate_aggregate(tree: exp.Expr, scope: Scope) -> AggregateCall:
    """A call such as `sum(len)`, `count(DISTINCT srcIP)` or `count(*) FILTER (WHERE len > 9)`."""
    if isinstance(tree, exp.Filter):
        call = translate_aggregate(tree.this, scope)
        condition = translate(tree.expression.this, scope)
        with scope.placed(tree):
            return call.filter(condition)
    if isinstance(tree, exp.WithinGroup):
        return within_group(tree, scope)
    written = str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""
    name = known_form(written) or aggregate.known_as(written)
    if name is None:
        what = (
            f"there is no aggregate '{written}'"
            if written
            else f"{name_of(tree)} is not an aggregate"
        )
        raise scope.error(f"{what}.{suggest(written, aggregate.FUNCTIONS)}", tree)
    parts = list(tree.expressions)
    for part in parts:
        if any(aggregates_in(part)) or part.find(exp.Window):
            raise scope.error(
                f"{written.upper()} of an aggregate: aggregates cannot be nested. Compute the inner one "
                "in a sub-query and give it a name.",
                tree,
            )
        ordered = isinstance(part, exp.Order) and name not in NAMES
        if ordered or isinstance(part, (exp.IgnoreNulls, exp.RespectNulls)):
            raise scope.error(
                f"{name_of(part)} is not available in {written.upper()}: FIRST and LAST follow the ordered "
                "attribute.",
                tree,
            )
    if name in NAMES:
        assert isinstance(tree, exp.Anonymous)
        return read_form(name, tree, scope)
    if name == "count" and len(parts) == 1 and isinstance(parts[0], exp.Star):
        return aggregate.count()
    if parts and isinstance(parts[0], exp.Distinct):
        if name in ("sum", "avg") and len(parts[0].expressions) == 1:
            value = translate(parts[0].expressions[0], scope)
            return AggregateCall(f"{name}_distinct", (value,))
        if name not in ("count", "min", "max"):
            raise scope.error(
                f"DISTINCT is available in COUNT, SUM, AVG and ARRAY_AGG, not in {name.upper()}.",
                tree,
            )
        parts = list(parts[0].expressions)
        if len(parts) > 1:
            raise scope.error(
                "COUNT(DISTINCT …) takes one value: count a text of all of them, as in a || '-' || b.",
                tree,
            )
        name = "count_distinct" if name == "count" else name
    arguments = [translate(part, scope) for part in parts]
    make: Callable[..., AggregateCall] = getattr(
        aggregate, f"{name}_" if name in ("sum", "min", "max") else name
    )
    wanted = inspect.signature(make).parameters
    least = sum(part.default is part.empty for part in wanted.values()) or 1
    if not least <= len(arguments) <= len(wanted):
        count = str(least) if least == len(wanted) else f"{least} to {len(wanted)}"
        takes = f"takes {count} argument{'' if count == '1' else 's'}"
        rows = " COUNT(*) counts rows." if name == "count" else ""
        raise scope.error(f"{name.upper()} {takes}, got {len(parts)}.{rows}", tree)
    if len(arguments) == 2:
        return make(arguments[0], _parameter(name, parts[1], scope))
    return make(*arguments)


def _parameter(name: str, tree: exp.Expr, scope: Scope) -> float:
    """The constant that tunes an aggregate: the fraction of a quantile, the size of a sketch."""
    found = translate(tree, scope)
    value = found.value if isinstance(found, Literal) else None
    whole = name == "approx_distinct"
    if type(value) is int or (isinstance(value, (float, decimal.Decimal)) and not whole):
        return value if type(value) is int else float(value)
    wanted = "whole number" if whole else "number"
    raise scope.error(f"the second argument of {name.upper()} must be a {wanted}.", tree)
