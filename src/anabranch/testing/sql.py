"""The query graph as DuckDB SQL: the plain query, for the oracle to run over the whole input.

Every node becomes a table expression with the node's columns and two more: `__epoch`, the epoch in
which a run emits the row, and `__seq`, its arrival number (NULL for results of another aggregate: which
of two such rows with the same time comes first is not defined). A window's row is emitted in the epoch
whose watermark reaches the end of the window, an update in each epoch that changes the group. Updates have
the number of their group, too, and the next epoch that changes it: a group that is not there then has
left. DuckDB compares column names without regard to case. Expressions are in `sql_expression.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import PlanningError
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.groups import Aggregate, History
from anabranch.language.join import Join
from anabranch.language.lookup import Lookup
from anabranch.language.node import Node, Stream
from anabranch.language.order import Ordered
from anabranch.language.ranked import Ranked
from anabranch.language.stateless import Branch, Filter, Project, Union
from anabranch.language.timeline import Timeline
from anabranch.language.unnest import Unnest
from anabranch.language.updates import GONE
from anabranch.language.window import END, START, CountWindow, Hop, SessionGap, Tumble
from anabranch.language.windowed import Windowed
from anabranch.testing.quantiles import quantile_columns
from anabranch.testing.sql_calls import call_sql
from anabranch.testing.sql_expression import (
    EPOCH,
    SEQ,
    expression_sql,
    floor_divide,
    list_of,
    named,
    quote,
)  # fmt: skip
from anabranch.testing.sql_join import Joins
from anabranch.testing.sql_late import Punctual
from anabranch.testing.sql_over import Overs
from anabranch.testing.sql_unfolding import lookup_sql, time_sql, unnest_sql, windows_sql


@dataclass
class Translator:
    """Writes a node as a WITH query; one for each query."""

    clock: Sequence[int | None]
    """The streams' watermark after each epoch."""
    user: Mapping[str, str] = field(default_factory=dict)
    """SQL of user aggregates by name, with {} for the argument: {"doubled": "2 * sum({})"}."""
    clock_of: Callable[[Collection[str]], Sequence[int | None]] | None = None
    """The same of some of the streams by themselves; `clock` if all wait for each other."""
    tables: list[str] = field(default_factory=list)
    _known: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._punctual = Punctual(self.clock_of or (lambda _: self.clock), self._add)

    def query(self, node: Node) -> str:
        """The whole query; its columns are the node's, then `__epoch` and `__seq`."""
        last = self._table(node)
        if node.updates and node.updates.leave:
            last = self._marked(node, last)
        tables = ",\n".join(self.tables)
        return f"WITH {tables}\nSELECT * FROM {last}"

    def left_out(self, node: Node) -> str | None:
        """A query for the numbers of late rows that some operator had no place for."""
        self._table(node)
        if not self._punctual.left_out:
            return None
        return f"WITH {','.join(self.tables)} {' UNION '.join(self._punctual.left_out)}"

    def _met(self, node: Node) -> str:
        return self._punctual.of_input(node, self._table(node))

    def _marked(self, node: Node, last: str) -> str:
        """Updates, and the last row of each group in the epoch in which it leaves them."""
        columns = list_of([quote(name) for name in node.schema])
        return self._add(
            f"SELECT {columns}, FALSE AS {GONE}, {EPOCH}, {SEQ} FROM {last}\nUNION ALL "
            f"SELECT {columns}, TRUE, __next, {SEQ} FROM {last} AS seen WHERE __next IS NOT NULL AND NOT "
            f"EXISTS (SELECT 1 FROM {last} AS later WHERE later.__of = seen.__of "
            f"AND later.{EPOCH} = seen.__next)"
        )

    def _table(self, node: Node) -> str:
        if id(node) not in self._known:
            self._known[id(node)] = self._add(self._select(node))
        return self._known[id(node)]

    def _add(self, select: str) -> str:
        name = f"t{len(self.tables)}"
        # Materialized: a numbering of rows with ties must be made once, not once per use
        self.tables.append(f"{name} AS MATERIALIZED (\n{select}\n)")
        return name

    def _select(self, node: Node) -> str:
        match node:
            case Stream():
                columns = list_of([quote(name) for name in node.schema])
                return f"SELECT {columns}, {EPOCH}, {SEQ} FROM {quote(node.name)}"
            case Filter():
                predicate = expression_sql(node.predicate, node.schema)
                return f"SELECT * FROM {self._table(node.input)} WHERE {predicate}"
            case Branch():
                sure = [
                    f"coalesce({expression_sql(p, node.schema)}, FALSE)" for p in node.predicates
                ]
                wanted = [f"NOT {earlier}" for earlier in sure[: node.index]]
                wanted += sure[node.index : node.index + 1]
                return f"SELECT * FROM {self._table(node.input)} WHERE {' AND '.join(wanted)}"
            case Project():
                lists = quantile_columns(node)
                columns = list_of(
                    [
                        quote(str(c.expression)) + f" AS {quote(c.name)}"
                        if c.name in lists
                        else named(
                            expression_sql(c.expression, node.input.schema), node.schema, c.name
                        )
                        for c in node.columns
                    ]
                )
                of = ", __of, __next" if node.updates else ""
                return f"SELECT {columns}, {EPOCH}, {SEQ}{of} FROM {self._table(node.input)}"
            case Windowed():
                return windows_sql(node, self._table(node.input))
            case Unnest():
                return unnest_sql(node, self._table(node.input))
            case Lookup():
                return lookup_sql(node, self._table(node.input))
            case Union():
                names = list_of([*(quote(name) for name in node.schema), EPOCH, SEQ])
                return "\nUNION ALL ".join(
                    f"SELECT {names} FROM {self._table(p)}" for p in node.parts
                )
            case Aggregate():
                return self._aggregate(node)
            case History():
                return self._history(node)
            case Ranked() | Timeline():
                due = "__t + 1"
                if isinstance(node, Ranked):
                    due = f"({floor_divide('__t', node.size)} + 1) * {node.size}"
                rows = self._punctual.rows(node.input, self._keyed(node), due)
                return Overs(rows, self._add, self._emitted, self._call_text).select(node)
            case Join():
                return Joins(self._met, self._add, self._emitted, self.clock).select(node)
        raise PlanningError(f"The oracle cannot write '{node}' as DuckDB SQL yet.")

    # -- aggregates -------------------------------------------------------------------------------

    def _aggregate(self, node: Aggregate) -> str:
        """Rows numbered by group and window, then grouped by those numbers."""
        rows = self._keyed(node)
        match node.window:
            case Tumble(size):
                rows = self._add(f"SELECT *, {floor_divide('__t', size)} AS __w FROM {rows}")
                rows = self._punctual.rows(node.input, rows, f"(__w + 1) * {size}")
                start, end = f"any_value(__w) * {size}", f"(any_value(__w) + 1) * {size}"
            case Hop(size, slide):
                low, high = floor_divide(f"(__t - {size})", slide), floor_divide("__t", slide)
                number = f"unnest(range({low} + 1, {high} + 1))"
                rows = self._add(f"SELECT *, {number} AS __w FROM {rows}")
                rows = self._punctual.rows(node.input, rows, f"__w * {slide} + {size}")
                start, end = f"any_value(__w) * {slide}", f"any_value(__w) * {slide} + {size}"
            case SessionGap(gap):
                rows = self._punctual.rows(node.input, rows, "__t + 1")
                over = "OVER (PARTITION BY __g ORDER BY __t)"
                begins = f"CASE WHEN __t - lag(__t) {over} < {gap} THEN 0 ELSE 1 END"
                rows = self._add(f"SELECT *, {begins} AS __b FROM {rows}")
                # Up to the last row of the same time, so that it does not matter how lag() broke ties
                rows = self._add(f"SELECT *, sum(__b) {over} AS __w FROM {rows}")
                start, end = "min(__t)", f"max(__t) + {gap}"
            case CountWindow(size, advance):
                rows = self._punctual.rows(node.input, rows, "__t + 1")
                over = f"OVER (PARTITION BY __g ORDER BY __t, {SEQ})"
                rows = self._add(f"SELECT *, row_number() {over} - 1 AS __n FROM {rows}")
                low, high = floor_divide(f"(__n - {size})", advance), floor_divide("__n", advance)
                number = f"unnest(range(greatest({low} + 1, 0), {high} + 1))"
                rows = self._add(f"SELECT *, {number} AS __w FROM {rows}")
                start, end = "min(__t)", "max(__t)"
            case _:
                rows = self._add(f"SELECT *, 0 AS __w FROM {rows}")
                start = end = "NULL"
        columns = self._bounds(node, start, end)
        columns += [
            named(f"first(__k{number})", node.schema, key.name)
            for number, key in enumerate(node.keys)
        ]
        columns += [self._call(part, node.input.schema, node.schema) for part in node.aggregates]
        if node.emit == "update":
            return self._updates(rows, columns)
        if node.emit == "once":
            columns += [f"min({EPOCH}) AS {EPOCH}", f"NULL AS {SEQ}"]
            return f"SELECT {list_of(columns)} FROM {rows} GROUP BY __g, __w"
        due = f"{end} + 1" if isinstance(node.window, CountWindow) else end
        whole = f"count(*) = {node.window.size}" if isinstance(node.window, CountWindow) else "TRUE"
        emitted = self._emitted(due, node.input.ordered)
        return (
            f"SELECT {list_of(columns)}, {emitted} AS {EPOCH}, NULL AS {SEQ} FROM {rows} "
            f"GROUP BY __g, __w HAVING {whole} AND {emitted} IS NOT NULL"
        )

    def _keyed(self, node: Aggregate | History | Ranked | Timeline) -> str:
        """The input with its keys, the number of its group, and its time as an integer."""
        keys = [expression_sql(key.expression, node.input.schema) for key in node.keys]
        named = [f"{key} AS __k{number}" for number, key in enumerate(keys)]
        group = f"dense_rank() OVER (ORDER BY {list_of(keys)})" if keys else "0"
        ordered = node.input.ordered
        time = "NULL"
        if ordered:
            column = quote(ordered.column)
            time = time_sql(column, node.input.schema[ordered.column])
        sequence = node.sequence if isinstance(node, Aggregate) else None
        own = time if sequence is None else time_sql(quote(sequence), node.input.schema[sequence])
        columns = list_of(["*", *named, f"{group} AS __g", f"{time} AS __t", f"{own} AS __o"])
        return self._add(f"SELECT {columns} FROM {self._table(node.input)}")

    def _bounds(self, node: Aggregate, start: str, end: str) -> list[str]:
        ordered, window = node.input.ordered, node.window
        stamps = ordered is not None and ordered.timestamps
        if isinstance(window, Tumble) and window.index:
            number = "any_value(__w)"
            value = f"make_timestamp({number})" if stamps and window.size == 1 else number
            if node.schema[window.index] == pl.Date:
                value = f"(DATE '1970-01-01' + CAST({number} AS INTEGER))"
            return [named(value, node.schema, window.index)]
        if START not in node.schema:
            return []
        pair = [f"make_timestamp({bound})" if stamps else bound for bound in (start, end)]
        if node.schema[START] == pl.Date:
            pair = [f"(DATE '1970-01-01' + CAST({bound} AS INTEGER))" for bound in (start, end)]
        return [named(pair[0], node.schema, START), named(pair[1], node.schema, END)]

    def _updates(self, rows: str, columns: list[str]) -> str:
        """For every epoch the groups that got rows in it, over all rows up to it."""
        changed = self._add(
            f"SELECT DISTINCT __g AS __hg, __w AS __hw, {EPOCH} AS __he FROM {rows}"
        )
        following = "lead(__he) OVER (PARTITION BY __hg, __hw ORDER BY __he)"
        changed = self._add(f"SELECT *, {following} AS __hn FROM {changed}")
        return (
            f"SELECT {list_of(columns)}, __he AS {EPOCH}, NULL AS {SEQ}, (__hg, __hw) AS __of, "
            f"__hn AS __next FROM {changed} JOIN {rows} ON __g = __hg AND __w = __hw AND {EPOCH} <= __he "
            "GROUP BY __hg, __hw, __he, __hn"
        )

    def _emitted(self, due: str, ordered: Ordered | None) -> str:
        """The first epoch whose watermark reaches this time; NULL if none does."""
        assert ordered
        steps = ((epoch, ordered.watermark(source)) for epoch, source in enumerate(self.clock))
        cases = [f"WHEN {due} <= {mark} THEN {epoch}" for epoch, mark in steps if mark is not None]
        return f"CASE {' '.join(cases)} ELSE NULL END" if cases else "CAST(NULL AS INTEGER)"

    def _history(self, node: History) -> str:
        """Every row beside the rows of its history, then grouped by the row."""
        over = f"OVER (PARTITION BY __g ORDER BY __t, {SEQ})"
        rows = self._punctual.rows(node.input, self._keyed(node), "__t + 1")
        rows = self._add(f"SELECT *, row_number() {over} AS __n FROM {rows}")
        emitted = self._emitted("__t + 1", node.input.ordered)
        own = [f"{quote(name)} AS __h{number}" for number, name in enumerate(node.input.schema)]
        heads = self._add(
            f"SELECT {list_of(own)}, {SEQ} AS __hs, __g AS __hg, __n AS __hn, {emitted} AS __he FROM {rows}"
        )
        columns = [f"first(__h{n}) AS {quote(name)}" for n, name in enumerate(node.input.schema)]
        columns += [self._call(part, node.input.schema, node.schema) for part in node.aggregates]
        return (
            f"SELECT {list_of(columns)}, first(__he) AS {EPOCH}, first(__hs) AS {SEQ} FROM {heads} "
            f"JOIN {rows} ON __g = __hg AND __n BETWEEN __hn - {node.rows - 1} AND __hn "
            "WHERE __he IS NOT NULL GROUP BY __hg, __hn"
        )

    def _call_text(self, call: AggregateCall, schema: pl.Schema) -> str:
        argument = expression_sql(call.arguments[0], schema) if call.arguments else "*"
        return call_sql(call, argument, schema, self.user)

    def _call(self, part: NamedAggregate, schema: pl.Schema, results: pl.Schema) -> str:
        call = part.call
        argument = expression_sql(call.arguments[0], schema) if call.arguments else "*"
        if call.function == "approx_quantile" and call.user is None:
            # All values, so that ranks can be compared
            value = f"CAST({argument} AS DOUBLE)"
            known = f"FILTER ({argument} IS NOT NULL AND NOT isnan({value}))"
            return f"coalesce(list_sort(list({value}) {known}), []) AS {quote(part.name)}"
        return named(call_sql(call, argument, schema, self.user), results, part.name)
