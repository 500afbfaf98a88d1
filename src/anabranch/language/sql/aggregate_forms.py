"""Aggregates with a form of their own in SQL: ORDER BY within them, WITHIN GROUP, two arguments, DISTINCT."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Sequence

import polars as pl
from sqlglot import exp

from anabranch.errors import LanguageError
from anabranch.language import aggregate, collecting
from anabranch.language.aggregate_call import AggregateCall
from anabranch.language.expression import Expression, Literal, lift
from anabranch.language.kinds import type_words
from anabranch.language.sql.dialect import Scope
from anabranch.language.sql.expression import translate

_QUANTILES = {
    "quantile_cont": "quantile_cont", "percentile_cont": "quantile_cont", "percentile": "quantile_cont",
    "quantile_disc": "quantile_disc", "percentile_disc": "quantile_disc", "quantile": "quantile_disc",
}  # fmt: skip
_EXTREMES = {"bool_and": "min", "every": "min", "bool_or": "max", "any_value": "min", "arbitrary": "min",
             "logical_and": "min", "logical_or": "max", "some": "max"}  # fmt: skip
NAMES = frozenset(
    (*_QUANTILES, *_EXTREMES, "median", "count_if", "countif", "sum_distinct", "avg_distinct", "collect_set",
     "array_agg", "string_agg", "max_by", "min_by", *collecting.PAIRED)
)  # fmt: skip
"""The names of aggregates that are read here."""


def known_form(name: str) -> str | None:
    """The aggregate of this module that a text calls by this name, in any case; None if there is none."""
    name = name.lower()
    name = aggregate.ALIASES.get(name, name)
    return name if name in NAMES else None


def read_form(name: str, tree: exp.Anonymous, scope: Scope) -> AggregateCall:
    """The aggregate that a call stands for; `name` is what `known_form` gives."""
    parts, order = _ordered(list(tree.expressions), scope)
    distinct = bool(parts) and isinstance(parts[0], exp.Distinct)
    if distinct:
        parts = [*parts[0].expressions, *parts[1:]]
    arguments = [translate(part, scope) for part in parts]
    written = str(tree.this).upper()

    def need(least: int, most: int) -> None:
        if not least <= len(arguments) <= most:
            count = str(least) if least == most else f"{least} to {most}"
            raise scope.error(
                f"{written} takes {count} argument{'' if count == '1' else 's'}, got {len(arguments)}.",
                tree,
            )

    if order and name not in ("array_agg", "string_agg"):
        raise scope.error(f"ORDER BY is not available in {written}.", tree)
    if distinct and name not in ("array_agg", "any_value", "bool_and", "bool_or"):
        raise scope.error(f"DISTINCT is not available in {written}.", tree)
    with scope.placed(tree):
        if name in _EXTREMES:
            need(1, 1)
            kind = scope.kind(arguments[0])
            if name not in ("any_value", "arbitrary") and kind not in (pl.Boolean, pl.Null):
                raise LanguageError(
                    f"{written} needs a condition, but {arguments[0]} is {type_words(kind)}."
                )
            make = aggregate.min_ if _EXTREMES[name] == "min" else aggregate.max_
            return make(arguments[0])
        match name:
            case "count_if" | "countif":
                need(1, 1)
                return aggregate.count().filter(arguments[0])
            case "median":
                need(1, 1)
                return collecting.quantile_cont(arguments[0], 0.5)
            case "sum_distinct" | "avg_distinct" | "collect_set":
                need(1, 1)
                return AggregateCall(name, (arguments[0],))
            case "max_by" | "min_by":
                need(2, 2)
                both: Callable[..., AggregateCall] = getattr(collecting, name)
                return both(*arguments)
            case "array_agg":
                need(1, 1)
                if distinct and order:
                    raise LanguageError(f"{written}(DISTINCT …) is ascending: leave ORDER BY out.")
                if written == "COLLECT_LIST" or scope.spelling.name == "spark":
                    # Spark leaves NULL out, in ARRAY_AGG too
                    return collecting.array_agg(arguments[0], order).filter(
                        arguments[0].is_not_null()
                    )
                return collecting.array_agg(arguments[0], order, distinct)
            case "string_agg":
                need(1, 2)
                separator = _text(arguments[1]) if len(arguments) > 1 else ","
                return collecting.string_agg(arguments[0], separator, order)
        if name in _QUANTILES:
            need(2, 2)
            of = getattr(collecting, _QUANTILES[name])
            made: AggregateCall = of(arguments[0], _number(arguments[1]))
            return made
        need(2, 2)
        return collecting.paired(name, arguments[0], arguments[1])


def within_group(tree: exp.WithinGroup, scope: Scope) -> AggregateCall:
    """`percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`, `listagg(x, ',') WITHIN GROUP (ORDER BY y)`."""
    call = tree.this
    name = known_form(str(call.this)) if isinstance(call, exp.Anonymous) else None
    by = list(tree.expression.expressions)
    if name == "string_agg" and isinstance(call, exp.Anonymous):
        copy = call.copy()
        last = copy.expressions[-1]
        last.replace(exp.Order(this=last.copy(), expressions=[part.copy() for part in by]))
        return read_form(name, copy, scope)
    if name not in _QUANTILES or len(by) != 1 or len(call.expressions) != 1:
        raise scope.error(
            "WITHIN GROUP belongs to PERCENTILE_CONT(fraction), PERCENTILE_DISC(fraction) and LISTAGG, with "
            "ORDER BY one value.",
            tree,
        )
    assert name is not None
    fraction = _number(translate(call.expressions[0], scope))
    if by[0].args.get("desc"):
        if _QUANTILES[name] == "quantile_disc":
            raise scope.error("PERCENTILE_DISC … DESC is not available: order ascending.", tree)
        fraction = 1.0 - fraction
    with scope.placed(tree):
        made: AggregateCall = getattr(collecting, _QUANTILES[name])(
            translate(by[0].this, scope), fraction
        )
        return made


Order = list[tuple[Expression, bool]]


def _ordered(parts: Sequence[exp.Expr], scope: Scope) -> tuple[list[exp.Expr], Order]:
    """The arguments without the ORDER BY of the last, and that."""
    if not parts or not isinstance(parts[-1], exp.Order):
        return list(parts), []
    last = parts[-1]
    order: Order = []
    for one in last.expressions:
        value = translate(one.this, scope)
        if one.args.get("nulls_first"):
            order.append((value.is_not_null(), False))
        order.append((value, bool(one.args.get("desc"))))
    return [*parts[:-1], last.this], order


def _number(argument: Expression) -> float:
    value = argument.value if isinstance(argument, Literal) else None
    if isinstance(value, bool) or not isinstance(value, (int, float, decimal.Decimal)):
        raise LanguageError(f"The fraction of a quantile must be a constant, got {lift(argument)}.")
    return float(value)


def _text(argument: Expression) -> str:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise LanguageError(f"The separator of STRING_AGG must be a constant text, got {argument}.")
    return argument.value
