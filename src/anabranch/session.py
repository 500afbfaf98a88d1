"""The face: register streams and queries, look at the plan, start the run.

>>> from anabranch import Session, col, count
>>> session = Session.in_process(sites=2)
>>> packets = session.stream("tcp", generator="packets", rows=1000, ordered="time")
>>> flows = session.query("flows", session.from_stream("tcp")
...     .group_by((col("time") // 60).alias("tb"), "srcIP").agg(count().alias("cnt")))
>>> print(session.explain().splitlines()[0])
Streams
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import polars as pl

from anabranch.choosing import Choosing
from anabranch.engine.evolution import KEEP_SAME, REFUSE
from anabranch.engine.faults import Burdens, Faults, StepHook
from anabranch.engine.options import RunOptions, interval_of
from anabranch.engine.run import Run
from anabranch.engine.transport import Transport, Twin
from anabranch.errors import (
    LanguageError,
    PlanningError,
    SettingsError,
    SourceError,
    no_attribute,
    suggest,
)
from anabranch.evolving import prepare
from anabranch.explain.draw import draw_svg
from anabranch.explain.explanation import Explanation
from anabranch.explain.text import explain_text
from anabranch.language.builder import Query
from anabranch.language.checked import checked
from anabranch.language.expression import Expression
from anabranch.language.node import Node, Stream
from anabranch.language.window import LONGEST, duration
from anabranch.partitioning.choice import Choice
from anabranch.partitioning.partitioning_set import PartitioningSet
from anabranch.partitioning.written import read_set, read_sets
from anabranch.plan.plan import Plan
from anabranch.planning import Planning
from anabranch.settings import Settings, read_settings
from anabranch.sinks.files import require_folder
from anabranch.sinks.make import make_sinks
from anabranch.sinks.overlap import refuse_overlaps
from anabranch.sources.ahead import read_ahead
from anabranch.sources.base import Source
from anabranch.sources.files import FileSource, file_source
from anabranch.sources.generate import Generator
from anabranch.sources.make import (
    Registered,
    check_choice,
    find_ordered,
    make_generator,
    read_schema,
    require_columns,
)
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.store import read_latest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST_NAME = 120
"""Bytes of a name. Files of 255 are the most that file systems take, and ours are called after a query, its
subquery, an epoch and more."""
SPARK_NAMES = {
    "readStream": "session.stream(name, path=…, ordered=…), or give it spark.readStream…",
    "sql": "session.query(name, 'SELECT …')", "table": "session.from_stream(name)",
}  # fmt: skip
"""What Spark's session calls otherwise."""


