"""Rows among others as DuckDB SQL for the oracle: its own window functions, rows in one place told apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from anabranch.errors import PlanningError
from anabranch.language.aggregate import AggregateCall
from anabranch.language.order import Ordered
from anabranch.language.over import NUMBERS, SHIFTS, RowCall, RowFrame, Sort
from anabranch.language.ranked import Ranked
from anabranch.language.timeline import Timeline
from anabranch.operators.base import END_OF_TIME
from anabranch.testing.sql_expression import (
    EPOCH,
    SEQ,
    expression_sql,
    floor_divide,
    list_of,
    named,
    quote,
)


@dataclass
class Overs:
    """Writes one node; `rows` is its input with the number of the group (`__g`) and the time (`__t`)."""

    rows: str
    add: Callable[[str], str]
    emitted: Callable[[str, Ordered | None], str]
    aggregate: Callable[[AggregateCall, pl.Schema], str]

    def select(self, node: Ranked | Timeline) -> str:
        if isinstance(node, Ranked):
            return self._ranked(node)
        return self._timeline(node)

    def _ranked(self, node: Ranked) -> str:
        schema = node.input.schema
        rows = self.add(f"SELECT *, {floor_divide('__t', node.size)} AS __w FROM {self.rows}")
        order = [_sort(sort, schema) for sort in node.order]
        content = [f"{quote(name)} NULLS FIRST" for name in schema]
        values = self._values(node, "__g, __w", order, [*order, *content])
        limit = ""
        if node.limit is not None:
            by = [*order, *content] if node.limit.function == "row_number" else order
            number = f"{node.limit.function}() OVER (PARTITION BY __g, __w ORDER BY {list_of(by)})"
            values.append(f"{number} AS __place")
            limit = f" AND __place <= {node.limit.most}"
        emitted = self.emitted(f"(__w + 1) * {node.size}", node.input.ordered)
        values.append(f"{emitted} AS __emitted")
        made = self.add(f"SELECT *, {list_of(values)} FROM {rows}")
        columns = list_of([quote(name) for name in node.schema])
        return (
            f"SELECT {columns}, __emitted AS {EPOCH}, CAST(NULL AS BIGINT) AS {SEQ} FROM {made} "
            f"WHERE __emitted IS NOT NULL{limit}"
        )

    def _timeline(self, node: Timeline) -> str:
        time = node.input.ordered
        assert time
        first = [] if node.first is None else [expression_sql(node.first, node.input.schema)]
        whole = ["__t", *first, SEQ]
        over = f"OVER (PARTITION BY __g ORDER BY {list_of(whole)})"
        rows = self.add(f"SELECT *, row_number() {over} AS __n FROM {self.rows}")
        values = self._values(node, "__g", ["__t"], ["__n"])
        due = "__t + 1"
        if node.following:
            end = time.watermark(END_OF_TIME)
            following = f"lead(__t, {node.following}) OVER (PARTITION BY __g ORDER BY __n)"
            due = f"coalesce({following} + 1, {end})"
        values.append(f"{due} AS __due")
        made = self.add(f"SELECT *, {list_of(values)} FROM {rows}")
        columns = list_of([quote(name) for name in node.schema])
        emitted = self.emitted("__due", time)
        given = self.add(f"SELECT {columns}, {emitted} AS {EPOCH} FROM {made}")
        return (
            f"SELECT {columns}, {EPOCH}, CAST(NULL AS BIGINT) AS {SEQ} FROM {given} "
            f"WHERE {EPOCH} IS NOT NULL"
        )

    def _values(
        self, node: Ranked | Timeline, groups: str, order: list[str], whole: list[str]
    ) -> list[str]:
        """The calls of a node, as columns; `whole` tells apart what `order` does not."""
        found = []
        for part in node.calls:
            text = self._call(part.call, node.input.schema, groups, order, whole)
            found.append(named(text, node.schema, part.name))
        return found

    def _call(
        self, call: RowCall, schema: pl.Schema, groups: str, order: list[str], whole: list[str]
    ) -> str:
        exact = f"PARTITION BY {groups} ORDER BY {list_of(whole)}"
        peers = f"PARTITION BY {groups}" + (f" ORDER BY {list_of(order)}" if order else "")
        if call.function in NUMBERS:
            over = exact if call.function == "row_number" else peers
            return f"{call.function}() OVER ({over})"
        values = [expression_sql(value, schema) for value in call.arguments]
        if call.function in SHIFTS:
            shifted = list_of([values[0], str(call.number), *values[1:]])
            return f"{call.function}({shifted}) OVER ({exact})"
        if call.aggregate is not None:
            over = peers if call.frame.by_time else exact
            over = f"PARTITION BY {groups}" if call.frame.whole else f"{over} {_frame(call.frame)}"
            return f"{self.aggregate(call.aggregate, schema)} OVER ({over})"
        if call.function == "latest":
            # Of a timeline alone, whose rows have numbers
            every = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
            place = (
                f"max(CASE WHEN {values[1]} THEN __n END) OVER ({exact} ROWS UNBOUNDED PRECEDING)"
            )
            return f"list_extract(list({values[0]}) OVER ({exact} {every}), {place})"
        return self._picked(call, values[0], exact, peers)

    def _picked(self, call: RowCall, value: str, exact: str, peers: str) -> str:
        number = f", {call.number}" if call.function == "nth_value" else ""
        if not call.frame.by_time:
            return f"{call.function}({value}{number}) OVER ({exact} {_frame(call.frame)})"
        if call.frame.before is not None:
            raise PlanningError("The oracle cannot pick values of a length of time yet.")
        every = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
        upto = f"count(*) OVER ({peers})"
        place = {"first_value": "1", "last_value": upto}.get(call.function, str(call.number))
        values = f"list({value}) OVER ({exact} {every})"
        return f"CASE WHEN {place} <= {upto} THEN list_extract({values}, {place}) END"


def _sort(sort: Sort, schema: pl.Schema) -> str:
    turned = "DESC" if sort.descending else "ASC"
    nulls = "FIRST" if sort.nulls_first else "LAST"
    return f"{expression_sql(sort.expression, schema)} {turned} NULLS {nulls}"


def _frame(frame: RowFrame) -> str:
    kind = "RANGE" if frame.by_time else "ROWS"
    return f"{kind} BETWEEN {_border(frame.before, 'PRECEDING', 'FOLLOWING')} AND " + _border(
        frame.after, "FOLLOWING", "PRECEDING"
    )


def _border(places: int | None, side: str, other: str) -> str:
    if places is None:
        return f"UNBOUNDED {side}"
    if places == 0:
        return "CURRENT ROW"
    return f"{places} {side}" if places > 0 else f"{-places} {other}"
