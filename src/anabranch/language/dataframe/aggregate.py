"""Aggregates in Spark's plans: what is computed of several is computed here once their values are there."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.builder import Key
from anabranch.language.dataframe.catalyst import SparkNode
from anabranch.language.dataframe.expression import translate
from anabranch.language.dataframe.rows import Rows, unused
from anabranch.language.dataframe.values import SparkColumns, kind_of, refused
from anabranch.language.expression import substitute
from anabranch.language.tree import Column, Expression, Literal, Named

AGGREGATES = {
    "Sum": "sum", "Count": "count", "Min": "min", "Max": "max", "Average": "avg",
    "VarianceSamp": "var", "StddevSamp": "stddev", "BitOrAgg": "bit_or", "BitAndAgg": "bit_and",
    "BitXorAgg": "bit_xor",
}  # fmt: skip


def read_aggregate(part: SparkNode, below: Rows, emit: str) -> Rows:
    """One row for each group: keys, windows, aggregates and what is computed of them."""
    keys: list[Key] = []
    scope = SparkColumns()
    grouped: dict[str, str] = {}
    """The columns of the keys, by the expressions that they stand for."""
    later = 0
    for number, written in enumerate(part.expressions("groupingExpressions")):
        key = written.children[0] if written.kind == "Alias" else written
        is_column = key.kind == "AttributeReference"
        if is_column and key.id in below.windows:
            _require_time(key, below)
            keys.append(below.windows[key.id].key)
            later = below.windows[key.id].beyond
            scope.windows[key.id] = ("window_start", "window_end")
        elif is_column and key.id in below.scope.windows:
            raise refused(part, "a window over windows")
        else:
            name = unused(key.name if is_column else f"key{number}", list(grouped.values()))
            grouped[str(key)] = name
            keys.append(Named(name, translate(key, below.scope)))
    aggregates: list[NamedAggregate] = []
    values: list[tuple[SparkNode, Expression]] = []
    inside = SparkColumns(below.scope.columns, scope.windows)
    for output in part.expressions("aggregateExpressions"):
        inner = output.children[0] if output.kind == "Alias" else output
        if inner.kind == "AttributeReference" and inner.id in scope.windows:
            scope.windows[output.id] = scope.windows[inner.id]
        else:
            values.append((output, _over(inner, inside, aggregates, grouped)))
    query = below.query.group_by(*keys).agg(*aggregates, emit=emit)
    windows = dict.fromkeys(name for window in scope.windows.values() for name in window)
    selected = [Named(name, Column(name)) for name in windows]
    if later:
        end = Column("window_end") - Literal(dt.timedelta(microseconds=later))
        selected[1] = Named("window_end", end)
        values = [(output, substitute(value, {"window_end": end})) for output, value in values]
    for output, value in values:
        name = unused(output.name, [column.name for column in selected])
        selected.append(Named(name, value))
        scope.columns[output.id] = name
    return Rows(query.select(*selected), scope, {})


def _require_time(key: SparkNode, below: Rows) -> None:
    ordered = below.query.node.ordered
    time = below.scope.columns.get(below.windows[key.id].time)
    if ordered is None or time != ordered.column:
        raise refused(key, "a window over a column without a watermark")


def _over(
    part: SparkNode, scope: SparkColumns, aggregates: list[NamedAggregate],
    grouped: dict[str, str],
) -> Expression:  # fmt: skip
    """An expression over aggregates and keys, whose aggregates are added to those to compute."""
    if str(part) in grouped:
        return Column(grouped[str(part)])
    if part.kind == "AggregateExpression":
        name = f"aggregate{len(aggregates)}"
        aggregates.append(NamedAggregate(name, _call(part, scope)))
        return Column(name)
    if part.kind == "GetStructField":
        return translate(part, scope)
    # What is below is computed already: columns that stand for it take its place
    below = SparkColumns()
    stands: list[SparkNode] = []
    values: dict[str, Expression] = {}
    for number, child in enumerate(part.children):
        name = f"#{number}"
        values[name] = _over(child, scope, aggregates, grouped)
        below.columns[number] = name
        fields = {"name": name, "exprId": {"id": number}, "dataType": kind_of(child)}
        stands.append(SparkNode("AttributeReference", fields, ()))
    return substitute(translate(replace(part, children=tuple(stands)), below), values)


def _call(part: SparkNode, scope: SparkColumns) -> AggregateCall:
    function = part.children[0]
    if part.fields.get("isDistinct") or len(part.children) > 1:
        raise refused(function, "an aggregate with DISTINCT or FILTER")
    if function.kind not in AGGREGATES:
        raise refused(function)
    name = AGGREGATES[function.kind]
    if name == "count":
        values = [child for child in function.children if child.kind != "Literal"]
        if len(values) > 1:
            raise refused(function, "a count of several columns")
        return AggregateCall("count", tuple(translate(value, scope) for value in values))
    return AggregateCall(name, (translate(function.children[0], scope),))
