"""The query graph as DuckDB SQL: the plain query, for the oracle to run over the whole input.

Every node becomes a table expression with the node's columns and two more: `__epoch`, the epoch in
which a run emits the row, and `__seq`, its arrival number (NULL for results of another aggregate: which
of two such rows with the same time comes first is not defined). A window's row is emitted in the epoch
whose watermark reaches the end of the window, an update in each epoch that changes the group. DuckDB
compares column names without regard to case. Expressions are in `sql_expression.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from anabranch.errors import PlanningError
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.expression import Column, type_of
from anabranch.language.graph import (
    Aggregate,
    Branch,
    Filter,
    History,
    Join,
    Node,
    Ordered,
    Project,
    Stream,
    Union,
)
from anabranch.language.window import END, START, CountWindow, Hop, SessionGap, Tumble
from anabranch.operators.base import END_OF_TIME
from anabranch.testing.sql_expression import expression_sql, floor_divide, quote, type_name

EPOCH, SEQ = "__epoch", "__seq"


@dataclass
class Translator:
    """Writes a node as a WITH query; one for each query."""

    clock: Sequence[int | None]
    """The streams' watermark after each epoch."""
    user: Mapping[str, str] = field(default_factory=dict)
    """SQL of user aggregates by name, with {} for the argument: {"doubled": "2 * sum({})"}."""
    tables: list[str] = field(default_factory=list)
    _known: dict[int, str] = field(default_factory=dict)

    def query(self, node: Node) -> str:
        """The whole query; its columns are the node's, then `__epoch` and `__seq`."""
        last = self._table(node)
        tables = ",\n".join(self.tables)
        return f"WITH {tables}\nSELECT * FROM {last}"

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
                columns = _list([quote(name) for name in node.schema])
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
                columns = _list(
                    [
                        quote(str(c.expression)) + f" AS {quote(c.name)}"
                        if c.name in lists
                        else _named(
                            expression_sql(c.expression, node.input.schema), node.schema, c.name
                        )
                        for c in node.columns
                    ]
                )
                return f"SELECT {columns}, {EPOCH}, {SEQ} FROM {self._table(node.input)}"
            case Union():
                names = _list([*(quote(name) for name in node.schema), EPOCH, SEQ])
                return "\nUNION ALL ".join(
                    f"SELECT {names} FROM {self._table(p)}" for p in node.parts
                )
            case Aggregate():
                return self._aggregate(node)
            case History():
                return self._history(node)
            case Join():
                return self._join(node)
        raise PlanningError(f"The oracle cannot write '{node}' as DuckDB SQL yet.")

    # -- aggregates -------------------------------------------------------------------------------

    def _aggregate(self, node: Aggregate) -> str:
        """Rows numbered by group and window, then grouped by those numbers."""
        rows = self._keyed(node)
        match node.window:
            case Tumble(size):
                rows = self._add(f"SELECT *, {floor_divide('__t', size)} AS __w FROM {rows}")
                start, end = f"any_value(__w) * {size}", f"(any_value(__w) + 1) * {size}"
            case Hop(size, slide):
                low, high = floor_divide(f"(__t - {size})", slide), floor_divide("__t", slide)
                number = f"unnest(range({low} + 1, {high} + 1))"
                rows = self._add(f"SELECT *, {number} AS __w FROM {rows}")
                start, end = f"any_value(__w) * {slide}", f"any_value(__w) * {slide} + {size}"
            case SessionGap(gap):
                over = "OVER (PARTITION BY __g ORDER BY __t)"
                begins = f"CASE WHEN __t - lag(__t) {over} < {gap} THEN 0 ELSE 1 END"
                rows = self._add(f"SELECT *, {begins} AS __b FROM {rows}")
                # Up to the last row of the same time, so that it does not matter how lag() broke ties
                rows = self._add(f"SELECT *, sum(__b) {over} AS __w FROM {rows}")
                start, end = "min(__t)", f"max(__t) + {gap}"
            case CountWindow(size, advance):
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
            _named(f"first(__k{number})", node.schema, key.name)
            for number, key in enumerate(node.keys)
        ]
        columns += [self._call(part, node.input.schema, node.schema) for part in node.aggregates]
        if node.emit == "update":
            return self._updates(rows, columns)
        due = f"{end} + 1" if isinstance(node.window, CountWindow) else end
        whole = f"count(*) = {node.window.size}" if isinstance(node.window, CountWindow) else "TRUE"
        emitted = self._emitted(due, node.input.ordered)
        return (
            f"SELECT {_list(columns)}, {emitted} AS {EPOCH}, NULL AS {SEQ} FROM {rows} "
            f"GROUP BY __g, __w HAVING {whole} AND {emitted} IS NOT NULL"
        )

    def _keyed(self, node: Aggregate | History) -> str:
        """The input with its keys, the number of its group, and its time as an integer."""
        keys = [expression_sql(key.expression, node.input.schema) for key in node.keys]
        named = [f"{key} AS __k{number}" for number, key in enumerate(keys)]
        group = f"dense_rank() OVER (ORDER BY {_list(keys)})" if keys else "0"
        ordered = node.input.ordered
        time = "NULL"
        if ordered:
            column = quote(ordered.column)
            time = f"epoch_us({column})" if ordered.timestamps else f"CAST({column} AS BIGINT)"
        columns = _list(["*", *named, f"{group} AS __g", f"{time} AS __t"])
        return self._add(f"SELECT {columns} FROM {self._table(node.input)}")

    def _bounds(self, node: Aggregate, start: str, end: str) -> list[str]:
        ordered, window = node.input.ordered, node.window
        stamps = ordered is not None and ordered.timestamps
        if isinstance(window, Tumble) and window.index:
            number = "any_value(__w)"
            value = f"make_timestamp({number})" if stamps and window.size == 1 else number
            return [_named(value, node.schema, window.index)]
        if START not in node.schema:
            return []
        pair = [f"make_timestamp({bound})" if stamps else bound for bound in (start, end)]
        return [_named(pair[0], node.schema, START), _named(pair[1], node.schema, END)]

    def _updates(self, rows: str, columns: list[str]) -> str:
        """For every epoch the groups that got rows in it, over all rows up to it."""
        changed = self._add(
            f"SELECT DISTINCT __g AS __hg, __w AS __hw, {EPOCH} AS __he FROM {rows}"
        )
        return (
            f"SELECT {_list(columns)}, __he AS {EPOCH}, NULL AS {SEQ} FROM {changed} "
            f"JOIN {rows} ON __g = __hg AND __w = __hw AND {EPOCH} <= __he GROUP BY __hg, __hw, __he"
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
        rows = self._add(f"SELECT *, row_number() {over} AS __n FROM {self._keyed(node)}")
        emitted = self._emitted("__t + 1", node.input.ordered)
        own = [f"{quote(name)} AS __h{number}" for number, name in enumerate(node.input.schema)]
        heads = self._add(
            f"SELECT {_list(own)}, {SEQ} AS __hs, __g AS __hg, __n AS __hn, {emitted} AS __he FROM {rows}"
        )
        columns = [f"first(__h{n}) AS {quote(name)}" for n, name in enumerate(node.input.schema)]
        columns += [self._call(part, node.input.schema, node.schema) for part in node.aggregates]
        return (
            f"SELECT {_list(columns)}, first(__he) AS {EPOCH}, first(__hs) AS {SEQ} FROM {heads} "
            f"JOIN {rows} ON __g = __hg AND __n BETWEEN __hn - {node.rows - 1} AND __hn "
            "WHERE __he IS NOT NULL GROUP BY __hg, __hn"
        )

    # -- joins ------------------------------------------------------------------------------------

    def _join(self, node: Join) -> str:
        """All combinations, each in the epoch of its last row; then what has met nothing."""
        parts = [self._numbered(node, number) for number in range(len(node.parts))]
        if node.rows is not None:
            return self._counted(node, node.rows, parts)
        conditions = [*node.equalities, *([node.predicate] if node.predicate is not None else [])]
        where = " AND ".join(f"({expression_sql(part, node.joined)})" for part in conditions)
        pairs = self._add(f"SELECT * FROM {_list(parts)} WHERE {where}")
        shown = [quote(name) for name in node.schema]
        last = f"greatest({_list([f'__e{number}' for number in range(len(parts))])})"
        if node.kind == "semi":
            columns = [f"first({name}) AS {name}" for name in shown]
            return (
                f"SELECT {_list(columns)}, min({last}) AS {EPOCH}, NULL AS {SEQ} FROM {pairs} "
                "GROUP BY __i0"
            )
        selects = []
        if node.kind != "anti":
            selects.append(f"SELECT {_list(shown)}, {last} AS {EPOCH}, NULL AS {SEQ} FROM {pairs}")
        for number in {"left": (0,), "anti": (0,), "right": (1,), "full": (0, 1)}.get(
            node.kind, ()
        ):
            selects.append(self._unmet(node, number, parts[number], pairs))
        return "\nUNION ALL ".join(selects)

    def _counted(self, node: Join, rows: int, parts: list[str]) -> str:
        """Pairs in which one row is among the last so many of its input before the other row."""
        order = "__t0 < __t1 OR (__t0 = __t1 AND __s0 <= __s1)"
        left, right = (
            self._add(
                f"SELECT *, row_number() OVER (ORDER BY __t{n}, __s{n}) - 1 AS __p{n} FROM {part}"
            )
            for n, part in enumerate(parts)
        )
        first = self._add(
            f"SELECT *, (SELECT count(*) FROM {right} WHERE NOT ({order})) AS __q0 FROM {left}"
        )
        second = self._add(
            f"SELECT *, (SELECT count(*) FROM {left} WHERE {order}) AS __q1 FROM {right}"
        )
        turns = [self._emitted(f"__t{n} + 1", part.ordered) for n, part in enumerate(node.parts)]
        conditions = [node.predicate] if node.predicate is not None else []
        where = " AND ".join(f"({expression_sql(part, node.joined)})" for part in conditions)
        near = (
            f"((__p1 < __q0 AND __p1 >= __q0 - {rows}) OR (__p0 < __q1 AND __p0 >= __q1 - {rows}))"
        )
        shown = _list([quote(name) for name in node.schema])
        return (
            f"SELECT {shown}, greatest({turns[0]}, {turns[1]}) AS {EPOCH}, NULL AS {SEQ} "
            f"FROM {first}, {second} WHERE {near} AND {where} "
            f"AND ({turns[0]}) IS NOT NULL AND ({turns[1]}) IS NOT NULL"
        )

    def _numbered(self, node: Join, number: int) -> str:
        """An input under the names of the joined rows, its rows numbered, with stream time."""
        part, names = node.parts[number], node.names[number]
        columns = [f"{quote(own)} AS {quote(shown)}" for own, shown in names.items()]
        keys = [f"({expression_sql(key, part.schema)}) IS NULL" for key in node.keys[number]]
        ordered, time = part.ordered, "NULL"
        if ordered and ordered.unit:
            column = quote(ordered.column)
            whole = f"epoch_us({column})" if ordered.timestamps else f"CAST({column} AS BIGINT)"
            time = f"{whole} * {ordered.unit}"
        columns += [
            f"{EPOCH} AS __e{number}", f"{SEQ} AS __s{number}", f"row_number() OVER () AS __i{number}",
            f"{time} AS __t{number}", f"{' OR '.join(keys) or 'FALSE'} AS __null{number}",
        ]  # fmt: skip
        return self._add(f"SELECT {_list(columns)} FROM {self._table(part)}")

    def _unmet(self, node: Join, number: int, rows: str, pairs: str) -> str:
        """The rows of an input that are in no combination, in the epoch that makes that sure."""
        own, lists = set(node.names[number].values()), quantile_columns(node)
        columns = [
            quote(name) if name in own
            else f"NULL AS {quote(name)}" if name in lists
            else _named("NULL", node.schema, name)
            for name in node.schema
        ]  # fmt: skip
        other = 1 - number
        most, ordered = node.bounds[number][other], node.parts[other].ordered
        if most is None or ordered is None or ordered.unit is None:
            ended = self.clock and self.clock[-1] == END_OF_TIME
            sure = str(len(self.clock) - 1) if ended else "NULL"
        else:
            due = f"{floor_divide(f'(__t{number} + {most})', ordered.unit)} + 1"
            sure = self._emitted(due, ordered)
        epoch = f"CASE WHEN __null{number} THEN __e{number} ELSE {sure} END"
        return (
            f"SELECT {_list(columns)}, greatest(__e{number}, {epoch}) AS {EPOCH}, NULL AS {SEQ} "
            f"FROM {rows} WHERE ({epoch}) IS NOT NULL "
            f"AND __i{number} NOT IN (SELECT __i{number} FROM {pairs})"
        )

    def _call(self, part: NamedAggregate, schema: pl.Schema, results: pl.Schema) -> str:
        call = part.call
        argument = expression_sql(call.arguments[0], schema) if call.arguments else "*"
        if call.function == "approx_quantile" and call.user is None:
            # All values, so that ranks can be compared
            value = f"CAST({argument} AS DOUBLE)"
            known = f"FILTER ({argument} IS NOT NULL AND NOT isnan({value}))"
            return f"coalesce(list_sort(list({value}) {known}), []) AS {quote(part.name)}"
        return _named(self._function(call, argument, schema), results, part.name)

    def _function(self, call: AggregateCall, argument: str, schema: pl.Schema) -> str:
        if call.user is not None:
            if call.function not in self.user:
                raise PlanningError(
                    f"The oracle needs the SQL of the user aggregate '{call.function}': "
                    f"user={{'{call.function}': 'sum({{}})'}}."
                )
            return self.user[call.function].format(argument)
        match call.function:
            case "count_distinct" | "approx_distinct":
                return f"count(DISTINCT {argument})"
            case "first" | "last":
                return f"{call.function}({argument} ORDER BY __t, {SEQ})"
            case "sum" if type_of(call.arguments[0], schema, "oracle").is_float():
                return f"sum(CAST({argument} AS DOUBLE))"
            case "var" | "stddev":
                return f"{call.function}_samp(CAST({argument} AS DOUBLE))"
        return f"{call.function}({argument})"


def _list(parts: Sequence[str]) -> str:
    return ", ".join(parts)


def _named(value: str, schema: Mapping[str, pl.DataType], name: str) -> str:
    kind = schema[name]
    typed = value if kind == pl.Null else f"CAST({value} AS {type_name(kind)})"
    return f"{typed} AS {quote(name)}"


def quantile_columns(node: Node) -> dict[str, float]:
    """Columns that carry an approximate quantile to this node, with its fraction."""
    if isinstance(node, Stream):
        return {}
    if isinstance(node, Join):
        found = [
            (names, quantile_columns(p)) for names, p in zip(node.names, node.parts, strict=True)
        ]
        carried = {names[own]: share for names, below in found for own, share in below.items()}
        return {name: share for name, share in carried.items() if name in node.schema}
    below = quantile_columns(node.inputs[0])
    if isinstance(node, Project):
        pairs = ((c.name, c.expression) for c in node.columns)
        return {n: below[e.name] for n, e in pairs if isinstance(e, Column) and e.name in below}
    if isinstance(node, Aggregate):
        return _fractions(node.aggregates)
    if isinstance(node, History):
        return {**below, **_fractions(node.aggregates)}
    return below


def _fractions(aggregates: Sequence[NamedAggregate]) -> dict[str, float]:
    return {
        part.name: part.call.parameter
        for part in aggregates
        if part.call.function == "approx_quantile" and isinstance(part.call.parameter, float)
    }
