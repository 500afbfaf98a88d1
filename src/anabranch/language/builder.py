"""The Python way to write a query: a chain of calls that makes the same graph as SQL.

>>> import polars as pl
>>> from anabranch.language.aggregate import count, sum_
>>> from anabranch.language.expression import col
>>> from anabranch.language.node import Stream
>>> from anabranch.language.order import Ordered
>>> tcp = Query(Stream("tcp", pl.Schema({"time": pl.Int64, "srcIP": pl.Int64, "len": pl.Int64}),
...                    Ordered("time", timestamps=False)))
>>> flows = tcp.where(col("len") > 0).group_by((col("time") // 60).alias("tb"), "srcIP").agg(
...     count().alias("cnt"), sum_("len").alias("bytes"))
>>> list(flows.node.schema)
['tb', 'srcIP', 'cnt', 'bytes']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from anabranch.errors import LanguageError, no_attribute
from anabranch.language.aggregate import AggregateCall, NamedAggregate
from anabranch.language.aggregate_call import IN_ORDER
from anabranch.language.among import Among, sorts
from anabranch.language.bounds import all_of
from anabranch.language.checked import checked
from anabranch.language.expression import (
    Call,
    Column,
    Expression,
    Named,
    substitute,
)
from anabranch.language.group_window import grouping_of
from anabranch.language.groups import Aggregate, History
from anabranch.language.lookup import join_of
from anabranch.language.matching import right_names
from anabranch.language.node import Node
from anabranch.language.over import NamedRowCall, Sort
from anabranch.language.ranked import limited
from anabranch.language.sql.expression import read_expression
from anabranch.language.stateless import Branch, Filter, Project, Union
from anabranch.language.window_key import WindowKey

Key: TypeAlias = "str | Expression | Named | WindowKey"
HOW = {
    "outer": "full", "full_outer": "full", "left_outer": "left", "right_outer": "right",
    "left_semi": "semi", "left_anti": "anti",
}  # fmt: skip
"""Joins by the names that Spark gives them."""
SPARK_NAMES = {
    "filter": "where(…)", "groupBy": "group_by(…)", "groupby": "group_by(…)",
    "withColumn": "select(…) with all columns", "withColumnRenamed": "select(col('a').alias('b'), …)",
    "drop": "select(…) with the others", "selectExpr": "SQL: session.query(name, 'SELECT …')",
    "unionAll": "union(…)", "unionByName": "union(…), with the columns in the same order",
    "withWatermark": "lateness= of session.stream(…)",
    "writeStream": "session.start(sinks={name: 'folder'})", "write": "session.start(sinks={name: 'folder'})",
    "dropDuplicates": "group_by(…).agg(first(…)) with a window", "distinct": "group_by(…) with a window",
    "orderBy": "nothing: results come as their windows close", "limit": "where(…) with a bound",
}  # fmt: skip
"""What Spark's DataFrames call otherwise."""
On: TypeAlias = "str | tuple[str | Expression, str | Expression]"
"""What must be equal in a join: a column of both, or an expression over the left and one over the right."""


