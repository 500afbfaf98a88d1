"""A running query set: the loop of epochs beside the caller, and the handle the caller holds.

An epoch: poll the sources, run the tasks, commit the manifest, make the results visible. The manifest
is the one commit point. It holds the offsets of all sources, so after a crash the loop goes on from it.
"""

from __future__ import annotations

import shutil
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import polars as pl

from anabranch.control.governor import Governor
from anabranch.control.manner import Manner
from anabranch.engine.commit import Checkpoint
from anabranch.engine.controls import Controls
from anabranch.engine.epoch import EpochReport, Orders, StandingOrders, StreamOrders
from anabranch.engine.evolution import Evolution
from anabranch.engine.options import RunOptions
from anabranch.engine.progress import describe_epoch
from anabranch.engine.reading import lanes_of, spread, tasks_of
from anabranch.engine.sampling import observed
from anabranch.engine.transport import Transport
from anabranch.errors import STAGES, AnabranchError, RunError, StateError, no_attribute, suggest
from anabranch.explain.draw import draw_svg
from anabranch.explain.explanation import Explanation
from anabranch.explain.text import explain_text
from anabranch.plan.plan import Plan
from anabranch.routing.lane_times import NOBODY, Idle
from anabranch.sinks.base import Sink
from anabranch.sinks.driver import MemorySink
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reader, Source
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
        self._sources = sources
        self._readers: dict[str, Reader] = {}
        self._transport = transport
        self._standing = StandingOrders(plan, options.root, options.settings)
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
        self._progress: deque[dict[str, Any]] = deque(maxlen=options.settings.recent_progress)
        self._message = "Starting"
        self._busy = False
        self._began = 0.0
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._exception: AnabranchError | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"anabranch-{options.name}", daemon=True
        )

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
            "message": self._message,
            "isDataAvailable": self._busy,
            "isTriggerActive": self._busy,
        }

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """The report of the last epoch, with Spark's field names; None before the first."""
        return self._progress[-1] if self._progress else None

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """The reports of the last epochs, oldest first."""
        return list(self._progress)

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
        self._stopping.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def explanation(self) -> Explanation:
        """The plan with what the run has measured so far: all that `explain` tells."""
        if self._explainer is None:
            raise RunError("This run was started without a session, which knows what to explain.")
        return self._explainer(self._checkpoint.manifest)

    def explain(self, verbose: bool = False) -> str:
        """The plan as text with what the run has measured so far, while it lasts and after."""
        return explain_text(self.explanation(), verbose)

    def explain_svg(self) -> str:
        """The same as a drawing: the text of an SVG file."""
        return draw_svg(self.explanation())

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
        """Stops the run after the epoch under way, if it has not ended by itself."""
        self.stop()

    # -- the loop ---------------------------------------------------------------------------------

    def start(self) -> Run:
        try:
            self._checkpoint.recover()
            for name, source in self._sources.items():
                self._readers[name] = self._open(name, source)
        except BaseException:
            self._release()
            raise
        self._thread.start()
        return self

    def _open(self, name: str, source: Source) -> Reader:
        context = ReadContext(
            offset=self._checkpoint.manifest.streams[name].offset,
            available_now=self.options.available_now,
            columns=tuple(self.plan.streams[name].columns),
            place=self._checkpoint.store.place,
        )
        try:
            return source.open(context)
        except AnabranchError:
            raise
        except Exception as error:
            raise RunError(f"Stream '{name}' could not be opened: {error!r}") from error

    def _release(self) -> AnabranchError | None:
        """Lets go of everything, whatever fails on the way; the first thing that did."""
        failure: AnabranchError | None = None
        steps: list[tuple[str, Callable[[], None]]] = [
            (f"Stream '{name}'", reader.stop) for name, reader in self._readers.items()
        ]
        steps += [("The transport", self._transport.close)]
        steps += [(f"The checkpoint '{self.options.root}'", self._checkpoint.close)]
        for what, release in steps:
            try:
                release()
            except Exception as error:
                failure = failure or RunError(f"{what} could not be let go of: {error!r}")
                failure.__cause__ = failure.__cause__ or error
        if self.options.temporary:
            shutil.rmtree(self.options.checkpoint, ignore_errors=True)
        return failure

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                began = time.monotonic()
                if not self._turn():
                    break
                rest = self.options.interval - (time.monotonic() - began)
                if rest > 0:
                    self._message = "Waiting for the next trigger"
                    self._stopping.wait(rest)
            self._message = "Stopped"
        except BaseException as error:
            # Panics of libraries are no Exception, and would end this thread without a word
            self._exception = self._told(error)
            self._message = f"Failed: {self._exception}"
        finally:
            failure = self._release()
            if failure is not None and self._exception is None:
                self._exception, self._message = failure, f"Failed: {failure}"
            self._busy = False
            self._ended.set()

    def _told(self, error: BaseException) -> AnabranchError:
        """The error that ends the run, as the user is told."""
        # Whatever went wrong, it followed from that: files were cleared away, results moved
        known = self._checkpoint.taken_over() or error
        if isinstance(known, AnabranchError):
            told = known
        else:
            told = RunError(f"The run failed: {known!r}")
        if told is not error:
            told.__cause__ = error
        return told

    def _turn(self) -> bool:
        """One epoch if there is input; False when the run is over."""
        began = time.monotonic()
        with self._governor.changing:
            alive = self._transport.alive(self.sites)
            if any(alive):
                self._governor.follow(alive, self._checkpoint.manifest)
        if not any(alive):
            self._message = "Waiting for executors: Spark has none now"
            self._stopping.wait(self.options.settings.poll_interval_seconds)
            return True
        offers = self._poll()
        finished = not offers and all(reader.finished() for reader in self._readers.values())
        manifest = self._checkpoint.manifest
        if finished:
            if self.options.close_at_end and not manifest.ended:
                self._epoch({}, began, ended=True)
            elif manifest.holds:
                self._epoch({}, began, flush=True)
            return False
        if offers and manifest.ended:
            raise StateError(
                f"The checkpoint '{self.options.root}' was closed with at_end='close': its streams "
                "have ended, and every new row would be late. Use a new checkpoint."
            )
        waiting = {(name, lane) for name, offer in offers.items() for lane in offer.lanes or ()}
        idle = self._checkpoint.idle(time.time(), waiting)
        if offers or self._checkpoint.idleness_matters(idle) or self._governor.pending(manifest):
            self._epoch(offers, began, idle=idle)
        else:
            self._message = "Waiting for data to arrive"
            self._stopping.wait(self.options.settings.poll_interval_seconds)
        return True

    def _tasks(self) -> int:
        return self.options.settings.split_tasks or self._transport.parallelism()

    def _poll(self) -> dict[str, Offer]:
        settings = self.options.settings
        limits = EpochLimits(
            settings.max_files_per_epoch, settings.max_bytes_per_epoch,
            settings.max_rows_per_epoch, self._tasks(),
        )  # fmt: skip
        ordinal = self._checkpoint.manifest.ordinal
        offers: dict[str, Offer] = {}
        for name, reader in self._readers.items():
            offer = reader.poll(limits, ordinal)
            if offer is not None:
                offers[name] = offer
                ordinal = offer.next_ordinal
        return offers

    def _epoch(
        self, offers: dict[str, Offer], began: float, ended: bool = False,
        idle: Idle = NOBODY, flush: bool = False,
    ) -> None:  # fmt: skip
        self._busy = True
        epoch = self._checkpoint.manifest.epoch + 1
        self._message = f"Running epoch {epoch}"
        polled = time.monotonic()
        step = self.options.faults.on_step
        step("begin", epoch)
        with self._governor.changing:
            # All at once: maps, sites and what waits belong together
            orders = self._orders(epoch, offers, ended, idle, flush)
            steered = self._governor.record()
        step("before-tasks", epoch)
        try:
            report = self._transport.run(orders)
            fault = report.fault()
            if fault:
                raise STAGES.get(fault.kind, RunError)(fault.message)
            self._checkpoint.check_lanes(orders, report)
        except BaseException:
            self._checkpoint.discard(orders)
            raise
        ran = time.monotonic()
        step("before-commit", epoch)
        shown = observed(orders, report)
        with self._governor.changing:
            self._governor.combine(shown)
            combining = frozenset(self._governor.holdings.combining)
            steered = replace(steered, pins=self._governor.pins, combining=combining)
        self._checkpoint.commit(orders, report, offers, steered)
        committed = time.monotonic()
        step("after-commit", epoch)
        self._checkpoint.publish()
        step("after-publish", epoch)
        for name, offer in offers.items():
            self._readers[name].committed(offer.offset)
        self._checkpoint.clear()
        with self._governor.changing:
            self._governor.allot(self._checkpoint.manifest)
            self._governor.adapt(shown, self._checkpoint.manifest)
            adaptation = self._governor.describe(self._checkpoint.manifest)
        times = (self._began, began, polled, ran, committed, time.monotonic())
        self._tell(orders, report, offers, times, adaptation)
        self._began = began
        self._busy = False

    def _orders(
        self, epoch: int, offers: dict[str, Offer], ended: bool, idle: Idle, flush: bool
    ) -> Orders:
        options, manifest = self.options, self._checkpoint.manifest
        pieces = [(name, piece) for name, offer in offers.items() for piece in offer.pieces]
        streams, maps = self.plan.streams, self._governor.maps
        lanes = lanes_of(streams, manifest.streams, maps, pieces)
        waiting = self._governor.holding(epoch, ended or flush, manifest)
        attempt = uuid.uuid4().hex[:8]
        return Orders(
            standing=self._standing,
            epoch=epoch,
            attempt=attempt,
            sites=self.sites,
            maps=self._governor.maps,
            shelves={name: record.shelf for name, record in manifest.subqueries.items()},
            combine=frozenset(self._governor.holdings.combining),
            newest={name: record.newest for name, record in manifest.streams.items()},
            lane_times=self._checkpoint.lane_times(offers),
            watermarks=manifest.watermarks,
            idle=idle,
            ended=ended,
            streams={
                name: StreamOrders(
                    options.on_bad[name],
                    options.on_late[name],
                    options.dead_letter,
                    options.ahead[name].latest(time.time()) if name in options.ahead else None,
                )
                for name in self.plan.streams
            },
            results=self._checkpoint.stagings(epoch, attempt),
            pieces=spread(pieces, self._tasks(), tasks_of(streams, maps, lanes)),
            lanes=lanes,
            grids=self._governor.grids,
            hot=self._governor.condensed(epoch),
            scattered={
                name: tuple(record.scattered)
                for name, record in manifest.exchanges.items()
                if record.scattered
            },
            scattering=self._governor.scattering(waiting.holds),
            holds=waiting.holds,
            released=waiting.released,
            held=waiting.held,
            reached=self._checkpoint.reached(),
            fetch=self._governor.fetches(manifest),
            faults=options.faults.of_sites(epoch, attempt, options.checkpoint),
        )

    def _tell(
        self, orders: Orders, report: EpochReport, offers: dict[str, Offer],
        times: tuple[float, ...], adaptation: dict[str, Any],
    ) -> None:  # fmt: skip
        told = describe_epoch(
            self.id, self.run_id, self.name, orders, self._checkpoint.manifest, report, offers,
            times, self._checkpoint.sinks, adaptation,
            self._transport.placement,
        )  # fmt: skip
        told["customMetrics"]["warnings"] += self._checkpoint.warnings
        self._checkpoint.warnings = []
        if self.evolution is not None and not self._progress:
            told["customMetrics"]["evolution"] = self.evolution.described()
        self._progress.append(told)
