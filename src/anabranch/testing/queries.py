"""Random queries over streams with the columns of `cases.SCHEMA`: every window, every aggregate.

What cannot be compared exactly is not asked for: no condition on a variance, whose last digits depend on
the order of summing, and nothing that depends on the order of rows where that is not defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import polars as pl

from anabranch.language.aggregate import (
    NamedAggregate,
    avg,
    count,
    first,
    max_,
    min_,
    stddev,
    sum_,
    var,
)
from anabranch.language.builder import Key, Query
from anabranch.language.expression import Expression, Named, col
from anabranch.language.groups import Aggregate
from anabranch.language.window import END, START, CountWindow
from anabranch.language.window_key import count_window, hop, session_window, tumble
from anabranch.testing.aggregates import (
    IN_ORDER,
    OF_ANYTHING,
    OF_INTEGERS,
    OF_NUMBERS,
    ROUNDED,
    Asking,
)
from anabranch.testing.chooser import Chooser, Clock
from anabranch.testing.quantiles import quantile_columns
from anabranch.testing.scalars import comparison, computed

Columns: TypeAlias = "list[str | Expression | Named]"

LENGTHS = [5, 1, 2, 3, 7, 10, 30]


def tells_groups(query: Query) -> bool:
    """Whether groups never leave the results of a query, or can be told apart in them."""
    updates = query.node.updates
    return updates is None or updates.whole or not updates.leave


@dataclass
class QueryMaker:
    """Draws queries; one maker for all queries of a case."""

    chooser: Chooser
    keys: Sequence[str]
    """Columns of the streams that make good keys."""
    wide: set[str]
    """Columns with values too large, or NaN, for a variance that agrees in nine digits."""
    clock: Clock
    inexact: set[str] = field(default_factory=set)
    """Columns whose last digits depend on the order of summing."""
    _names: int = 0

    def name(self) -> str:
        self._names += 1
        return f"q{self._names}"

    def length(self) -> int | str:
        return self.clock.length(self.chooser.choice(LENGTHS))

    def usable(self, query: Query) -> dict[str, pl.DataType]:
        """The columns to compute with; for quantiles the oracle has lists."""
        no = {*quantile_columns(query.node), *self.inexact}
        return {name: kind for name, kind in query.node.schema.items() if name not in no}

    def of_kind(self, query: Query, wanted: pl.DataType) -> list[Expression]:
        usable = self.usable(query).items()
        return [col(name) for name, kind in usable if kind == wanted and name not in self.wide]

    # -- steps without state ----------------------------------------------------------------------

    def stateless(self, query: Query, keep: Sequence[str], select: bool = True) -> Query:
        """The query with up to two filters and projections; the columns in `keep` stay."""
        for _ in range(self.chooser.choice([0, 0, 1, 2])):
            match self.chooser.choice(["where", "case", "select"] if select else ["where", "case"]):
                case "where":
                    query = query.where(self.predicate(query))
                case "case":
                    number = self.chooser.integer(1, 3)
                    parts = query.case(*(self.predicate(query) for _ in range(number)))
                    query = self.chooser.choice(parts)
                case _:
                    query = self.select(query, keep)
        return query

    def select(self, query: Query, keep: Sequence[str]) -> Query:
        columns: Columns = [
            name for name in query.node.schema if name in keep or self.chooser.flag(0.8)
        ]
        for _ in range(self.chooser.integer(0 if columns else 1, 2)):
            columns.append(computed(self.chooser, partial(self.of_kind, query)).alias(self.name()))
        return query.select(*columns)

    def predicate(self, query: Query) -> Expression:
        simple = comparison(self.chooser, self.usable(query))
        match self.chooser.choice(["simple", "simple", "and", "or", "not"]):
            case "and":
                return simple & comparison(self.chooser, self.usable(query))
            case "or":
                return simple | comparison(self.chooser, self.usable(query))
            case "not":
                return ~simple
        return simple

    # -- stateful operators -----------------------------------------------------------------------

    def some_keys(self, query: Query) -> Columns:
        ordered = query.node.ordered
        no = {START, END, ordered.column if ordered else ""}
        known = [name for name in self.usable(query) if name not in no]
        known = [name for name in known if name in self.keys] or known
        keys: Columns = []
        for _ in range(self.chooser.integer(0, min(3, len(known)))):
            keys.append(known.pop(self.chooser.integer(0, len(known) - 1)))
        whole = [x for x in self.of_kind(query, pl.Int64()) if str(x) not in no]
        if whole and self.chooser.flag(0.2):
            keys.append((self.chooser.choice(whole) & 1).alias(self.name()))
        return keys

    def aggregates(self, query: Query, in_order: bool) -> list[NamedAggregate]:
        found = [count().alias(self.name())] if self.chooser.flag(0.6) else []
        schema = query.node.schema
        names = [*self.usable(query), *(name for name in schema if name in self.inexact)]
        for _ in range(self.chooser.integer(0 if found else 1, 5) if names else 0):
            name = self.chooser.choice(names)
            asked = self.chooser.choice(self._fitting(name, schema[name], in_order))
            own = self.name()
            found.append(asked(col(name)).alias(own))
            if name in self.inexact or asked in ROUNDED:
                self.inexact.add(own)
            if name in self.wide:
                self.wide.add(own)
        return found

    def _fitting(self, name: str, kind: pl.DataType, in_order: bool) -> list[Asking]:
        """What can be asked of a column."""
        if name in self.inexact:
            return [sum_, avg, min_, max_]
        options = [*OF_ANYTHING, *(IN_ORDER if in_order else ())]
        if kind.is_decimal():
            options.append(sum_)
        if kind.is_integer() or kind.is_float():
            options += [f for f in OF_NUMBERS if f not in (var, stddev) or name not in self.wide]
        if kind.is_integer():
            options += OF_INTEGERS * 2
        return options

    def window(self, query: Query, kinds: Sequence[str]) -> Key:
        ordered = query.node.ordered
        assert ordered
        kind = self.chooser.choice(kinds)
        if kind == "index" and query.node.schema[ordered.column].is_integer():
            size = self.chooser.choice([5, 1, 2, 10, 30])
            return (col(ordered.column) // size).alias(self.name())
        match kind:
            case "hop":
                slide, size = sorted((self.chooser.choice(LENGTHS), self.chooser.choice(LENGTHS)))
                return hop(self.clock.length(size), self.clock.length(slide))
            case "session":
                return session_window(self.length())
            case "rows":
                size = self.chooser.integer(1, 7)
                return count_window(size, self.chooser.integer(1, size))
        return tumble(self.length())

    def final(self, query: Query, in_order: bool) -> tuple[Query, list[str]]:
        """Aggregates over a window, and the keys that with the time name a row; none for ROWS."""
        kinds = ["index", "tumble", "hop", "session", *(("rows",) if in_order else ())]
        window = self.window(query, kinds)
        keys = self.some_keys(query)
        made = query.group_by(window, *keys).agg(*self.aggregates(query, in_order))
        names = [key.name if isinstance(key, Named) else str(key) for key in keys]
        return made, names

    def update(self, query: Query, in_order: bool) -> Query:
        """Aggregates emitted with every change, over a window or over everything."""
        keys: list[Any] = self.some_keys(query)
        if query.node.ordered and self.chooser.flag():
            keys.insert(0, self.window(query, ["index", "tumble"]))
        return query.group_by(*keys).agg(*self.aggregates(query, in_order), emit="update")

    def once(self, query: Query) -> Query:
        """Groups told with their first rows; of those of one time, values of these rows."""
        window = self.window(query, ["index", "tumble"])
        if self.chooser.flag():
            return query.group_by(window, *self.some_keys(query)).agg(emit="once")
        ordered = query.node.ordered
        assert ordered
        return query.group_by(ordered.column, *self.some_keys(query)).agg(
            first(self.chooser.choice(list(query.node.schema))).alias("seen"), emit="once"
        )

    def history(self, query: Query, keys: Sequence[str] | None = None) -> Query:
        """Every row with aggregates over the last rows of its group."""
        by = self.some_keys(query) if keys is None else list(keys)
        size = self.chooser.integer(1, 6)
        return query.history(*by, rows=size).agg(*self.aggregates(query, in_order=True))

    # -- whole query sets ---------------------------------------------------------------------------

    def query_set(self, inputs: Sequence[Query]) -> dict[str, Query]:
        """Some queries over all inputs; they read each other, or each keeps to its own input."""
        if len(inputs) > 1 and self.chooser.flag(0.3):
            sets = [self._over(source) for source in inputs]
            return {
                f"{name}{n}": query
                for n, queries in enumerate(sets)
                for name, query in queries.items()
            }
        source = inputs[0]
        if len(inputs) > 1:
            parts = [self.stateless(part, [], select=False) for part in inputs]
            source = parts[0].union(*parts[1:])
        elif self.chooser.flag(0.15):
            yes, no = source.case(self.predicate(source))
            source = yes.union(no)
        if self.chooser.flag(0.1):
            return {"mixed": self._mixed(source)}
        return self._over(source)

    def _over(self, source: Query) -> dict[str, Query]:
        """One to four queries over one source."""
        chooser = self.chooser
        source = self.stateless(source, ["time"])
        match chooser.choice(["final", "final", "final", "history", "update", "plain"]):
            case "plain":
                if chooser.flag():
                    return self._above({"seen": self.once(source)}, chooser.choice([0, 1]))
                return {"plain": source}
            case "update":
                changes = self.update(source, in_order=True)
                queries = {"changes": self._told(changes)}
                if chooser.flag(0.3):
                    queries["again"] = self._told(changes)
                return queries
            case "history":
                return self._above({"history": self.history(source)}, 1)
        base, keys = self.final(source, in_order=True)
        queries = {"base": base}
        # Rows of count windows with equal times are in no order
        counted = isinstance(base.node, Aggregate) and isinstance(base.node.window, CountWindow)
        if chooser.flag(0.3) and not counted:
            queries["trend"] = self.history(base, keys)
        return self._above(queries, chooser.choice([0, 1, 2]))

    def _above(self, queries: dict[str, Query], levels: int) -> dict[str, Query]:
        """With queries over these, each over one of those before it."""
        for number in range(levels):
            read = self.chooser.choice(list(queries.values()))
            assert read.node.ordered
            read = self.stateless(read, [read.node.ordered.column])
            if number == levels - 1 and self.chooser.flag(0.2):
                queries[f"above{number}"] = self.update(read, in_order=False)
            else:
                queries[f"above{number}"], _ = self.final(read, in_order=False)
        last = list(queries)[-1]
        queries[last] = self._told(queries[last])
        return queries

    def _told(self, query: Query) -> Query:
        """A stateless query over this one, if a reader could tell which groups leave it."""
        asked = self.stateless(query, [])
        return asked if tells_groups(asked) else query

    def _mixed(self, source: Query) -> Query:
        """An aggregate over rows of a stream together with results of another aggregate."""
        window = self.window(source, ["tumble", "hop", "session"])
        counted = source.group_by(window, "i").agg(count().alias("v"))
        assert counted.node.ordered
        kind = source.node.schema["time"]
        results = counted.select(col(counted.node.ordered.column).alias("time"), "i", "v")
        if results.node.schema["time"] != kind:
            return counted
        return self.final(results.union(source.select("time", "i", "v")), in_order=False)[0]
