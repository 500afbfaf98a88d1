"""A Structured Streaming program on Anabranch: one line changes, Spark's names stay.

`accelerate(df).writeStream` is written like `df.writeStream`, and `start` gives a handle with the names of
Spark's `StreamingQuery`. What has no equal here is refused before anything runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from anabranch.engine.run import Run
from anabranch.errors import AnabranchError, SettingsError, no_attribute, suggest
from anabranch.session import Session
from anabranch.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMATS = ("parquet", "csv", "json", "console", "memory")
OPTIONS = ("checkpointLocation", "path")
"""Options of Spark's writer that mean the same here."""
CHECKPOINTS = "spark.sql.streaming.checkpointLocation"
UNNAMED = "query"
NO_CHECKPOINT = (
    "No checkpointLocation is given: what this run has read and its open windows are forgotten when it ends. "
    "The next start reads everything once more, and is refused where results of this one lie in its folder. "
    "To go on from here, add .option('checkpointLocation', 'folder')."
)
SPARK_NAMES = {
    "toTable": "start(folder), and make a table of that", "foreach": "foreachBatch(…)",
    "partitionBy": "nothing: results are in a folder for each epoch",
}  # fmt: skip


def accelerate(
    frame: DataFrame, *, sites: int | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
) -> Accelerated:  # fmt: skip
    """The same query, to be run by Anabranch: `accelerate(df).writeStream…` in place of `df.writeStream…`."""
    if not hasattr(frame, "isStreaming"):
        raise SettingsError(f"accelerate() takes a streaming DataFrame, not {frame!r}.")
    return Accelerated(frame, sites, settings)


@dataclass(frozen=True)
class Accelerated:
    """A streaming DataFrame that Anabranch is to run."""

    frame: DataFrame
    sites: int | None = None
    settings: Settings | Mapping[str, Any] | None = None

    @property
    def writeStream(self) -> StreamWriter:
        return StreamWriter(self)

    def explain(self, mode: str = "append") -> None:
        """Prints the plan."""
        session, _ = self._session("query", mode)
        print(session.explain())

    def _session(self, name: str, mode: str) -> tuple[Session, str]:
        settings = self.settings
        if not isinstance(settings, Settings):
            # As in Spark, groups without a window may change for ever
            settings = {"allow_unbounded_state": mode == "update", **(settings or {})}
        session = Session(self.frame.sparkSession, self.sites, settings)
        session.query(name, self.frame, mode=mode)
        return session, name


@dataclass(frozen=True)
class StreamWriter:
    """How a query is to be written, with the names of Spark's `DataStreamWriter`."""

    of: Accelerated
    sink: str = "parquet"
    mode: str = "append"
    given: Mapping[str, str] = field(default_factory=dict)
    when: str | float = "continuous"
    name: str = UNNAMED
    each: Callable[[DataFrame, int], Any] | None = None

    def format(self, source: str) -> StreamWriter:
        """Parquet, csv or json files in a folder, console, or memory."""
        if source not in FORMATS:
            raise SettingsError(
                f"There is no sink of format '{source}' here.{suggest(source, FORMATS)} Use foreachBatch "
                "with Spark's own writer for others."
            )
        return replace(self, sink=source)

    def outputMode(self, outputMode: str) -> StreamWriter:
        """append: a window once, when it is over; update: groups that have changed."""
        return replace(self, mode=outputMode.lower())

    def option(self, key: str, value: object) -> StreamWriter:
        """checkpointLocation and path."""
        if key not in OPTIONS:
            raise SettingsError(f"There is no option '{key}' here.{suggest(key, OPTIONS)}")
        return replace(self, given={**self.given, key: str(value)})

    def options(self, **options: object) -> StreamWriter:
        writer = self
        for key, value in options.items():
            writer = writer.option(key, value)
        return writer

    def queryName(self, queryName: str) -> StreamWriter:
        return replace(self, name=queryName)

    def trigger(
        self, *, processingTime: str | None = None, availableNow: bool | None = None
    ) -> StreamWriter:
        """Every so often, or what there is now."""
        if (processingTime is None) == (availableNow is None) or availableNow is False:
            raise SettingsError("trigger() takes one of processingTime= and availableNow=True.")
        if availableNow is not None:
            return replace(self, when="available-now")
        assert processingTime is not None
        return replace(self, when=0.0 if processingTime.startswith("0 ") else processingTime)

    def foreachBatch(self, func: Callable[[DataFrame, int], Any]) -> StreamWriter:
        """Calls the function with the results of each epoch as a DataFrame, and its number."""
        return replace(self, each=func)

    def start(
        self, path: str | None = None, *, format: str | None = None, outputMode: str | None = None
    ) -> StreamingRun:
        """Starts the query."""
        writer = self if path is None else self.option("path", path)
        writer = writer if format is None else writer.format(format)
        writer = writer if outputMode is None else writer.outputMode(outputMode)
        session, name = self.of._session(writer.name, writer.mode)
        run = session.start(
            sinks={name: writer._target(session)}, checkpoint=writer._checkpoint(),
            trigger=writer.when, name=name,
        )  # fmt: skip
        return StreamingRun(run, name)

    def _checkpoint(self) -> str | None:
        """The folder that was given, or as in Spark one of the query's name below that of all queries."""
        given = self.given.get("checkpointLocation")
        if given is not None:
            return given
        of_all = self.of.frame.sparkSession.conf.get(CHECKPOINTS, None)
        if of_all and self.name != UNNAMED:
            return f"{of_all}/{self.name}"
        if self.each is not None or self.sink not in ("console", "memory"):
            warnings.warn(NO_CHECKPOINT, stacklevel=3)
        return None

    def _target(self, session: Session) -> Any:
        if self.each is not None:
            from anabranch.sinks.spark import SparkSink

            assert session.spark is not None
            return SparkSink(session.spark, self.each)
        if self.sink in ("console", "memory"):
            return self.sink
        if "path" not in self.given:
            raise SettingsError("Give the folder of the results: start('folder').")
        return {"path": self.given["path"], "format": self.sink}

    if not TYPE_CHECKING:  # type checkers would take every name as there

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute("writeStream", name, SPARK_NAMES, dir(StreamWriter))


@dataclass(frozen=True)
class StreamingRun:
    """A run with the names of Spark's `StreamingQuery`; `run` has Anabranch's."""

    run: Run
    name: str

    @property
    def id(self) -> str:
        return self.run.id

    @property
    def isActive(self) -> bool:
        return self.run.is_active

    @property
    def lastProgress(self) -> dict[str, Any] | None:
        return self.run.last_progress

    @property
    def recentProgress(self) -> list[dict[str, Any]]:
        return self.run.recent_progress

    @property
    def status(self) -> dict[str, Any]:
        return self.run.status

    def awaitTermination(self, timeout: float | None = None) -> bool:
        return self.run.await_termination(timeout)

    def exception(self) -> AnabranchError | None:
        return self.run.exception()

    def stop(self) -> None:
        self.run.stop()
