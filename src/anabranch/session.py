"""The face: register streams and queries, look at the plan, start the run.

>>> from anabranch import Session, col, count
>>> session = Session.in_process(sites=2)
>>> packets = session.stream("tcp", generator="packets", rows=1000, ordered="time")
>>> flows = session.query("flows", session.from_stream("tcp")
...     .group_by((col("time") // 60).alias("tb"), "srcIP").agg(count().alias("cnt")))
>>> print(session.explain().splitlines()[0])
streams
"""

from __future__ import annotations

import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from anabranch.engine.exchange import Exchange, Twin
from anabranch.engine.run import Run, RunOptions, StepHook
from anabranch.errors import LanguageError, PlanningError, SettingsError, SourceError, suggest
from anabranch.language.builder import Query
from anabranch.language.expression import TYPES
from anabranch.language.graph import Node, Ordered, Stream, depth
from anabranch.language.window import duration
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.cost import assume
from anabranch.partitioning.search import search
from anabranch.partitioning.tree import needs_of
from anabranch.plan.compile import compile_queries
from anabranch.plan.explain import explain_plan
from anabranch.plan.subquery import Plan
from anabranch.settings import Settings, read_settings
from anabranch.sinks.base import Sink
from anabranch.sinks.driver import ConsoleSink, ForeachSink, MemorySink
from anabranch.sinks.files import FileSink
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource, file_source
from anabranch.sources.generate import Generator
from anabranch.sources.generator import GeneratorSource
from anabranch.state.place import RemotePlace, place

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TRIGGERS = ("available-now", "continuous")


