"""The handle of a running query set, which the caller holds while the loop of epochs goes on beside it."""

from __future__ import annotations

import importlib
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import polars as pl

from anabranch.control.governor import Governor
from anabranch.control.manner import Manner
from anabranch.engine.chronicle import Chronicle
from anabranch.engine.commit import Checkpoint
from anabranch.engine.controls import Controls
from anabranch.engine.evolution import Evolution
from anabranch.engine.loop import Loop
from anabranch.engine.options import RunOptions
from anabranch.engine.transport import Transport
from anabranch.errors import AnabranchError, RunError, no_attribute, suggest
from anabranch.events.journal import Journal
from anabranch.events.stream import FAR_FLUSH_SECONDS, FLUSH_SECONDS, EventStream, Listener
from anabranch.explain.draw import draw_svg
from anabranch.explain.explanation import Explanation
from anabranch.explain.text import explain_text
from anabranch.plan.plan import Plan
from anabranch.sinks.base import Sink
from anabranch.sinks.driver import MemorySink
from anabranch.sources.base import Source
from anabranch.state.manifest import Manifest

PATIENCE = 0.1
"""Seconds for which a waiting caller does not feel Ctrl-C."""
SPARK_NAMES = {
    "awaitTermination": "await_termination()", "isActive": "is_active", "lastProgress": "last_progress",
    "recentProgress": "recent_progress", "runId": "run_id",
    "processAllAvailable": "await_termination() of a run with trigger='available-now'",
}  # fmt: skip
"""What Spark's handle calls otherwise."""
Explainer = Callable[[Manifest | None], Explanation]
"""Explains the plan of a run, with the figures of a manifest."""


