"""Calls of aggregates as DuckDB SQL."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from anabranch.errors import PlanningError
from anabranch.language.aggregate import AggregateCall
from anabranch.language.expression import type_of
from anabranch.testing.sql_collecting import collected_sql
from anabranch.testing.sql_expression import SEQ


def call_sql(call: AggregateCall, argument: str, schema: pl.Schema, user: Mapping[str, str]) -> str:
    """A call of this argument; `user` has the SQL of user aggregates by name, with {} for the argument."""
    if call.user is not None:
        if call.function not in user:
            raise PlanningError(
                f"The oracle needs the SQL of the user aggregate '{call.function}': "
                f"user={{'{call.function}': 'sum({{}})'}}."
            )
        return user[call.function].format(argument)
    collected = collected_sql(call, schema)
    if collected is not None:
        return collected
    match call.function:
        case "count_distinct" | "approx_distinct":
            return f"count(DISTINCT {argument})"
        case "first" | "last":
            return f"{call.function}({argument} ORDER BY __o, {SEQ})"
        case "sum" if type_of(call.arguments[0], schema, "oracle").is_float():
            return f"sum(CAST({argument} AS DOUBLE))"
        case "var" | "stddev":
            return f"{call.function}_samp(CAST({argument} AS DOUBLE))"
        case "var_pop" | "stddev_pop":
            return f"{call.function}(CAST({argument} AS DOUBLE))"
    return f"{call.function}({argument})"
