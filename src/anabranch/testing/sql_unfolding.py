"""Rows in their windows, elements of lists and rows of tables, as DuckDB SQL."""

from __future__ import annotations

import polars as pl

from anabranch.language.lookup import Lookup
from anabranch.language.unnest import Unnest
from anabranch.language.window import END, START
from anabranch.language.windowed import Windowed
from anabranch.testing.sql_expression import (
    EPOCH,
    SEQ,
    expression_sql,
    floor_divide,
    list_of,
    named,
    quote,
)


def time_sql(column: str, kind: pl.DataType) -> str:
    """A time as the number that the engine counts with."""
    if isinstance(kind, pl.Datetime):
        return f"epoch_us({column})"
    if kind == pl.Date:
        return f"CAST(date_diff('day', DATE '1970-01-01', {column}) AS BIGINT)"
    return f"CAST({column} AS BIGINT)"


def windows_sql(node: Windowed, rows: str) -> str:
    """Every row of a table in its windows."""
    covering, time = node.covering, node.time
    size, step, offset = covering.size, covering.step, covering.offset
    own = time_sql(quote(time.column), node.input.schema[time.column])
    at = f"({own} - {offset})"
    begin = f"({floor_divide(at, size)} * {size} + {offset})"
    match covering.kind:
        case "tumble":
            borders = f"SELECT *, {begin} AS __s, {begin} + {size} AS __x FROM {rows}"
        case "hop":
            low, high = floor_divide(f"({at} - {size})", step), floor_divide(at, step)
            numbered = f"SELECT *, unnest(range({low} + 1, {high} + 1)) AS __n FROM {rows}"
            start = f"__n * {step} + {offset}"
            borders = f"SELECT *, {start} AS __s, {start} + {size} AS __x FROM ({numbered})"
        case _:
            ends = f"range({begin} + {step}, {begin} + {size} + 1, {step})"
            borders = (
                f"SELECT *, __b AS __s, __e AS __x FROM (SELECT *, {begin} AS __b, {own} AS __o, "
                f"unnest({ends}) AS __e FROM {rows}) WHERE __e > __o"
            )
    columns = [quote(name) for name in node.input.schema]
    for name, border in ((START, "__s"), (END, "__x")):
        value = f"make_timestamp({border})" if time.timestamps else border
        if node.schema[name] == pl.Date:
            value = f"(DATE '1970-01-01' + CAST({border} AS INTEGER))"
        columns.append(named(value, node.schema, name))
    return f"SELECT {list_of(columns)}, {EPOCH}, {SEQ} FROM ({borders})"


def unnest_sql(node: Unnest, rows: str) -> str:
    """Every row of a table once for each element of a list."""
    elements = expression_sql(node.list, node.input.schema)
    if node.outer:
        elements = f"CASE WHEN len({elements}) > 0 THEN {elements} ELSE [NULL] END"
    columns = [
        *(quote(name) for name in node.input.schema),
        f"unnest({elements}) AS {quote(node.name)}",
    ]
    if node.position is not None:
        columns.append(f"generate_subscripts({elements}, 1) AS {quote(node.position)}")
    return f"SELECT {list_of(columns)}, {EPOCH}, {SEQ} FROM {rows}"


def lookup_sql(node: Lookup, rows: str) -> str:
    """Every row of a table of the stream beside those of the other that have its keys."""
    ours, theirs = (
        [f"{expression_sql(key, schema)} AS __{side}{at}" for at, key in enumerate(keys)]
        for side, keys, schema in (
            ("ours", node.keys[0], node.input.schema),
            ("theirs", node.keys[1], node.table.schema),
        )
    )
    shown = [f"{quote(own)} AS {quote(name)}" for own, name in node.names.items()]
    wanted = [f"({expression_sql(part, node.table.schema)})" for part in node.predicates] or [
        "TRUE"
    ]
    left = f"(SELECT *, {list_of(ours)} FROM {rows})"
    right = (
        f"(SELECT {list_of([*theirs, *shown])} FROM {quote(node.table.name)} "
        f"WHERE {' AND '.join(wanted)})"
    )
    on = " AND ".join(f"__ours{at} = __theirs{at}" for at in range(len(ours)))
    columns = list_of([quote(name) for name in node.schema])
    return f"SELECT {columns}, {EPOCH}, {SEQ} FROM {left} {node.kind.upper()} JOIN {right} ON {on}"
