"""The oracle: what the results of a run must be, by DuckDB over the whole input.

It knows the epochs' rows, removes the late ones by the documented rule, and runs each query as plain
SQL (`sql.py`). So any query can be checked, however the run was partitioned, moved or interrupted:

>>> import polars as pl
>>> from anabranch import Session, col, count
>>> frames = [pl.DataFrame({"time": [1, 7, 12], "k": [1, 1, 2]}),
...           pl.DataFrame({"time": [3, 15], "k": [1, 2]})]
>>> session = Session.in_process(sites=2)
>>> rows = session.stream("rows", EpochSource(frames), ordered="time", lateness=5)
>>> flows = rows.group_by((col("time") // 5).alias("tb"), "k").agg(count().alias("n"))
>>> flows = session.query("flows", flows)
>>> run = session.start(sinks={"flows": "memory"}, at_end="close")
>>> run.await_termination()
True
>>> oracle = Oracle({"flows": flows}, {"rows": frames}, {"rows": 5})
>>> oracle.late                                                # the row at 3: the watermark was 7
{'rows': 1}
>>> assert_same_rows(run.results("flows"), oracle.expected("flows"))

The rule: a row is late if, at the start of its epoch, its time is below the newest of its stream minus the
lateness. The watermark after an epoch is the least of that over the streams that meet in the query set;
it never goes back, and there is none before every one of those streams has had a row. If a stream has lanes,
each of them is a stream to this rule. Where late rows are left out of closed windows only, the rule is that
watermark: a window takes what comes before it has closed, and `late` has the rows for which some operator of
the query set had no place at all. At the end of all streams it passes everything.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from anabranch.errors import PlanningError, suggest
from anabranch.language.builder import Query
from anabranch.language.node import Node, Stream
from anabranch.language.updates import GONE
from anabranch.operators.base import END_OF_TIME
from anabranch.testing.compare import assert_same_rows
from anabranch.testing.quantiles import quantile_columns
from anabranch.testing.sources import EpochSource, cut
from anabranch.testing.sql import Translator
from anabranch.testing.sql_expression import EPOCH, SEQ

if TYPE_CHECKING:
    import duckdb

Frames = Mapping[str, Sequence[pl.DataFrame]]


class Oracle:
    """The right results of a query set for given input.

    `frames` has for each stream the rows of every epoch in the order of their arrival, `lateness` is in
    the unit of the ordered attribute (microseconds for timestamps). With `ended` the run is taken to
    close all windows after the last epoch, as `start(at_end="close")` does. `lanes` says how many lanes the
    frames of a stream are cut into, as those of an `EpochSource` are. `user` gives the SQL of user
    aggregates by name: `{"doubled": "2 * sum({})"}`. Rows of epochs before `since` only tell the time: the
    queries began later. `tables` has those that streams are joined with.
    """

    def __init__(
        self,
        queries: Mapping[str, Query],
        frames: Frames,
        lateness: Mapping[str, int] | None = None,
        *,
        lanes: Mapping[str, int] | None = None,
        ended: bool = True,
        user: Mapping[str, str] | None = None,
        since: int = 0,
        tables: Mapping[str, pl.DataFrame] | None = None,
    ) -> None:
        self._nodes = {name: query.node for name, query in queries.items()}
        self._user = user or {}
        self._frames = frames
        self._lateness = lateness or {}
        self._lanes = lanes or {}
        self._ended = ended
        self._since = since
        self._streams = {s.name: s for node in self._nodes.values() for s in _streams(node)}
        self.epochs = max((len(frames[name]) for name in self._streams), default=0)
        self.late = dict.fromkeys(sorted(self._streams), 0)
        self._clocks: dict[str, list[int | None]] = {}
        self._connection = _connect()
        self._known: dict[str, pl.DataFrame] = {}
        for name, rows in (tables or {}).items():
            self._connection.register(name, rows.to_arrow())
        arrivals = self._number_arrivals()
        for component in _components(self._nodes.values()):
            self._admit(component, arrivals)
        self._count_left_out(arrivals)

    # -- results ----------------------------------------------------------------------------------

    def expected(self, query: str) -> pl.DataFrame:
        """All rows the query must have given by the end."""
        return self._results(query).drop(EPOCH)

    def by_epoch(self, query: str) -> dict[int, pl.DataFrame]:
        """The rows the query must give in each epoch, for epochs that have any."""
        rows = self._results(query)
        parts = rows.partition_by(EPOCH, as_dict=True, include_key=False)
        return {int(key[0]): part for key, part in sorted(parts.items())}

    def quantiles(self, query: str) -> dict[str, float]:
        """The columns with approximate quantiles: `expected` has all values of the group there."""
        return quantile_columns(self._node(query))

    def watermarks(self, query: str) -> list[int | None]:
        """The watermark of the query's streams after each epoch."""
        return self._clocks[min(self._node(query).streams)]

    def sql(self, query: str) -> str:
        """The SQL that gives the results, over tables of the rows that were not late."""
        return self._translator(query).query(self._node(query))

    def _translator(self, query: str) -> Translator:
        return Translator(self.watermarks(query), self._user, self._clock)

    def plain(self, sql: str) -> pl.DataFrame:
        """What any SQL gives over the rows that were not late: a table for each stream."""
        rows = pl.from_arrow(self._connection.sql(sql).to_arrow_table())
        assert isinstance(rows, pl.DataFrame)
        return rows

    def check(self, query: str, got: pl.DataFrame | Mapping[int, pl.DataFrame]) -> None:
        """Raises AssertionError if these are not the results: all rows, or the rows of each epoch."""
        quantiles = self.quantiles(query)
        if isinstance(got, pl.DataFrame):
            expected = self.expected(query)
            assert_same_rows(got, expected, quantiles=quantiles, where=f"Query '{query}'")
            return
        by_epoch = self.by_epoch(query)
        nothing = pl.DataFrame(schema=self.schema(query))
        for epoch in sorted({*by_epoch, *got}):
            rows = got.get(epoch, nothing)
            if epoch in by_epoch or rows.height:
                expected = by_epoch.get(epoch, self._results(query).clear().drop(EPOCH))
                where = f"Query '{query}', epoch {epoch}"
                assert_same_rows(rows, expected, quantiles=quantiles, where=where)

    def _results(self, query: str) -> pl.DataFrame:
        if query not in self._known:
            rows = self.plain(self.sql(query))
            wanted: dict[str, pl.DataType] = {**self.schema(query), EPOCH: pl.Int64()}
            wanted |= dict.fromkeys(self.quantiles(query), pl.List(pl.Float64))
            self._known[query] = rows.select(pl.col(n).cast(kind) for n, kind in wanted.items())
        return self._known[query]

    def schema(self, query: str) -> dict[str, pl.DataType]:
        """The columns of the results, with the one that marks groups that have left, if they can."""
        node = self._node(query)
        marked = node.updates is not None and node.updates.leave
        return {**node.schema, **({GONE: pl.Boolean()} if marked else {})}

    def _node(self, query: str) -> Node:
        if query not in self._nodes:
            raise PlanningError(f"There is no query '{query}'.{suggest(query, self._nodes)}")
        return self._nodes[query]

    # -- input ------------------------------------------------------------------------------------

    def _number_arrivals(self) -> dict[tuple[str, int], int]:
        """The number of the first row of each frame: by epoch, then stream, then place in the frame."""
        arrivals, number = {}, 0
        for epoch in range(self.epochs):
            for name in sorted(self._streams):
                arrivals[name, epoch] = number
                number += self._rows(name, epoch).height
        return arrivals

    def _rows(self, stream: str, epoch: int) -> pl.DataFrame:
        frames = self._frames[stream]
        return frames[epoch] if epoch < len(frames) else frames[0].clear()

    def _admit(self, component: Sequence[str], arrivals: Mapping[tuple[str, int], int]) -> None:
        """Makes a table of each stream's rows that are not late, and the clock they share."""
        newest: dict[tuple[str, int], int] = {}
        admitted: dict[str, list[pl.DataFrame]] = {name: [] for name in component}
        for epoch in range(self.epochs):
            for name in component:
                rows = self._rows(name, epoch)
                parts = cut(rows, self._lanes.get(name) or 1)
                on_time = pl.concat(
                    self._times(name, part)
                    >= newest.get((name, lane), -END_OF_TIME) - self._lateness.get(name, 0)
                    for lane, part in enumerate(parts)
                )
                if self._streams[name].late_rows:
                    on_time = pl.repeat(True, rows.height, eager=True)
                self.late[name] += rows.height - int(on_time.sum())
                number = pl.int_range(rows.height, eager=True) + arrivals[name, epoch]
                kept = rows.with_columns(pl.lit(epoch).alias(EPOCH), number.alias(SEQ))
                if epoch >= self._since:
                    admitted[name].append(kept.filter(on_time))
                self._hear(name, parts, newest)
        clock = self._clock(component)
        for name in component:
            self._clocks[name] = clock
            empty = self._frames[name][0].clear()
            empty = empty.with_columns(pl.lit(0).alias(EPOCH), pl.lit(0, pl.Int64).alias(SEQ))
            self._connection.register(name, pl.concat([empty, *admitted[name]]).to_arrow())

    def _hear(
        self, stream: str, parts: Sequence[pl.DataFrame], newest: dict[tuple[str, int], int]
    ) -> None:
        """Takes the newest times of the lanes of a stream."""
        for lane, part in enumerate(parts):
            if part.height:
                before = newest.get((stream, lane), -END_OF_TIME)
                newest[stream, lane] = max(before, *self._times(stream, part).to_list())

    def _clock(self, streams: Collection[str]) -> list[int | None]:
        """The watermark after each epoch of streams that wait for each other, and for no others."""
        newest: dict[tuple[str, int], int] = {}
        watermark: int | None = None
        clock: list[int | None] = []
        for epoch in range(self.epochs):
            for name in streams:
                parts = cut(self._rows(name, epoch), self._lanes.get(name) or 1)
                self._hear(name, parts, newest)
            if len(newest) == sum(self._lanes.get(name) or 1 for name in streams):
                reached = min(
                    time - self._lateness.get(name, 0) for (name, _), time in newest.items()
                )
                watermark = reached if watermark is None else max(watermark, reached)
            clock.append(watermark)
        return [*clock, END_OF_TIME] if self._ended else clock

    def _count_left_out(self, arrivals: Mapping[tuple[str, int], int]) -> None:
        """Counts late rows of streams that leave them out of closed windows only."""
        numbers: set[int] = set()
        for query, node in self._nodes.items():
            if any(self._streams[name].late_rows for name in node.streams):
                sql = self._translator(query).left_out(node)
                numbers |= (
                    set() if sql is None else set(self.plain(sql)[SEQ].drop_nulls().to_list())
                )
        for (name, epoch), first in arrivals.items():
            if self._streams[name].late_rows:
                mine = range(first, first + self._rows(name, epoch).height)
                self.late[name] += sum(number in numbers for number in mine)

    def _times(self, stream: str, rows: pl.DataFrame) -> pl.Series:
        ordered = self._streams[stream].ordered
        assert ordered
        column = rows[ordered.column]
        return (column.dt.epoch("us") if ordered.timestamps else column).cast(pl.Int64)


def _connect() -> duckdb.DuckDBPyConnection:
    """A connection with tables of its own; the database behind it takes a while, so all share one."""
    try:
        import duckdb  # noqa: F401
    except ImportError as error:
        raise PlanningError(
            "The oracle needs DuckDB, which is not installed: pip install 'anabranch[dev]' or duckdb."
        ) from error
    connection = _database().cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    import duckdb

    database = duckdb.connect()
    database.execute("SET threads = 1")
    return database


def _streams(node: Node) -> list[Stream]:
    if isinstance(node, Stream):
        return [node]
    return [stream for part in node.inputs for stream in _streams(part)]


def _components(nodes: Iterable[Node]) -> list[list[str]]:
    """The streams in sets that share a watermark: those that meet in a query, directly or not."""
    sets: list[set[str]] = []
    for node in nodes:
        met = set(node.streams)
        apart = [known for known in sets if not known & met]
        sets = [*apart, met.union(*(known for known in sets if known & met))]
    return [sorted(known) for known in sets]


__all__ = ["EpochSource", "Oracle", "assert_same_rows"]
