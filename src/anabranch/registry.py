"""The streams and queries that have been registered with a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from anabranch.choosing import Choosing
from anabranch.errors import (
    LanguageError,
    SettingsError,
    SourceError,
    suggest,
)
from anabranch.language.builder import Query
from anabranch.language.checked import checked
from anabranch.language.expression import Expression
from anabranch.language.node import Node, Stream
from anabranch.language.window import LONGEST, duration
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.written import read_set, read_sets
from anabranch.settings import Settings, read_settings
from anabranch.sources.ahead import read_ahead
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource, file_source
from anabranch.sources.generate import Generator
from anabranch.sources.kafka.source import KafkaSource, kafka_source
from anabranch.sources.make import (
    Registered,
    check_choice,
    find_ordered,
    make_generator,
    read_schema,
    require_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST_NAME = 120
"""Bytes of a name. Files of 255 are the most that file systems take, and ours are called after a query, its
subquery, an epoch and more."""


class Registry:
    """What a session reads, and what is asked of it."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        sites: int | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> None:
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
        rows: int | None = None,
        rate: int | None = None,
        on_bad: str = "stop",
        on_late: str = "count",
        max_ahead: int | str | None = None,
        time_unit: str | None = None,
        **options: Any,
    ) -> Query:
        """Registers an input and returns it as a query to build on.

        Give one of `path` (files), a streaming DataFrame, `kafka` (the servers of a cluster, with `topic`;
        docs/kafka.md has its options), or `generator` (packets, calls, auctions, bids).
        `ordered` names the attribute that grows with time, `lateness` by how much rows may be
        out of order. Files that wait are taken by the time of their last change, or with
        `file_order="name"` by their names. `on_bad` is "stop" or "dead-letter", `on_late` is "count" or
        "dead-letter". Rows more than `max_ahead` ahead of the clock are bad; integers need `time_unit`
        ("s", "ms", "us", "ns" since 1970) for that.
        `partitioned_by` says that rows come partitioned already: those that agree on these expressions
        are always in the same folder right under `path`, or in the same partition of the topic. With `lanes`,
        as with `partitioned_by`, each folder has a time of its own, and the stream's is that of the slowest;
        so has each partition of a topic.
        """
        self._check_name(name)
        check_choice("on_bad", on_bad, ("stop", "dead-letter"))
        check_choice("on_late", on_late, ("count", "dead-letter"))
        given = [
            what
            for what, value in (
                ("source", source), ("path", path), ("kafka", kafka), ("generator", generator)
            )
            if value is not None
        ]  # fmt: skip
        if len(given) != 1:
            raise SourceError(
                f"Stream '{name}' needs one input: path=, kafka=, a streaming DataFrame or generator=; "
                f"got {' and '.join(given) or 'none'}."
            )
        if options and generator is None and kafka is None:
            unknown = next(iter(options))
            raise SourceError(f"stream() has no option '{unknown}'.")
        if path is not None:
            made: Source = file_source(
                name, str(path), format, read_schema(name, schema), file_order
            )
        elif kafka is not None:
            given_for = {**options, "format": format}
            made = kafka_source(name, kafka, topic, read_schema(name, schema), given_for)
        elif generator is not None:
            made = make_generator(name, generator, options, rows, rate)
        elif hasattr(source, "isStreaming"):
            made = self._dataframe(name, source)
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
        node = Stream(name, pl.Schema(made.schema), find_ordered(name, ordered, made.schema))
        assert node.ordered
        allowed = duration(lateness, node.ordered.timestamps, "lateness") if lateness else 0
        if not 0 <= allowed <= LONGEST:
            raise SettingsError(
                f"Stream '{name}': lateness is {lateness}; expected 0 or more, and at most 2**59 in the unit "
                "of the ordered attribute."
            )
        terms = self._given(node, made, partitioned_by)
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

    def _given(
        self, node: Stream, source: Source, terms: Sequence[str | Expression]
    ) -> PartitioningSet:
        if not terms:
            return PartitioningSet()
        if isinstance(terms, str) or not isinstance(source, (FileSource, KafkaSource)):
            raise SourceError(
                f"Stream '{node.name}': partitioned_by= takes a list of expressions, and the input "
                "must be a folder of files (path=) with a folder for each part, or a topic (kafka=)."
            )
        if isinstance(source, FileSource) and not Path(source.path).is_dir():
            raise SourceError(
                f"Stream '{node.name}' is said to come partitioned, so its path must be a folder with a "
                f"folder for each part; '{source.path}' is none."
            )
        return read_set(node, terms)

    def _dataframe(self, name: str, frame: Any) -> Source:
        from anabranch.sources.spark import DataFrameSource

        if self.spark is None:
            raise SourceError(
                f"Stream '{name}' is a Spark DataFrame, but this session has no Spark: "
                "make it with Session(spark)."
            )
        settings = self.settings
        return DataFrameSource(
            name, frame, settings.landing_ahead, settings.fsync, settings.private_files
        )

    @checked
    def from_stream(self, name: str) -> Query:
        """The rows of a stream, or of another query."""
        known = self._known()
        if name not in known:
            raise LanguageError(f"There is no stream or query '{name}'.{suggest(name, known)}")
        return known[name]

    # -- queries ----------------------------------------------------------------------------------

    @checked
    def query(self, name: str, query: Query | str, emit: str | None = None) -> Query:
        """Registers a continuous query, built or in SQL; sinks and other queries refer to its name.

        `emit="update"` makes an aggregate in SQL give changed groups each epoch.
        """
        self._check_name(name)
        if isinstance(query, str):
            from anabranch.language.sql.read import read_query

            query = read_query(query, self._known(), name, emit or "final")
        elif not isinstance(query, Query):
            raise LanguageError(
                f"Query '{name}': expected SQL or a query made with from_stream(...), got "
                f"{type(query).__name__}."
            )
        elif emit is not None:
            raise LanguageError(f"Query '{name}': give emit to agg() when the query is built.")
        self._queries[name] = query
        return query

    def _known(self) -> dict[str, Query]:
        """All that a query can read."""
        streams = {name: Query(stream.node) for name, stream in self._streams.items()}
        return {**streams, **self._queries}

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str):
            raise LanguageError(f"A name must be a text, not {name!r}.")
        if len(name.encode(errors="replace")) > LONGEST_NAME:
            raise LanguageError(
                f"'{name[:40]}…' cannot be a name: it has {len(name)} letters, and as the name of a folder "
                f"at most {LONGEST_NAME} bytes fit."
            )
        if not name.replace("_", "").replace("-", "").isalnum():
            raise LanguageError(
                f"'{name}' cannot be a name: use letters, digits, '_' and '-' (it becomes a folder)."
            )
        if name in self._streams or name in self._queries:
            raise LanguageError(f"There already is a stream or query called '{name}'.")

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