class Session:
    """Streams and queries of one application, on one Spark session or in this process."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        sites: int | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
    ) -> None:
        self.spark = spark
        parallelism = spark.sparkContext.defaultParallelism if spark else 2
        self.sites = sites if sites is not None else parallelism
        if self.sites < 1:
            raise SettingsError(f"A session needs at least one site, not {self.sites}.")
        self.settings = (
            settings if isinstance(settings, Settings) else read_settings(settings or {})
        )
        self._streams: dict[str, Stream] = {}
        self._sources: dict[str, Source] = {}
        self._lateness: dict[str, int] = {}
        self._on_bad: dict[str, str] = {}
        self._on_late: dict[str, str] = {}
        self._queries: dict[str, Query] = {}

    @classmethod
    def local(
        cls, cores: int = 2, sites: int | None = None,
        settings: Settings | Mapping[str, Any] | None = None, ui: bool = False,
        conf: Mapping[str, str] | None = None,
    ) -> Session:  # fmt: skip
        """A session on a Spark of its own in this machine, quiet, on loopback.

        `ui=True` opens Spark's pages (address in `session.spark.sparkContext.uiWebUrl`).
        """
        from anabranch.engine.local import local_spark

        return cls(local_spark(f"local[{cores}]", ui, conf), sites, settings)

    @classmethod
    def in_process(
        cls, sites: int = 2, settings: Settings | Mapping[str, Any] | None = None
    ) -> Session:
        """A session without Spark, for tests of queries: the same split and site code, in turn."""
        return cls(None, sites, settings)

    # -- streams ----------------------------------------------------------------------------------

    def stream(
        self,
        name: str,
        source: DataFrame | Source | None = None,
        *,
        ordered: str,
        lateness: int | str = 0,
        path: str | Path | None = None,
        format: str | None = None,
        schema: Mapping[str, str] | pl.Schema | None = None,
        generator: str | Generator | None = None,
        rows: int | None = None,
        rate: int | None = None,
        on_bad: str = "stop",
        on_late: str = "count",
        **generator_options: Any,
    ) -> Query:
        """Registers an input and returns it as a query to build on.

        Give one of `path` (files), a streaming DataFrame, or `generator` (packets, calls, auctions,
        bids). `ordered` names the attribute that grows with time, `lateness` by how much rows may be
        out of order. `on_bad` is "stop" or "dead-letter", `on_late` is "count" or "dead-letter".
        """
        self._check_name(name)
        _check_choice("on_bad", on_bad, ("stop", "dead-letter"))
        _check_choice("on_late", on_late, ("count", "dead-letter"))
        given = [
            what
            for what, value in (("source", source), ("path", path), ("generator", generator))
            if value is not None
        ]
        if len(given) != 1:
            raise SourceError(
                f"Stream '{name}' needs one input: path=, a streaming DataFrame or generator=; "
                f"got {' and '.join(given) or 'none'}."
            )
        if generator_options and generator is None:
            unknown = next(iter(generator_options))
            raise SourceError(f"stream() has no option '{unknown}'.")
        if path is not None:
            made: Source = file_source(name, str(path), format, _schema(name, schema))
        elif generator is not None:
            made = _generator(name, generator, generator_options, rows, rate)
        elif hasattr(source, "isStreaming"):
            made = self._dataframe(name, source)
        else:
            assert source is not None
            made = source
        for reserved in (column for column in made.schema if column.startswith("__")):
            raise SourceError(f"Stream '{name}': the column name '{reserved}' is reserved (`__`).")
        column = _ordered(name, ordered, made.schema)
        self._streams[name] = Stream(name, pl.Schema(made.schema), column)
        self._sources[name] = made
        self._lateness[name] = duration(lateness, column.timestamps, "lateness") if lateness else 0
        if self._lateness[name] < 0:
            raise SettingsError(f"Stream '{name}': lateness is {lateness}; expected 0 or more.")
        self._on_bad[name], self._on_late[name] = on_bad, on_late
        return Query(self._streams[name])

    def _dataframe(self, name: str, frame: Any) -> Source:
        from anabranch.sources.spark import DataFrameSource

        if self.spark is None:
            raise SourceError(
                f"Stream '{name}' is a Spark DataFrame, but this session has no Spark: "
                "make it with Session(spark)."
            )
        return DataFrameSource(name, frame, self.settings.landing_ahead, self.settings.fsync)

    def from_stream(self, name: str) -> Query:
        """The rows of a stream, or of another query."""
        if name in self._streams:
            return Query(self._streams[name])
        if name in self._queries:
            return self._queries[name]
        known = [*self._streams, *self._queries]
        raise LanguageError(f"There is no stream or query '{name}'.{suggest(name, known)}")

    # -- queries ----------------------------------------------------------------------------------

    def query(self, name: str, query: Query | str, emit: str | None = None) -> Query:
        """Registers a continuous query, built or in SQL; sinks and other queries refer to its name.

        `emit="update"` makes an aggregate in SQL give changed groups each epoch.
        """
        self._check_name(name)
        if isinstance(query, str):
            from anabranch.language.sql import read_query

            known = {**self._queries, **{key: Query(node) for key, node in self._streams.items()}}
            query = read_query(query, known, name, emit or "final")
        elif not isinstance(query, Query):
            raise LanguageError(
                f"Query '{name}': expected SQL or a query made with from_stream(...), got "
                f"{type(query).__name__}."
            )
        elif emit is not None:
            raise LanguageError(f"Query '{name}': give emit to agg() when the query is built.")
        self._queries[name] = query
        return query

    def _check_name(self, name: str) -> None:
        if not name.replace("_", "").replace("-", "").isalnum():
            raise LanguageError(
                f"'{name}' cannot be a name: use letters, digits, '_' and '-' (it becomes a folder)."
            )
        if name in self._streams or name in self._queries:
            raise LanguageError(f"There already is a stream or query called '{name}'.")

    def _nodes(self) -> dict[str, Node]:
        """The queries, simpler ones first: names in the plan do not depend on the order of calls."""
        ordered = sorted(self._queries.items(), key=lambda item: (depth(item[1].node), item[0]))
        return {name: query.node for name, query in ordered}

    def plan(self) -> Plan:
        """The compiled plan of all queries."""
        # What goes to the dead-letter folder must be whole rows, or they could not be fed in again
        whole = [
            name
            for name in self._streams
            if "dead-letter" in (self._on_bad[name], self._on_late[name])
        ]
        shared = self.settings.strategy == "subquery" and bool(self._queries)
        return compile_queries(
            self._streams, self._nodes(), self._lateness, self.settings.allow_unbounded_state, whole,
            self.partitioning() if shared else None,
        )  # fmt: skip

    def partitioning(self) -> Choice:
        """The partitioning set that suits the whole query set best, and what else was considered.

        Costs follow from assumed rates.
        """
        tree = needs_of(self._nodes())
        return search(tree, assume(tree, {}), sites=self.sites)

    def explain(self) -> str:
        """The plan as text: streams, subqueries with their partitioning, outputs, and what suits all."""
        plan = explain_plan(self.plan(), self.sites, self.settings)
        why = textwrap.indent(self.partitioning().explain(), "  ")
        used = (
            "used"
            if self.settings.strategy == "subquery"
            else "with the setting strategy='subquery'"
        )
        return f"{plan}\none partitioning for all ({used}; costs at assumed rates)\n{why}"

    # -- runs -------------------------------------------------------------------------------------

    def start(
        self,
        *,
        sinks: Mapping[str, Any],
        checkpoint: str | Path | None = None,
        trigger: str | float = "available-now",
        at_end: str = "keep",
        dead_letter: str | Path | None = None,
        name: str = "anabranch",
        on_step: StepHook | None = None,
    ) -> Run:
        """Starts the queries and returns the handle of the run.

        `sinks` gives each query a folder (Parquet), a dict of path and format, "console", "memory", a
        function of (arrow_table, epoch) or a sink of `anabranch.sinks`. `trigger` is "available-now"
        (take what is there, then end), "continuous", or the seconds between epochs. `at_end="close"`
        treats the end of an available-now run as the end of the streams: all windows close. Without a
        checkpoint folder the run cannot be continued later: its state is deleted when it ends.
        """
        plan = self.plan()
        _check_choice("at_end", at_end, ("keep", "close"))
        if isinstance(trigger, str):
            _check_choice("trigger", trigger, (*TRIGGERS, "a number of seconds"))
        if not sinks:
            raise PlanningError("Give at least one query a sink: sinks={'flows': 'out/flows'}.")
        for query in sinks:
            if query not in self._queries:
                raise PlanningError(f"There is no query '{query}'.{suggest(query, self._queries)}")
        if dead_letter is not None:
            _require_folder("dead_letter", dead_letter)
        else:
            for stream in plan.streams:
                if "dead-letter" in (self._on_bad[stream], self._on_late[stream]):
                    raise SettingsError(
                        f"Stream '{stream}' sends input to the dead-letter folder, but none is "
                        "given: start(dead_letter='folder')."
                    )
        made = {query: self._sink(query, sink) for query, sink in sinks.items()}
        _check_folders(made)
        durable = place(str(checkpoint or tempfile.mkdtemp(prefix="anabranch-")))
        options = RunOptions(
            name=name,
            root=str(durable),
            checkpoint=durable.scratch,
            sites=self.sites,
            settings=self.settings,
            available_now=trigger == "available-now",
            interval=float(trigger) if not isinstance(trigger, str) else 0.0,
            close_at_end=at_end == "close",
            dead_letter=str(Path(dead_letter).absolute()) if dead_letter else None,
            on_bad=self._on_bad,
            on_late=self._on_late,
            temporary=checkpoint is None,
            **({"on_step": on_step} if on_step else {}),
        )
        for stream_name, source in self._sources.items():
            if isinstance(source, FileSource):
                source.place = durable
            elif hasattr(source, "land_in"):
                if isinstance(durable, RemotePlace):
                    raise SettingsError(
                        f"Stream '{stream_name}' is a streaming DataFrame: its batches land beside the "
                        f"checkpoint, which must be a folder then, not {durable}."
                    )
                source.land_in(
                    durable.scratch / "landing" / stream_name, plan.streams.get(stream_name)
                )
        return Run(plan, self._sources, made, self._exchange(), options).start()

    def _sink(self, query: str, sink: Any) -> Sink:
        if sink == "console":
            return ConsoleSink(query=query)
        if sink == "memory":
            return MemorySink()
        if isinstance(sink, (str, Path)):
            _require_folder(f"The sink of '{query}'", sink)
            return FileSink(Path(sink).absolute())
        if isinstance(sink, dict) and "path" in sink and sink.keys() <= {"path", "format"}:
            _require_folder(f"The sink of '{query}'", sink["path"])
            return FileSink(Path(sink["path"]).absolute(), sink.get("format", "parquet"))
        if hasattr(sink, "publish"):
            return sink  # type: ignore[no-any-return]
        if callable(sink):
            return ForeachSink(sink)
        raise SettingsError(
            f"The sink of '{query}' is a {type(sink).__name__}; expected a folder, "
            "{'path': folder, 'format': 'csv'}, 'console', 'memory', a function of "
            "(arrow_table, epoch) or a sink of anabranch.sinks."
        )

    def _exchange(self) -> Exchange:
        if self.spark is None:
            return Twin()
        from anabranch.engine.spark import SparkExchange

        return SparkExchange(self.spark.sparkContext)

    def stop(self) -> None:
        """Stops the Spark session, if this session has one."""
        if self.spark is not None:
            self.spark.stop()


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{what} is '{value}'; expected one of {', '.join(choices)}.")


def _check_folders(sinks: Mapping[str, Sink]) -> None:
    """Two queries in one folder would take each other's parts for their own."""
    taken: dict[Path, str] = {}
    for query, sink in sorted(sinks.items()):
        if isinstance(sink, FileSink):
            other = taken.setdefault(sink.folder.absolute(), query)
            if other != query:
                raise PlanningError(
                    f"Queries '{other}' and '{query}' have the same folder '{sink.folder}': "
                    "give each its own."
                )