@dataclass(frozen=True, repr=False)
class Query:
    """Rows of a stream or of another query, to be filtered, computed, grouped."""

    node: Node

    def __repr__(self) -> str:
        return f"Query({', '.join(f'{name} {kind}' for name, kind in self.node.schema.items())})"

    if not TYPE_CHECKING:  # type checkers would take every name as there

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute("a query", name, SPARK_NAMES, dir(Query))

    @checked
    def where(self, predicate: Expression | str) -> Query:
        """The rows for which the predicate is true; `having` is the same after `agg`.

        A text is SQL: `where("len > 0 AND srcIP <> dstIP")`.
        """
        if isinstance(predicate, str):
            predicate = read_expression(predicate, self.node.schema, "where()")
        return Query(Filter(limited(self.node, predicate), predicate))

    having = where

    @checked
    def select(self, *columns: str | Expression | Named) -> Query:
        """These columns, computed for each row."""
        named = tuple(_named(column) for column in columns)
        same = [
            isinstance(part.expression, Column) and part.expression.name == part.name == name
            for part, name in zip(named, self.node.schema, strict=False)
        ]
        if len(named) == len(self.node.schema) and all(same):
            return self  # as they are, in their order: nothing to do for a row
        return Query(Project(self.node, named))

    @checked
    def case(self, *predicates: Expression) -> tuple[Query, ...]:
        """One query per predicate with the rows for which it is the first true one, and the rest.

        >>> import polars as pl
        >>> from anabranch.language.expression import col
        >>> from anabranch.language.node import Stream
        >>> calls = Query(Stream("calls", pl.Schema({"time": pl.Int64, "n": pl.Int64}), None))
        >>> long, short, other = calls.case(col("n") > 60, col("n") <= 60)
        """
        return tuple(
            Query(Branch(self.node, tuple(predicates), index))
            for index in range(len(predicates) + 1)
        )

    @checked
    def union(self, *others: Query) -> Query:
        """The rows of this query and of others with the same columns."""
        return Query(Union((self.node, *(other.node for other in others))))

    @checked
    def join(
        self, other: Query, on: On | Sequence[On] | None = None, how: str = "inner", *,
        where: Expression | None = None, suffix: str = "right", rows: int | None = None,
    ) -> Query:  # fmt: skip
        """Pairs of rows of this query and another that agree on all of `on`.

        `on` has names that both have, or pairs of a left and a right expression; an inner join may do
        without. `how` is inner, left, right, full, semi or anti, or Spark's name of one. Right columns that
        the left has too get `_<suffix>`; `where` is over the columns of both, and says how far apart in time
        rows may be. With `rows`, a row meets the last so many rows of the other query instead, whatever
        their times.

        >>> import polars as pl
        >>> from anabranch.language.expression import col
        >>> from anabranch.language.node import Stream
        >>> from anabranch.language.order import Ordered
        >>> flows = Query(Stream("flows", pl.Schema({"tb": pl.Int64, "n": pl.Int64}), Ordered("tb", False)))
        >>> list(flows.join(flows, on=[("tb", col("tb") + 1)], suffix="before").node.schema)
        ['tb', 'n', 'tb_before', 'n_before']
        """
        if not isinstance(other, Query):
            raise LanguageError(f"join() takes another query, not {type(other).__name__}.")
        if on is not None and not isinstance(on, (str, tuple, list)):
            raise LanguageError(
                f"join(on=…) takes names of columns or pairs (left, right), not {type(on).__name__}."
            )
        given = [on] if isinstance(on, (str, tuple)) else list(on or ())
        pairs = [_pair(part) for part in given]
        if rows is not None:
            # All rows are counted, whatever their keys
            names = right_names(self.node.schema, other.node.schema, suffix)
            shown = {own: Column(name) for own, name in names.items()}
            equal = [Call("=", (ours, substitute(theirs, shown))) for ours, theirs in pairs]
            where, pairs = all_of([*equal, *([] if where is None else [where])]), []
        keys = tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)
        kind = HOW.get(how, how)
        return Query(join_of(self.node, other.node, kind, keys, where, suffix, rows))

    @checked
    def group_by(self, *keys: Key) -> Grouped:
        """Groups of rows with the same keys; one key may be a window or `time // n`."""
        return Grouped(self.node, keys)

    @checked
    def over(
        self, *keys: str | Expression | Named, window: int | str | None = None,
        by: str | Expression | Sort | Sequence[Any] = (),
    ) -> Around:  # fmt: skip
        """Each row among those with the same keys: of a window in any order, or all in the order of time."""
        return Around(self.node, tuple(_named(key) for key in keys), window, sorts(by))

    @checked
    def history(self, *keys: str | Expression | Named, rows: int) -> Histories:
        """For each row the last `rows` rows of its group: `.agg(...)` computes a value on every row."""
        return Histories(self.node, tuple(_named(key) for key in keys), rows)


@dataclass(frozen=True)
class Around(Among):
    """Rows with the others of their group, waiting for what is asked of these."""

    def add(self, *calls: NamedRowCall) -> Query:
        """The rows with these values added: `.add(rank().alias("place"))`."""
        return Query(self.asked(calls))


@dataclass(frozen=True)
class Grouped:
    """Rows grouped by keys and a window, waiting for their aggregates."""

    node: Node
    keys: tuple[Key, ...]

    def agg(self, *aggregates: NamedAggregate | AggregateCall, emit: str = "final") -> Query:
        """One row per group and window: once when the window closes, or with emit='update' on change."""
        named = [key if isinstance(key, WindowKey) else _named(key) for key in self.keys]
        calls = tuple(_named_aggregate(part) for part in aggregates)
        read = [argument for part in calls for argument in part.call.arguments]
        grouping = grouping_of(self.node, named, read)
        ordered = any(part.call.function in IN_ORDER for part in calls)
        sequence = grouping.sequence if ordered else None
        query = Query(
            Aggregate(grouping.node, grouping.keys, grouping.window, calls, emit, sequence)
        )
        if grouping.shown is None:
            return query
        others = (*(key.name for key in grouping.keys), *(part.name for part in calls))
        return query.select(*grouping.shown, *others)


@dataclass(frozen=True)
class Histories:
    """Rows with the histories of their groups, waiting for their aggregates."""

    node: Node
    keys: tuple[Named, ...]
    rows: int

    def agg(self, *aggregates: NamedAggregate | AggregateCall) -> Query:
        """The input's rows with these aggregates over the last rows of the group added."""
        named = tuple(_named_aggregate(part) for part in aggregates)
        return Query(History(self.node, self.keys, self.rows, named))


def _pair(on: Any) -> tuple[Expression, Expression]:
    if isinstance(on, str):
        return Column(on), Column(on)
    if (
        not isinstance(on, tuple)
        or len(on) != 2
        or not all(isinstance(s, (str, Expression)) for s in on)
    ):
        raise LanguageError(
            f"join(on=…) takes names of columns or pairs (left, right) of expressions, not '{on}'."
        )
    left, right = (Column(side) if isinstance(side, str) else side for side in on)
    return left, right


def _named(column: str | Expression | Named) -> Named:
    if isinstance(column, Named):
        return column
    if isinstance(column, str):
        return Named(column, Column(column))
    if isinstance(column, Column):
        return Named(column.name, column)
    return Named(str(column), column)


def _named_aggregate(part: NamedAggregate | AggregateCall) -> NamedAggregate:
    if isinstance(part, NamedAggregate):
        return part
    if isinstance(part, AggregateCall):
        argument = "_".join(str(argument) for argument in part.arguments)
        return NamedAggregate(f"{part.function}_{argument}" if argument else part.function, part)
    raise LanguageError(
        f"agg() takes aggregates such as count() or sum_('len'), not '{part}'. "
        "Compute with their values in a select() after it."
    )
