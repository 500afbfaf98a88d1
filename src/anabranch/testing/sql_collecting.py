"""Aggregates that keep values of their group, as DuckDB SQL."""

from __future__ import annotations

import polars as pl

from anabranch.language.aggregate import AggregateCall
from anabranch.language.collecting import PAIRED
from anabranch.language.expression import Call, Expression, Literal
from anabranch.testing.sql_expression import SEQ, expression_sql


def collected_sql(call: AggregateCall, schema: pl.Schema) -> str | None:
    """The aggregate over the rows of a group; None if it is one of others."""
    name = call.function
    if name in ("sum_distinct", "avg_distinct", "collect_set", "quantile_cont", "quantile_disc"):
        value = expression_sql(call.arguments[0], schema)
        if name == "collect_set":
            return f"list_sort(list(DISTINCT {value}) FILTER ({value} IS NOT NULL))"
        if name == "quantile_cont":
            return f"quantile_cont(CAST({value} AS DOUBLE), {call.parameter!s})"
        if name == "quantile_disc":
            return f"quantile_disc({value}, {call.parameter!s})"
        return f"{name[:3]}(DISTINCT {value})"
    if name not in ("array_agg", "string_agg", "max_by", "min_by", *PAIRED):
        return None
    fields, condition = _fields(call.arguments[0], schema)
    known = f"FILTER ({condition})"
    if name in PAIRED:
        y, x = (f"CAST({fields[one]} AS DOUBLE)" for one in ("y", "x"))
        both = f"FILTER ({condition} AND {x} IS NOT NULL AND {y} IS NOT NULL)"
        if name == "regr_count":
            return f"count(*) {both}"
        if name == "corr":
            return f"nullif(corr({y}, {x}) {both}, 'NaN'::DOUBLE)"
        return f"{name}({y}, {x}) {both}"
    if name in ("max_by", "min_by"):
        by, value = fields["by"], fields["value"]
        both = f"FILTER ({condition} AND {by} IS NOT NULL AND {value} IS NOT NULL)"
        return (
            f"first({value} ORDER BY {by} {'DESC' if name == 'max_by' else 'ASC'}, {value}) {both}"
        )
    directions, _, separator = str(call.parameter).partition("|")
    order = [
        f"{fields[f'o{number}']} {'DESC' if letter == 'd' else 'ASC'} NULLS LAST"
        for number, letter in enumerate(directions)
    ]
    by = ", ".join([*order, "__o", SEQ])
    if name == "string_agg":
        quoted = separator.replace("'", "''")
        return f"string_agg({fields['value']}, '{quoted}' ORDER BY {by}) {known}"
    return f"list({fields['value']} ORDER BY {by}) {known}"


def _fields(argument: Expression, schema: pl.Schema) -> tuple[dict[str, str], str]:
    """The fields of the struct that an aggregate is over, and the condition for a row to count."""
    condition = "TRUE"
    if isinstance(argument, Call) and argument.function == "case":
        condition = expression_sql(argument.arguments[0], schema)
        argument = argument.arguments[1]
    assert isinstance(argument, Call)
    names = [part.value for part in argument.arguments[0::2] if isinstance(part, Literal)]
    values = [expression_sql(part, schema) for part in argument.arguments[1::2]]
    return {str(name): value for name, value in zip(names, values, strict=True)}, condition