def _require_folder(what: str, path: str | Path) -> None:
    if "://" in str(path):
        raise SettingsError(
            f"{what} is '{path}'; expected a local folder. For other places write with Spark: "
            "anabranch.sinks.spark.SparkSink."
        )


def _schema(stream: str, schema: Mapping[str, str] | pl.Schema | None) -> pl.Schema | None:
    if schema is None or isinstance(schema, pl.Schema):
        return schema
    for column, kind in schema.items():
        if kind not in TYPES:
            raise SourceError(
                f"Stream '{stream}', column '{column}': there is no type '{kind}'."
                f"{suggest(str(kind), TYPES)}"
            )
    return pl.Schema({column: TYPES[kind] for column, kind in schema.items()})


def _ordered(stream: str, column: str, schema: Mapping[str, pl.DataType]) -> Ordered:
    if column not in schema:
        raise LanguageError(
            f"Stream '{stream}': the ordered attribute '{column}' is not a column."
            f"{suggest(column, schema)}"
        )
    kind = schema[column]
    if isinstance(kind, pl.Datetime) and kind.time_unit == "ns":
        raise LanguageError(
            f"Stream '{stream}': the ordered attribute '{column}' counts nanoseconds; time is kept in "
            'microseconds here. Give schema= with "timestamp" for it, or convert it before.'
        )
    if not (kind.is_integer() or isinstance(kind, pl.Datetime)):
        raise LanguageError(
            f"Stream '{stream}': the ordered attribute '{column}' is {kind}; expected an integer "
            "or a timestamp."
        )
    return Ordered(column, isinstance(kind, pl.Datetime))


def _generator(
    stream: str, kind: str | Generator, options: Mapping[str, Any], rows: int | None,
    rate: int | None,
) -> Source:  # fmt: skip
    per_epoch = dict(options)
    extra = {k: per_epoch.pop(k) for k in ("rows_per_epoch",) if k in per_epoch}
    if isinstance(kind, str):
        known = Generator.__dataclass_fields__
        for option in per_epoch:
            if option not in known:
                raise SourceError(
                    f"Stream '{stream}': a generator has no option '{option}'."
                    f"{suggest(option, [*known, 'rows', 'rate', 'rows_per_epoch'])}"
                )
        kind = Generator(kind, **per_epoch)
    return GeneratorSource(kind, rows, rate, **extra)
