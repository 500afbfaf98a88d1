"""The streams and queries that have been registered with a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from anabranch.choosing import Choosing
from anabranch.dataframes import read_dataframe
from anabranch.engine.executors import refuse_connect
from anabranch.errors import LanguageError, SettingsError, SourceError, suggest
from anabranch.language.aggregate_call import column_of
from anabranch.language.builder import Query
from anabranch.language.checked import checked
from anabranch.language.expression import Call, Expression
from anabranch.language.lookup import Table, require_streams
from anabranch.language.naming import require_name
from anabranch.language.node import Node, Stream
from anabranch.language.user_function import UserFunction, user_function
from anabranch.language.window import LONGEST, duration
from anabranch.partitioning.written import read_sets
from anabranch.settings import CLOSED_WINDOWS, LATE_RULES, Settings, read_settings
from anabranch.sources.ahead import read_ahead
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource
from anabranch.sources.generate import Generator
from anabranch.sources.given import given_terms
from anabranch.sources.kafka.source import kafka_source
from anabranch.sources.lookup_table import LookupTable, lookup_table
from anabranch.sources.make import (
    Registered,
    check_choice,
    check_dead_letters,
    find_ordered,
    make_files,
    make_generator,
    require_columns,
)
from anabranch.sources.tables.make import table_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Registry:
    """What a session reads, and what is asked of it."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        sites: int | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> None:
        refuse_connect(spark)
        if spark is not None and not hasattr(spark, "sparkContext"):
            raise SettingsError(f"Expected a SparkSession or None for spark, got {spark!r}.")
        self.spark = spark
        parallelism = spark.sparkContext.defaultParallelism if spark else 2
        self.sites = sites if sites is not None else parallelism
        if type(self.sites) is not int or self.sites < 1:
            raise SettingsError(
                f"A session needs a whole number of sites, at least one, not {self.sites!r}."
            )
        self.settings = (
            settings
            if isinstance(settings, Settings)
            else read_settings({} if settings is None else settings)
        )
        self._streams: dict[str, Registered] = {}
        self._queries: dict[str, Query] = {}
        self._tables: dict[str, LookupTable] = {}
        self._functions: dict[str, UserFunction] = {}
        self._choosing = Choosing(self.sites, self.settings)

    # -- streams ----------------------------------------------------------------------------------

    @checked
    def stream(
        self,
        name: str,
        source: DataFrame | Source | None = None,
        *,
        ordered: str,
        lateness: int | str = 0,
        path: str | Path | None = None,
        format: str | None = None,
        file_order: str = "time",
        schema: Mapping[str, str] | pl.Schema | None = None,
        partitioned_by: Sequence[str | Expression] = (),
        lanes: bool = False,
        kafka: str | None = None,
        topic: str | None = None,
        generator: str | Generator | None = None,
        delta: str | Path | None = None,
        iceberg: str | None = None,
        rows: int | None = None,
        rate: int | None = None,
        on_bad: str = "stop",
        on_late: str = "count",
        late: str | None = None,
        max_ahead: int | str | None = None,
        time_unit: str | None = None,
        **options: Any,
    ) -> Query:
        """Registers an input and returns it as a query to build on.

        Give one of `path` (files), a streaming DataFrame, `kafka` (the servers of a cluster, with `topic`;
        docs/kafka.md has its options), `generator` (packets, calls, auctions, bids), or a table:
        `delta` (its folder) or `iceberg` (its name, with `catalog`, `uri` and `warehouse`); versions that
        take rows away stop the stream, or with `on_change="skip"` are passed over. `ordered` names the
        attribute that grows with time, `lateness` by how much rows may be out of order. Files that wait
        are taken by the time of their last change, or with `file_order="name"` by their names;
        `clean_source="delete"`, or `"archive"` to the folder `archive`, takes them away then. Files that
        change later stop the run, or with `growing="follow"` are read as they grow. `on_bad` is "stop"
        or "dead-letter", `on_late` is "count" or "dead-letter"; `late` says what late rows are left out
        of, "everything" or "closed-windows" (else the setting does). Rows more than `max_ahead` ahead of
        the clock are bad; integers need `time_unit` ("s", "ms", "us", "ns" since 1970) for that.
        `partitioned_by` says that rows come partitioned already: those that agree on these expressions are
        always in the same folder right under `path`, or partition of the topic. With `lanes`, as with
        `partitioned_by`, each folder has a time of its own, and the stream's is that of the slowest.
        Further options are those of the topic or the generator, or say what files look like: `delimiter`,
        `quote`, `escape`, `header`, `nulls`, `comment`, `decimal`, `time_format`, `encoding`, `types` (of
        some columns), `rename`, and `missing="null"` for columns that not every file has.
        """
        self._check_name(name)
        check_dead_letters(on_bad, on_late)
        late = self.settings.late if late is None else late
        check_choice("late", late, LATE_RULES)
        given = [
            what
            for what, value in (
                ("source", source), ("path", path), ("generator", generator), ("delta", delta),
                ("iceberg", iceberg), ("kafka", kafka),
            )
            if value is not None
        ]  # fmt: skip
        if len(given) != 1:
            raise SourceError(
                f"Stream '{name}' needs one input: path=, kafka=, a streaming DataFrame, delta=, iceberg= or "
                f"generator=; got {' and '.join(given) or 'none'}."
            )
        table = delta if delta is not None else iceberg
        if path is not None:
            made: Source = make_files(name, str(path), format, schema, file_order, options)
        elif kafka is not None:
            made = kafka_source(name, kafka, topic, schema, {**options, "format": format})
        elif generator is not None:
            made = make_generator(name, generator, options, rows, rate)
        elif table is not None:
            made = table_source(name, given[0], table, options)
        elif options:
            raise SourceError(f"stream() has no option '{next(iter(options))}'.")
        elif hasattr(source, "isStreaming"):
            from anabranch.sources.spark import dataframe_source

            made = dataframe_source(name, source, self.spark is not None, self.settings)
        else:
            if not hasattr(source, "schema") or not hasattr(source, "open"):
                raise SourceError(
                    f"Stream '{name}': expected a streaming DataFrame or a source, got {source!r}. "
                    "Files are given with path=."
                )
            made = cast(Source, source)
        for reserved in (column for column in made.schema if column.startswith("__")):
            raise SourceError(f"Stream '{name}': the column name '{reserved}' is reserved (`__`).")
        require_columns(name, made.schema)
        time = find_ordered(name, ordered, made.schema)
        node = Stream(name, pl.Schema(made.schema), time, late_rows=late == CLOSED_WINDOWS)
        assert node.ordered
        days = node.schema[ordered] == pl.Date
        allowed = (
            0 if lateness == 0 else duration(lateness, node.ordered.timestamps, "lateness", days)
        )
        if not 0 <= allowed <= LONGEST:
            raise SettingsError(
                f"Stream '{name}': lateness is {lateness}; expected 0 or more, and at most 2**59 in the unit "
                "of the ordered attribute."
            )
        terms = given_terms(node, made, partitioned_by)
        if lanes and not isinstance(made, FileSource):
            raise SourceError(
                f"Stream '{name}': lanes= is for files (path=), with a folder for each lane. The "
                "partitions of a "
                "topic are lanes already."
            )
        if (terms or lanes) and isinstance(made, FileSource):
            made = replace(made, lanes=True)
        ahead = read_ahead(node, max_ahead, time_unit)
        self._streams[name] = Registered(node, made, allowed, on_bad, on_late, terms, ahead)
        return Query(node)

    @checked
    def table(
        self, name: str, rows: Any = None, *, path: str | Path | None = None,
        delta: str | Path | None = None, format: str | None = None,
        schema: Mapping[str, str] | pl.Schema | None = None, **options: Any,
    ) -> Query:  # fmt: skip
        """Registers a table that streams can be joined with, and returns it for `join`.

        Give `path` (files, with the options of a stream of files), `delta` (a folder), or its rows as a
        DataFrame of Polars or Spark. Files and Delta tables are read again before the first epoch after
        they have changed; rows that are given stay as they are.
        """
        self._check_name(name)
        made = lookup_table(name, rows, path, delta, format, schema, options)
        require_columns(name, made.schema)
        self._tables[name] = made
        return self._known()[name]

    @checked
    def from_stream(self, name: str) -> Query:
        """The rows of a stream, or of another query."""
        known = self._known()
        if name not in known:
            raise LanguageError(f"There is no stream or query '{name}'.{suggest(name, known)}")
        return known[name]

    # -- queries ----------------------------------------------------------------------------------

    @checked
    def query(
        self, name: str, query: Query | str | DataFrame, emit: str | None = None,
        dialect: str | None = None, mode: str | None = None,
    ) -> Query:  # fmt: skip
        """Registers a continuous query, built or in SQL; sinks and other queries refer to its name.

        `emit="update"` makes an aggregate in SQL give changed groups each epoch, "once" each group when its
        first row is there. `dialect` says whose SQL a text is, where systems differ: "spark", "duckdb",
        "flink", "postgres", "risingwave" or "arroyo". An unstarted streaming DataFrame of Spark is a query
        too, with its inputs as streams; `mode` is Spark's output mode then.
        """
        self._check_name(name)
        if hasattr(query, "isStreaming"):
            query = read_dataframe(name, cast("DataFrame", query), mode or "append", self.stream)
        elif mode is not None:
            raise LanguageError(f"Query '{name}': mode= is for DataFrames of Spark; give emit=.")
        if isinstance(query, str):
            from anabranch.language.sql.read import read_query

            spoken = dialect if dialect is not None else self.settings.dialect
            query = read_query(query, self._known(), name, emit, spoken, self._functions)
        elif not isinstance(query, Query):
            raise LanguageError(
                f"Query '{name}': expected SQL or a query made with from_stream(...), got "
                f"{type(query).__name__}."
            )
        elif dialect is not None:
            raise LanguageError(f"Query '{name}': dialect= is for queries in SQL.")
        elif emit is not None:
            raise LanguageError(f"Query '{name}': give emit to agg() when the query is built.")
        require_streams(name, query.node)
        self._queries[name] = query
        return query

    @checked
    def function(
        self, name: str, body: Callable[..., Any], *, arguments: Sequence[str], result: str,
        check: bool = False,
    ) -> Callable[..., Expression]:  # fmt: skip
        """Registers a scalar function over Arrow columns, for SQL and to be called with expressions.

        `body` gets an Arrow array for each argument, as long as the rows, and returns one of as many values.
        Its value must depend on its arguments alone: with `check` every call is made twice and compared.
        """
        if name.lower() in self._functions:
            raise LanguageError(f"There already is a function called '{name}'.")
        made = user_function(name, body, arguments, result, check)
        self._functions[name.lower()] = made
        return lambda *parts: Call(made, tuple(map(column_of, parts)))

    def _known(self) -> dict[str, Query]:
        """All that a query can read."""
        streams = {name: Query(stream.node) for name, stream in self._streams.items()}
        tables = {name: Query(Table(name, one.schema)) for name, one in self._tables.items()}
        return {**streams, **tables, **self._queries}

    def _check_name(self, name: str) -> None:
        require_name(name)
        if name in self._streams or name in self._queries or name in self._tables:
            raise LanguageError(f"There already is a stream, table or query called '{name}'.")

    def _nodes(self) -> dict[str, Node]:
        """The queries, simpler ones first: names in the plan do not depend on the order of calls."""
        ordered = sorted(self._queries.items(), key=lambda item: (item[1].node.depth, item[0]))
        return {name: query.node for name, query in ordered}

    @checked
    def permit(self, *sets: Mapping[str, Sequence[str | Expression]]) -> None:
        """Restricts the partitioning of streams to these sets, e.g. `permit({"tcp": ["srcIP"]})`.

        The best one of them is what streams are sent by for all queries that it suits; other queries keep
        an exchange by their own keys. Streams of one set belong together, term by term; those it leaves
        out, and with `{}` all, have no common partitioning.
        """
        nodes = {name: stream.node for name, stream in self._streams.items()}
        self._choosing.permit(read_sets(nodes, sets))
