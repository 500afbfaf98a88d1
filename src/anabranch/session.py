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
import functools
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self
from weakref import WeakSet

from anabranch.engine.evolution import KEEP_SAME, REFUSE
from anabranch.engine.faults import Burdens, Faults, StepHook, require_burdens
from anabranch.engine.options import ENDS, RunOptions, interval_of
from anabranch.engine.run import Run
from anabranch.engine.shipping import write_libraries
from anabranch.engine.transport import Transport, Twin
from anabranch.errors import SettingsError, no_attribute
from anabranch.events.stream import Listener, Listeners
from anabranch.evolving import prepare
from anabranch.explain.draw import draw_svg
from anabranch.explain.explanation import Explanation
from anabranch.explain.text import explain_text
from anabranch.language.checked import checked
from anabranch.partitioning.choice import Choice
from anabranch.plan.plan import Plan
from anabranch.planning import Planning
from anabranch.registry import Registry
from anabranch.settings import Settings
from anabranch.sinks.files import require_folder
from anabranch.sinks.make import sinks_of
from anabranch.sinks.overlap import refuse_overlaps
from anabranch.sources.make import check_choice
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.store import read_latest

SPARK_NAMES = {
    "readStream": "session.stream(name, path=…, ordered=…), or give it spark.readStream…",
    "sql": "session.query(name, 'SELECT …')", "table": "session.from_stream(name)",
}  # fmt: skip
"""What Spark's session calls otherwise."""


class Session(Registry):
    """Streams and queries of one application, on one Spark session or in this process."""

    _own_spark = False
    """Whether it has started its Spark itself."""

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

        return cls._owning(local_spark(f"local[{cores}]", ui, conf), sites, settings)

    @classmethod
    def cluster(
        cls, master: str | None = None, sites: int | None = None,
        settings: Settings | Mapping[str, Any] | None = None, ui: bool = False,
        conf: Mapping[str, str] | None = None,
    ) -> Session:  # fmt: skip
        """A session on a cluster: of this master, or of the `spark-submit` that started this program.

        It waits for the first executors; there is a site for each of their cores, unless `sites` says more.
        """
        from anabranch.engine.cluster import cluster_spark

        return cls._owning(cluster_spark(master, ui, conf), sites, settings)

    @classmethod
    def _owning(cls, *given: Any) -> Session:
        (session := cls(*given))._own_spark = True
        return session

    @classmethod
    def in_process(
        cls, sites: int = 2, settings: Settings | Mapping[str, Any] | None = None
    ) -> Session:
        """A session without Spark, for tests of queries: the same split and site code, in turn."""
        return cls(None, sites, settings)

    @functools.cached_property
    def _runs(self) -> WeakSet[Run]:
        """The runs that were started; who goes on is kept by its thread."""
        return WeakSet()

    @functools.cached_property
    def _listeners(self) -> Listeners:
        return Listeners()

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

    @checked
    def explanation(
        self, checkpoint: str | Path | None = None, sinks: Mapping[str, Any] | None = None
    ) -> Explanation:
        """All that there is to say about the plan; with a checkpoint, what its run has measured too."""
        stored = _stored(checkpoint)
        return self._planning().continuing(stored).explainer(sinks)(stored)

    @checked
    def explain(
        self, checkpoint: str | Path | None = None, verbose: bool = False,
        sinks: Mapping[str, Any] | None = None,
    ) -> str:  # fmt: skip
        """The plan as text: streams, the partitioning and why, subqueries, outputs, with their figures.

        With a checkpoint, also while another process runs with it, figures are those of its run so far.
        `verbose` adds the cost of every candidate at each node; `sinks` are shown with the outputs.
        """
        return explain_text(self.explanation(checkpoint, sinks), verbose)

    @checked
    def explain_svg(
        self, checkpoint: str | Path | None = None, sinks: Mapping[str, Any] | None = None
    ) -> str:
        """The plan as a drawing: the text of an SVG file."""
        return draw_svg(self.explanation(checkpoint, sinks))

    def _repr_html_(self) -> str:
        """For notebooks: the plan as a drawing, if there are queries."""
        return self.explain_svg() if self._queries else "<p>A session without queries.</p>"

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
        "10 seconds". `at_end="close"` treats the end of an available-now run as the end of the streams: all
        windows close. Without a checkpoint folder its state is deleted when it ends: it cannot be continued.
        A checkpoint of another query set is refused, or with `changed="keep-same"` gone on with: queries that
        are the same, whatever they are called now, keep their state; those that are gone lose it; new ones
        begin with the rows from now on, or with `backfill=True` with all that the sources still have.
        `run.evolution` says what was done; `burdens` (`anabranch.testing.faults`) slows sites on purpose.
        """
        require_burdens(burdens)
        check_choice("changed", changed, (REFUSE, KEEP_SAME))
        made = sinks_of(sinks, self._queries)
        places = {query: sink.describe() for query, sink in made.items()}
        what = f"The checkpoint '{checkpoint}'"
        ready = prepare(self._planning(), _stored(checkpoint), places, changed, backfill, what)
        plan, streams = ready.plan, ready.planning.streams
        check_choice("at_end", at_end, ENDS)
        interval = interval_of(trigger)
        if dead_letter is not None:
            require_folder("dead_letter", dead_letter)
        else:
            for stream in plan.streams:
                if streams[stream].whole:
                    raise SettingsError(
                        f"Stream '{stream}' sends input to the dead-letter folder, but none is "
                        "given: start(dead_letter='folder')."
                    )
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
            tables={name: self._tables[name] for name in plan.tables},
            temporary=checkpoint is None,
            faults=Faults(on_step or (lambda step, epoch: None), burdens),
        )
        sources = {name: streams[name].source for name in plan.streams}
        with contextlib.ExitStack() as unless_started:
            if options.temporary:
                unless_started.callback(shutil.rmtree, root, ignore_errors=True)
            refuse_overlaps(durable, sources, made, options.dead_letter)
            explainer = ready.planning.explainer(made)
            run = Run(plan, sources, made, self._transport(), options, explainer)
            self._listeners.join(run)
            run.start()
            unless_started.pop_all()
        self._runs.add(run)
        return run

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls a function with every event of every run of this session, also of those under way.

        >>> from anabranch.events.event import DecisionTaken
        >>> session, moved = Session.in_process(), []
        >>> end = session.listen(lambda event: isinstance(event, DecisionTaken) and moved.append(event))

        It is called in a thread of its own, in order; no run waits for it. Returns a function that ends it.
        """
        return self._listeners.add(listener, [run for run in self._runs if run.is_active])

    def _transport(self) -> Transport:
        if self.spark is None:
            return Twin()
        from anabranch.engine.spark import SparkTransport

        return SparkTransport(self.spark.sparkContext)

    @staticmethod
    def package(target: str | Path) -> Path:
        """Puts this package and its libraries into an archive for Spark: `spark.archives=FILE#libraries`."""
        return write_libraries(Path(target))

    def stop(self) -> None:
        """Stops all runs, and the Spark session, if this session has one."""
        self._stop_runs()
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
        """Stops all runs, and the Spark that this session has started; one that it was given goes on."""
        if self._own_spark:
            self.stop()
        else:
            self._stop_runs()

    def _stop_runs(self) -> None:
        for run in list(self._runs):
            run.stop()


def _stored(checkpoint: str | Path | None) -> Manifest | None:
    """The last manifest of a checkpoint, if there is one."""
    return read_latest(place(str(checkpoint))) if checkpoint is not None else None