class Session:
    """Streams and queries of one application, on one Spark session or in this process."""

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
        self._own_spark = False

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

        session = cls(local_spark(f"local[{cores}]", ui, conf), sites, settings)
        session._own_spark = True
        return session

    @classmethod
    def in_process(
        cls, sites: int = 2, settings: Settings | Mapping[str, Any] | None = None
    ) -> Session:
        """A session without Spark, for tests of queries: the same split and site code, in turn."""
        return cls(None, sites, settings)

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
        generator: str | Generator | None = None,
        rows: int | None = None,
        rate: int | None = None,
        on_bad: str = "stop",
        on_late: str = "count",
        max_ahead: int | str | None = None,
        time_unit: str | None = None,
        **generator_options: Any,
    ) -> Query:
        """Registers an input and returns it as a query to build on.

        Give one of `path` (files), a streaming DataFrame, or `generator` (packets, calls, auctions,
        bids). `ordered` names the attribute that grows with time, `lateness` by how much rows may be
        out of order. Files that wait are taken by the time of their last change, or with
        `file_order="name"` by their names. `on_bad` is "stop" or "dead-letter", `on_late` is "count" or
        "dead-letter". Rows more than `max_ahead` ahead of the clock are bad; integers need `time_unit`
        ("s", "ms", "us", "ns" since 1970) for that.
        `partitioned_by` says that files come partitioned already: rows that agree on these expressions
        are always in the same folder right under `path`. With `lanes`, as with `partitioned_by`, each of
        these folders has a time of its own, and the stream's is that of the slowest.
        """
        self._check_name(name)
        check_choice("on_bad", on_bad, ("stop", "dead-letter"))
        check_choice("on_late", on_late, ("count", "dead-letter"))
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
            made: Source = file_source(
                name, str(path), format, read_schema(name, schema), file_order
            )
        elif generator is not None:
            made = make_generator(name, generator, generator_options, rows, rate)
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
                f"Stream '{name}': lanes= is for files (path=), with a folder for each lane."
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
        if isinstance(terms, str) or not isinstance(source, FileSource):
            raise SourceError(
                f"Stream '{node.name}': partitioned_by= takes a list of expressions, and the input "
                "must be a folder of files (path=) with a folder for each part."
            )
        if not Path(source.path).is_dir():
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

    # -- plans ------------------------------------------------------------------------------------

    def plan(self, checkpoint: str | Path | None = None) -> Plan:
        """The compiled plan of all queries; with a checkpoint, as its run first started."""
        stored = _stored(checkpoint)
        return self._planning().continuing(stored).plan(stored, None)[0]

    def _planning(self) -> Planning:
        """The queries of now: what is made of it stays so when the session gets others."""
        return Planning(self._nodes(), dict(self._streams), self._choosing)

    def partitioning(self, checkpoint: str | Path | None = None) -> Choice:
        """The partitioning set that suits the whole query set best, and what else was considered.

        Costs follow from the rates that a run with this checkpoint has counted; without one, from a
        sample of each stream, and where there is none, from assumed rates.
        """
        stored = _stored(checkpoint)
        return self._planning().continuing(stored).choose(stored)

    def explanation(
        self, checkpoint: str | Path | None = None, sinks: Mapping[str, Any] | None = None
    ) -> Explanation:
        """All that there is to say about the plan; with a checkpoint, what its run has measured too."""
        stored = _stored(checkpoint)
        return self._planning().continuing(stored).explainer(sinks)(stored)

    def explain(
        self, checkpoint: str | Path | None = None, verbose: bool = False,
        sinks: Mapping[str, Any] | None = None,
    ) -> str:  # fmt: skip
        """The plan as text: streams, the partitioning and why, subqueries, outputs, with their figures.

        With a checkpoint, also while another process runs with it, figures are those of its run so far.
        `verbose` adds the cost of every candidate at each node; `sinks` are shown with the outputs.
        """
        return explain_text(self.explanation(checkpoint, sinks), verbose)

    def explain_svg(
        self, checkpoint: str | Path | None = None, sinks: Mapping[str, Any] | None = None
    ) -> str:
        """The plan as a drawing: the text of an SVG file."""
        return draw_svg(self.explanation(checkpoint, sinks))

    # -- runs -------------------------------------------------------------------------------------

    @checked
    def start(
        self,
        *,
        sinks: Mapping[str, Any],
        checkpoint: str | Path | None = None,
        trigger: str | float = "available-now",
        at_end: str = "keep",
        dead_letter: str | Path | None = None,
        changed: str = REFUSE,
        backfill: bool = False,
        name: str = "anabranch",
        on_step: StepHook | None = None,
        burdens: Burdens | None = None,
    ) -> Run:
        """Starts the queries and returns the handle of the run.

        `sinks` gives each query a folder (Parquet), a dict of path and format, "console", "memory", a
        function of (arrow_table, epoch) or a sink of `anabranch.sinks`. `trigger` is "available-now"
        (take what is there, then end), "continuous", or the time between epochs, in seconds or as
        "10 seconds". `at_end="close"`
        treats the end of an available-now run as the end of the streams: all windows close. Without a
        checkpoint folder the run cannot be continued later: its state is deleted when it ends.
        A checkpoint of another query set is refused, or with `changed="keep-same"` gone on with: queries that
        are the same, whatever they are called now, keep their state; those that are gone lose it; new ones
        begin with the rows from now on, or with `backfill=True` with all that the sources still have.
        `run.evolution` says what was done.
        `burdens` makes sites slow on purpose, epoch by epoch: see `anabranch.testing.faults`.
        """
        if burdens is not None and not callable(burdens):
            raise SettingsError(
                f"Expected a Schedule or another function of the epoch for burdens, got {burdens!r}: "
                "Schedule([slow(0)]), for instance."
            )
        check_choice("changed", changed, (REFUSE, KEEP_SAME))
        what = f"The checkpoint '{checkpoint}'"
        ready = prepare(self._planning(), _stored(checkpoint), sinks, changed, backfill, what)
        plan, streams = ready.plan, ready.planning.streams
        check_choice("at_end", at_end, ("keep", "close"))
        interval = interval_of(trigger)
        if not sinks:
            raise PlanningError("Give at least one query a sink: sinks={'flows': 'out/flows'}.")
        for query in sinks:
            if query not in self._queries:
                raise PlanningError(f"There is no query '{query}'.{suggest(query, self._queries)}")
        if dead_letter is not None:
            require_folder("dead_letter", dead_letter)
        else:
            for stream in plan.streams:
                if streams[stream].whole:
                    raise SettingsError(
                        f"Stream '{stream}' sends input to the dead-letter folder, but none is "
                        "given: start(dead_letter='folder')."
                    )
        made = make_sinks(sinks)
        root = str(checkpoint) if checkpoint is not None else tempfile.mkdtemp(prefix="anabranch-")
        durable = place(root, self.settings.private_files)
        options = RunOptions(
            name=name,
            root=str(durable),
            checkpoint=durable.scratch,
            sites=self.sites,
            settings=self.settings,
            available_now=trigger == "available-now",
            interval=interval,
            close_at_end=at_end == "close",
            dead_letter=str(Path(dead_letter).absolute()) if dead_letter is not None else None,
            on_bad={name: stream.on_bad for name, stream in streams.items()},
            on_late={name: stream.on_late for name, stream in streams.items()},
            ahead={name: stream.ahead for name, stream in streams.items() if stream.ahead},
            partitioning=ready.choice.texts if ready.choice else None,
            queries=ready.queries,
            evolution=ready.evolution,
            temporary=checkpoint is None,
            faults=Faults(on_step or (lambda step, epoch: None), burdens),
        )
        sources = {name: streams[name].source for name in plan.streams}
        with contextlib.ExitStack() as unless_started:
            if options.temporary:
                unless_started.callback(shutil.rmtree, root, ignore_errors=True)
            refuse_overlaps(durable, sources, made, options.dead_letter)
            explainer = ready.planning.explainer(made)
            run = Run(plan, sources, made, self._transport(), options, explainer).start()
            unless_started.pop_all()
        return run

    def _transport(self) -> Transport:
        if self.spark is None:
            return Twin()
        from anabranch.engine.spark import SparkTransport

        return SparkTransport(self.spark.sparkContext)

    def stop(self) -> None:
        """Stops the Spark session, if this session has one."""
        if self.spark is not None:
            self.spark.stop()

    if not TYPE_CHECKING:  # type checkers would take every name as there

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute("a session", name, SPARK_NAMES, dir(Session))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Stops the Spark that this session has started; one that it was given goes on."""
        if self._own_spark:
            self.stop()


def _stored(checkpoint: str | Path | None) -> Manifest | None:
    """The last manifest of a checkpoint, if there is one."""
    return read_latest(place(str(checkpoint))) if checkpoint is not None else None
