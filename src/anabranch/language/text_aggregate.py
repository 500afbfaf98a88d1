"""Aggregates written as text: `count(*)`, `sum(len) AS bytes`, `count(DISTINCT srcIP)`.

One aggregate at a time; what is computed from several is a select after them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping

import polars as pl
from sqlglot import exp

from anabranch.errors import suggest
from anabranch.language import aggregate
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.dialect import Scope, parse
from anabranch.language.expression import Literal
from anabranch.language.text import arity, name_of, split_alias, translate


def read_aggregate(
    text: str, schema: Mapping[str, pl.DataType], where: str = "aggregate"
) -> NamedAggregate | AggregateCall:
    """One aggregate, such as `sum(len) AS bytes`."""
    scope = Scope(text, schema, where)
    tree, name = split_alias(parse(scope), scope)
    call = translate_aggregate(tree, scope)
    return call.alias(name) if name else call


def translate_aggregate(tree: exp.Expr, scope: Scope) -> AggregateCall:
    """A call such as `sum(len)`, `count(*)` or `count(DISTINCT srcIP)`."""
    name = str(tree.this).lower() if isinstance(tree, exp.Anonymous) else ""
    if name not in aggregate.FUNCTIONS:
        what = f"there is no aggregate '{name}'" if name else f"{name_of(tree)} is not an aggregate"
        raise scope.error(f"{what}.{suggest(name, aggregate.FUNCTIONS)}", tree)
    parts = list(tree.expressions)
    if name == "count" and len(parts) == 1 and isinstance(parts[0], exp.Star):
        return aggregate.count()
    if parts and isinstance(parts[0], exp.Distinct):
        if name not in ("count", "min", "max"):
            raise scope.error(f"DISTINCT is available in COUNT only, not in {name.upper()}.", tree)
        parts = list(parts[0].expressions)
        name = "count_distinct" if name == "count" else name
    arguments = [translate(part, scope) for part in parts]
    make: Callable[..., AggregateCall] = getattr(
        aggregate, f"{name}_" if name in ("sum", "min", "max") else name
    )
    wanted = inspect.signature(make).parameters
    least = sum(part.default is part.empty for part in wanted.values()) or 1
    if not least <= len(arguments) <= len(wanted):
        raise scope.error(f"{name.upper()} {arity(least, len(wanted))}, got {len(parts)}.", tree)
    if len(arguments) == 2:
        return make(arguments[0], _parameter(name, parts[1], scope))
    return make(*arguments)


def _parameter(name: str, tree: exp.Expr, scope: Scope) -> float:
    """The constant that tunes an aggregate: the fraction of a quantile, the size of a sketch."""
    found = translate(tree, scope)
    value = found.value if isinstance(found, Literal) else None
    whole = name == "approx_distinct"
    if type(value) is int or (type(value) is float and not whole):
        return value
    wanted = "whole number" if whole else "number"
    raise scope.error(f"the second argument of {name.upper()} must be a {wanted}.", tree)