class Run(Controls):
    """The handle of a running query set, with the names Spark's handle has."""

    def __init__(
        self, plan: Plan, sources: Mapping[str, Source], sinks: Mapping[str, Sink],
        transport: Transport, options: RunOptions, explainer: Explainer | None = None,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.options = options
        self.run_id = str(uuid.uuid4())
        self._explainer = explainer
        self._checkpoint = Checkpoint(plan, sinks, options, self.run_id)
        try:
            self._governor = Governor(
                plan, options.settings, options.sites, self._checkpoint.manifest,
                Manner(far=self._checkpoint.store.place.far, clock=time.perf_counter),
            )  # fmt: skip
        except BaseException:
            self._checkpoint.close()
            raise
        self._events = self._event_stream()
        self._chronicle = Chronicle(
            plan, options, self.run_id, self._checkpoint, self._governor, self._events
        )
        self._loop = Loop(
            plan, sources, transport, options, self._checkpoint, self._governor, self._chronicle
        )
        self._reads = {name: source.describe() for name, source in sources.items()}
        self._ended = threading.Event()
        self._exception: AnabranchError | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"anabranch-{options.name}", daemon=True
        )

    def _event_stream(self) -> EventStream:
        place, most = self._checkpoint.store.place, self.options.settings.event_history_bytes
        journal = None
        if most and not self.options.temporary:
            journal = Journal(place, self.run_id, time.time(), most)
        return EventStream(journal, FAR_FLUSH_SECONDS if place.far else FLUSH_SECONDS)

    # -- the handle -------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The same for every run from this checkpoint."""
        return self._checkpoint.manifest.run_id

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def evolution(self) -> Evolution | None:
        """What became of the queries of the checkpoint when the run started, if it had others."""
        return self.options.evolution

    @property
    def is_active(self) -> bool:
        return not self._ended.is_set()

    @property
    def status(self) -> dict[str, Any]:
        """What the run is doing now."""
        return {
            "message": self._loop.message,
            "isDataAvailable": self._loop.busy,
            "isTriggerActive": self._loop.busy,
        }

    @property
    def reads(self) -> dict[str, str]:
        """Its streams, and where each comes from."""
        return dict(self._reads)

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """The report of the last epoch, with Spark's field names; None before the first."""
        return self._chronicle.progress[-1] if self._chronicle.progress else None

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """The reports of the last epochs, oldest first."""
        return list(self._chronicle.progress)

    def listen(self, listener: Listener, recent: bool = False) -> Callable[[], None]:
        """Calls a function with every event of the run; with `recent`, with those remembered first.

        It is called in a thread of its own, in order; the run does not wait for it. Returns a function that
        ends it. The kinds of events are in `anabranch.events.event`.
        """
        return self._events.listen(listener, recent)

    def page(
        self,
        port: int = 0,
        control: bool = False,
        host: str = "127.0.0.1",
        names: Iterable[str] = (),
    ) -> Any:
        """Opens a page on the run in this process; its `url` has the token, `close()` ends it.

        It only shows, unless it is given `control`. `names` are those that other machines, or a proxy, call
        it by; without them it answers to loopback and `host` only. Needs `pip install 'anabranch[page]'`.
        """
        # What people see stands above a run, which does without
        return importlib.import_module("anabranch.observe.page.opening").page_of_run(
            self, port, control, host, names
        )

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """Where the results of each query go."""
        return self._checkpoint.sinks

    def await_termination(self, timeout: float | None = None) -> bool:
        """Waits for the end; True if it has come. Raises the error that ended the run, if one did.

        Ctrl-C ends the run after the epoch under way before it is raised.
        """
        if timeout is not None and not isinstance(timeout, (int, float)):
            raise RunError(f"Expected a number of seconds to wait, or None, got {timeout!r}.")
        deadline = None if timeout is None else time.monotonic() + timeout
        try:
            # In short steps: with some libraries loaded, Ctrl-C does not interrupt a wait
            while True:
                left = PATIENCE if deadline is None else deadline - time.monotonic()
                ended = self._ended.wait(max(0.0, min(PATIENCE, left)))
                if ended or (left <= PATIENCE and deadline is not None):
                    break
        except KeyboardInterrupt:
            self.stop()
            raise
        if ended and self._exception is not None:
            raise self._exception
        return ended

    def exception(self) -> AnabranchError | None:
        """The error that ended the run, or None."""
        return self._exception

    def stop(self) -> None:
        """Ends the run after the epoch under way, and waits for that."""
        self._loop.stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def explanation(self) -> Explanation:
        """The plan with what the run has measured so far: all that `explain` tells."""
        if self._explainer is None:
            raise RunError("This run was started without a session, which knows what to explain.")
        told = self._explainer(self._checkpoint.manifest)
        return replace(told, reshaped=self._governor.last_shapes())

    def explain(self, verbose: bool = False) -> str:
        """The plan as text with what the run has measured so far, while it lasts and after."""
        return explain_text(self.explanation(), verbose)

    def explain_svg(self) -> str:
        """The same as a drawing: the text of an SVG file."""
        return draw_svg(self.explanation())

    def _repr_html_(self) -> str:
        """For notebooks: what it is doing, and the plan with what it has measured so far."""
        drawing = self.explain_svg() if self._explainer is not None else ""
        return f"<p><b>{escape(self.name)}</b>: {escape(self._loop.message)}</p>{drawing}"

    def results(self, query: str) -> pl.DataFrame:
        """What a memory sink has received so far."""
        sinks = self._checkpoint.sinks
        sink = sinks.get(str(query))
        if sink is None:
            raise RunError(f"This run has no results of a query '{query}'.{suggest(query, sinks)}")
        if not isinstance(sink, MemorySink):
            raise RunError(
                f"Query '{query}' has no memory sink: its results go to {sink.describe()}."
            )
        rows = sink.rows()
        schema = next(output.schema for output in self.plan.outputs if output.query == query)
        return rows if rows.width else pl.DataFrame(schema=schema)

    if not TYPE_CHECKING:  # type checkers would take every name as there

        def __getattr__(self, name: str) -> NoReturn:
            raise no_attribute("a run", name, SPARK_NAMES, dir(Run))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Stops the run after the epoch under way, if it has not ended by itself.

        Raises what the run failed with, unless the block itself has failed.
        """
        self.stop()
        if self._exception is not None and kind is None:
            raise self._exception

    # -- the loop ---------------------------------------------------------------------------------

    def start(self) -> Run:
        self._loop.open()
        self._chronicle.started()
        self._thread.start()
        return self

    def _run(self) -> None:
        loop = self._loop
        try:
            loop.run()
            loop.message = "Stopped"
        except BaseException as error:
            # Panics of libraries are no Exception, and would end this thread without a word
            self._exception = loop.told(error)
            loop.message = f"Failed: {self._exception}"
        finally:
            self._chronicle.ended(self._exception)
            failure = loop.release()
            if failure is not None and self._exception is None:
                self._exception, loop.message = failure, f"Failed: {failure}"
            loop.busy = False
            self._ended.set()
