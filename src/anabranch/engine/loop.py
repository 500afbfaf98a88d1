"""The loop of epochs: poll the sources, run the tasks, commit the manifest, make the results visible.

The manifest is the one commit point. It holds the offsets of all sources, so after a crash the loop goes on
from it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Event

from anabranch.control.governor import Governor
from anabranch.engine.chronicle import Chronicle
from anabranch.engine.commit import Checkpoint
from anabranch.engine.lanes import LaneWatch
from anabranch.engine.laps import Laps
from anabranch.engine.machine import free_memory
from anabranch.engine.options import RunOptions
from anabranch.engine.ordering import Ordering
from anabranch.engine.orders import Orders
from anabranch.engine.preparing import Ahead, Attempt, foretold
from anabranch.engine.reading import limits_of
from anabranch.engine.report import SplitReport
from anabranch.engine.sampling import observed
from anabranch.engine.transport import Transport
from anabranch.errors import STAGES, AnabranchError, RunError, StateError
from anabranch.plan.plan import Plan
from anabranch.routing.lane_times import NOBODY, Idle
from anabranch.sources.base import EpochLimits, LooksAhead, Offer, ReadContext, Reader, Source


class Loop:
    """What goes on beside the caller, one epoch after another."""

    def __init__(
        self, plan: Plan, sources: Mapping[str, Source], transport: Transport, options: RunOptions,
        checkpoint: Checkpoint, governor: Governor, chronicle: Chronicle,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.options = options
        self.checkpoint = checkpoint
        self.governor = governor
        self.message = "Starting"
        """What it is doing, for people."""
        self.busy = False
        self.chronicle = chronicle
        self.stopping = Event()
        self._sources = sources
        self._readers: dict[str, Reader] = {}
        self._transport = transport
        self._ordering = Ordering(plan, options, checkpoint, governor)
        self._lane_watch = LaneWatch(checkpoint.manifest.streams)
        governor.memory.assume(options.settings.memory_share * free_memory())
        self._foreseen: Attempt | None = None
        """The attempt at the next epoch that its splits are prepared for."""
        self._began = 0.0

    def open(self) -> None:
        """Claims the checkpoint, finishes what a crash interrupted, and opens the sources."""
        try:
            self.checkpoint.recover()
            for name, source in self._sources.items():
                self._readers[name] = self._open(name, source)
        except BaseException:
            self.release()
            raise

    def _open(self, name: str, source: Source) -> Reader:
        context = ReadContext(
            offset=self.checkpoint.manifest.streams[name].offset,
            available_now=self.options.available_now,
            columns=tuple(self.plan.streams[name].columns),
            place=self.checkpoint.store.place,
        )
        try:
            return source.open(context)
        except AnabranchError:
            raise
        except Exception as error:
            raise RunError(f"Stream '{name}' could not be opened: {error!r}") from error

    def release(self) -> AnabranchError | None:
        """Lets go of everything, whatever fails on the way; the first thing that did."""
        failure: AnabranchError | None = None
        steps: list[tuple[str, Callable[[], None]]] = [
            (f"Stream '{name}'", reader.stop) for name, reader in self._readers.items()
        ]
        steps += [("The transport", self._transport.close), ("What was prepared", self._withdraw)]
        steps += [(f"The checkpoint '{self.options.root}'", self.checkpoint.close)]
        for what, release in steps:
            try:
                release()
            except Exception as error:
                failure = failure or RunError(f"{what} could not be let go of: {error!r}")
                failure.__cause__ = failure.__cause__ or error
        if self.options.temporary:
            shutil.rmtree(self.options.checkpoint, ignore_errors=True)
        return failure

    def _withdraw(self) -> None:
        if self._foreseen is not None:
            self.checkpoint.withdraw(self.checkpoint.manifest.epoch + 1, self._foreseen.name)
            self._foreseen = None

    def run(self) -> None:
        """Epoch after epoch, until there is nothing more to do or it is told to stop."""
        while not self.stopping.is_set():
            began = time.monotonic()
            if not self._turn():
                break
            rest = self.options.interval - (time.monotonic() - began)
            if rest > 0:
                self.message = "Waiting for the next trigger"
                self.stopping.wait(rest)

    def told(self, error: BaseException) -> AnabranchError:
        """The error that ends the run, as the user is told."""
        # Whatever went wrong, it followed from that: files were cleared away, results moved
        known = self.checkpoint.taken_over() or error
        if isinstance(known, AnabranchError):
            told = known
        else:
            told = RunError(f"The run failed: {known!r}")
        if told is not error:
            told.__cause__ = error
        return told

    def _turn(self) -> bool:
        """One epoch if there is input; False when the run is over."""
        laps = Laps()
        with self.governor.changing:
            alive = self._transport.alive(self.governor.sites)
            if any(alive):
                self.governor.follow(alive, self.checkpoint.manifest)
                self.chronicle.sites(self.governor, self.checkpoint.manifest.epoch)
        if not any(alive):
            self.message = "Waiting for executors: Spark has none now"
            self.stopping.wait(self.options.settings.poll_interval_seconds)
            return True
        offers = self._poll()
        finished = not offers and all(reader.finished() for reader in self._readers.values())
        manifest = self.checkpoint.manifest
        if finished:
            if self.options.close_at_end and manifest.spilled:
                # What is owed comes before the end
                self.governor.holdings.spilling.clean_all(manifest)
                self._epoch({}, laps)
                return True
            if self.options.close_at_end and not manifest.ended:
                self._epoch({}, laps, ended=True)
            elif self.governor.holding(manifest, flush=True).released:
                self._epoch({}, laps, flush=True)
            return False
        if offers and manifest.ended:
            raise StateError(
                f"The checkpoint '{self.options.root}' was closed with at_end='close': its streams "
                "have ended, and every new row would be late. Use a new checkpoint."
            )
        waiting = {(name, lane) for name, offer in offers.items() for lane in offer.lanes or ()}
        idle = self.checkpoint.idle(time.time(), waiting)
        fallen = self.checkpoint.idleness_matters(idle)
        if offers or fallen or self.governor.pending(manifest):
            self._epoch(offers, laps, idle=idle)
        else:
            self.message = "Waiting for data to arrive"
            self.stopping.wait(self.options.settings.poll_interval_seconds)
            if self.governor.holdings.spilling.starving(manifest):
                self._epoch({}, laps, idle=idle)
        return True

    def _tasks(self) -> int:
        return self.options.settings.split_tasks or self._transport.parallelism()

    def _limits(self) -> EpochLimits:
        room = float(self.governor.memory.limit.sum())
        return limits_of(self.options.settings, room, len(self._readers), self._tasks())

    def _poll(self) -> dict[str, Offer]:
        limits = self._limits()
        ordinal = self.checkpoint.manifest.ordinal
        offers: dict[str, Offer] = {}
        for name, reader in self._readers.items():
            offer = reader.poll(limits, ordinal)
            if offer is not None:
                offers[name] = offer
                ordinal = offer.next_ordinal
        return offers

    def _epoch(
        self, offers: dict[str, Offer], laps: Laps, ended: bool = False,
        idle: Idle = NOBODY, flush: bool = False,
    ) -> None:  # fmt: skip
        self.busy = True
        epoch = self.checkpoint.manifest.epoch + 1
        self.message = f"Running epoch {epoch}"
        laps.ended("poll")
        step = self.options.faults.on_step
        step("begin", epoch)
        with self.governor.changing:
            # All at once: maps, sites and what waits belong together
            orders = self._orders(offers, ended, idle, flush)
            steered = self.governor.record()
        laps.ended("orders")
        step("before-tasks", epoch)
        try:
            report = self._transport.run(orders, self._looking_ahead(orders, offers))
            fault = report.fault()
            if fault:
                raise STAGES.get(fault.kind, RunError)(fault.message)
            self._lane_watch.check(orders, report)
        except BaseException:
            self.checkpoint.discard(orders)
            raise
        laps.ended("tasks")
        step("before-commit", epoch)
        shown = observed(orders, report)
        with self.governor.changing:
            self.governor.combine(shown)
            combining = frozenset(self.governor.holdings.combining)
            steered = replace(steered, pins=self.governor.pins, combining=combining)
        self.checkpoint.commit(orders, report, offers, steered)
        laps.ended("commit")
        step("after-commit", epoch)
        self.checkpoint.publish()
        laps.ended("publish")
        step("after-publish", epoch)
        for name, offer in offers.items():
            self._readers[name].committed(offer.offset)
        self.checkpoint.clear()
        laps.ended("clear")
        with self.governor.changing:
            self.governor.allot(self.checkpoint.manifest)
            self.governor.adapt(shown, self.checkpoint.manifest)
            laps.ended("adapt")
            placement = self._transport.placement
            self.chronicle.epoch(orders, report, shown, offers, self._began, laps, placement)
        self._began = laps.began
        self.busy = False

    def _orders(self, offers: dict[str, Offer], ended: bool, idle: Idle, flush: bool) -> Orders:
        """The orders of the next epoch; if they came as foretold, those that its splits are prepared for."""
        epoch, foreseen = self.checkpoint.manifest.epoch + 1, self._foreseen
        attempt = foreseen or self._ordering.attempt(epoch)
        orders = self._ordering.orders(offers, self._tasks(), attempt, ended, idle, flush)
        self._foreseen = None
        if foreseen is None or self._transport.has_prepared(orders):
            return orders
        self.checkpoint.withdraw(epoch, foreseen.name)
        other = self._ordering.attempt(epoch)
        return replace(orders, attempt=other.name, streams=other.streams, results=other.results)

    def _looking_ahead(self, orders: Orders, offers: Mapping[str, Offer]) -> Ahead | None:
        """Tells the splits of the next epoch what to prepare; None where nothing is to be prepared."""
        readers = {
            name: reader for name, reader in self._readers.items() if isinstance(reader, LooksAhead)
        }
        if not self.options.settings.overlap or orders.ended or len(readers) < len(self._readers):
            return None

        def ahead(splits: Sequence[SplitReport]) -> Orders | None:
            unsteady = orders.holds or self.governor.moving or any(split.fault for split in splits)
            if unsteady or self.stopping.is_set():
                return None
            ordinal = max([orders_ordinal, *(offer.next_ordinal for offer in offers.values())])
            following: dict[str, Offer] = {}
            for name, reader in readers.items():
                offer = reader.look_ahead(self._limits(), ordinal, offers.get(name))
                if offer is not None:
                    following[name] = offer
                    ordinal = offer.next_ordinal
            if not following:
                return None
            self._foreseen = self._ordering.attempt(orders.epoch + 1)
            return foretold(orders, splits, following, self._tasks(), self._foreseen)

        orders_ordinal = self.checkpoint.manifest.ordinal
        return ahead
