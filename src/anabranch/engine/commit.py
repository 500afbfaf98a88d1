"""From the reports of an epoch to its manifest, and from a manifest back to where the run was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping

from anabranch.control.holdings import Steered
from anabranch.control.waiting import still_held
from anabranch.engine.beginning import begun_with, first_manifest
from anabranch.engine.options import RunOptions
from anabranch.engine.orders import Orders
from anabranch.engine.outlets import Outlets
from anabranch.engine.records import exchange_record, shelf_change, stream_records, subquery_record
from anabranch.engine.report import EpochReport
from anabranch.engine.watermarks import advance_watermarks, reach_of_inputs
from anabranch.errors import RunError, StateError
from anabranch.plan.plan import Plan
from anabranch.routing.lane_times import NOBODY, Idle, Lane
from anabranch.routing.partition_map import PartitionMap
from anabranch.sinks.base import Sink
from anabranch.sinks.staging import Staging
from anabranch.sources.base import Offer
from anabranch.state.folders import explained
from anabranch.state.manifest import Manifest
from anabranch.state.place import place
from anabranch.state.store import Store


class Checkpoint:
    """The durable side of a run: the current manifest and the sinks that follow it."""

    def __init__(
        self, plan: Plan, sinks: Mapping[str, Sink], options: RunOptions, run_id: str
    ) -> None:
        self.plan = plan
        self.sinks = sinks
        self.options = options
        settings = options.settings
        self.store = Store(
            place(options.root, settings.private_files), settings.fsync, settings.keep_manifests
        )
        self._outlets = Outlets(plan, options, self.store.place)
        try:
            stored = self.store.ledger.latest()
            # A start that came to no epoch leaves nothing that one would have to agree with
            fresh = first_manifest(plan, options, run_id)
            self._claim = stored if stored and stored.epoch >= 0 else fresh
            self.manifest = begun_with(plan, options, self._claim)
            self._outlets.open(sinks, self.manifest.run_id)
        except BaseException:
            self.close()
            raise
        self.warnings = self._late_sinks()
        """What is to be said with the first epoch."""
        self._sharing: set[tuple[str, int]] = set()
        """The workers that have been seen to write where the driver reads."""
        self._maps: dict[str, PartitionMap] = {}
        """The maps that the records of exchanges were last made of."""
        self._idle = NOBODY
        self._started = time.time()

    def _late_sinks(self) -> list[str]:
        """What to say of queries that get a sink, or get it back, when they have had results without it."""
        rows = self.manifest.result_rows
        return [
            f"Query '{query}' had no sink before: its {rows[query]:,} results up to epoch "
            f"{self.manifest.epoch} are not in '{self.sinks[query].describe()}'. For all of them, start "
            "with a new checkpoint."
            for query in sorted(self.sinks.keys() - {*self.manifest.sinks})
            if rows.get(query)
        ]

    def recover(self) -> None:
        """Claims the checkpoint and finishes what a crash interrupted: results of the last epoch,
        leftovers of the next."""
        with explained(self.store.place):
            self.store.ledger.claim(self._claim)
            change = self.options.evolution
            if change is None:
                self._outlets.recover(self.manifest)
            else:
                self._outlets.recover(self._claim, {old: new for new, old in change.kept.items()})
                # An entry of its own: a crash leaves the query set of before or this one
                self.store.ledger.commit(self.manifest)
            self.store.ledger.sweep()
            # Starts that come to no epoch leave no line that grows
            self.clear()
            self._outlets.sweep(self.manifest)

    def stagings(self, epoch: int, attempt: str) -> dict[str, Staging]:
        """Where the results of an epoch wait for its commit."""
        return self._outlets.stagings(epoch, attempt)

    def idle(self, now: float, waiting: Collection[Lane]) -> Idle:
        """The streams and lanes that have had no rows for longer than the setting allows.

        Lanes that have input waiting are not idle, whether or not this epoch takes some of it.
        """
        after = self.options.settings.idle_after_seconds
        if after is None:
            return NOBODY
        before = now - after
        records = self.manifest.streams
        return Idle(
            frozenset(
                name
                for name, record in records.items()
                if max(record.last_rows_at, self._started) < before
            ),
            frozenset(
                (name, lane)
                for name, record in records.items()
                for lane, time in record.lane_times.items()
                if max(time.last_rows_at, self._started) < before and (name, lane) not in waiting
            ),
        )

    def idleness_matters(self, idle: Idle) -> bool:
        """Whether a stream or a lane has just fallen idle, so that the watermark may go on without it."""
        fallen = Idle(idle.streams - self._idle.streams, idle.lanes - self._idle.lanes)
        self._idle = idle
        components = [stream.component for stream in self.plan.streams.values()]
        # One that meets no other holds up nobody
        return any(
            components.count(self.plan.streams[name].component) > 1 for name in fallen.streams
        ) or any(len(self.manifest.streams[name].lane_times) > 1 for name, _ in fallen.lanes)

    def commit(
        self, orders: Orders, report: EpochReport, offers: Mapping[str, Offer],
        steered: Steered,
    ) -> None:  # fmt: skip
        """Writes the manifest of the epoch, with what steers the run: from here on it has happened."""
        self._check_shared(orders, report)
        now, before = time.time(), self.manifest
        watermarks = advance_watermarks(orders, report.splits)
        reach = reach_of_inputs(self.plan, orders.holds, watermarks, orders.spilled)
        result_rows = report.result_rows()
        shelves = {
            name: shelf_change(
                before.subqueries[name], subquery, orders, report, reach[subquery.exchange]
            )
            for name, subquery in self.plan.subqueries.items()
        }
        moved = {name: known is not self._maps.get(name) for name, known in orders.maps.items()}
        manifest = Manifest(
            run_id=before.run_id,
            epoch=orders.epoch,
            attempt=orders.attempt,
            sites=orders.sites,
            committed_at=now,
            identity=self.plan.identity,
            streams=stream_records(before.streams, orders, report, offers, now),
            watermarks=watermarks,
            exchanges={
                name: exchange_record(name, before.exchanges[name], moved[name], orders, steered)
                for name in self.plan.exchanges
            },
            reach={name: reach[name] for name in self.plan.exchanges},
            subqueries={
                name: subquery_record(
                    before.subqueries[name],
                    subquery,
                    orders,
                    report,
                    reach[subquery.exchange],
                    shelves[name],
                    steered,
                )
                for name, subquery in self.plan.subqueries.items()
            },
            results=self._outlets.staged(orders, report),
            sinks={query: sink.describe() for query, sink in sorted(self.sinks.items())},
            result_rows={
                output.query: before.result_rows.get(output.query, 0)
                + result_rows.get(output.query, 0)
                for output in self.plan.outputs
            },
            tables=dict(orders.tables),
            now=orders.now,
            ordinal=max((offer.next_ordinal for offer in offers.values()), default=before.ordinal),
            ended=orders.ended,
            queries=before.queries,
            changes=before.changes,
            partitioning=before.partitioning,
            held=still_held(before.held, orders.held)
            + [ref for part in report.parts() for ref in part.held],
            moving=steered.moving,
            dead_letter=self.options.dead_letter,
        )
        self.store.ledger.commit(manifest, shelves)
        self.manifest, self._maps = manifest, dict(orders.maps)

    def _check_shared(self, orders: Orders, report: EpochReport) -> None:
        """Raises RunError if the driver does not see what the tasks have written to the checkpoint.

        Of every worker once: what was seen of it is seen for good.
        """
        written = {
            (site.executor, site.worker): [
                *(ref.file for done in site.subqueries.values() for ref in done.segments),
                *(ref.file for ref in site.held),
            ]
            for site in report.sites
        }
        for number, split in enumerate(report.splits):
            written["split", number] = [ref.file for ref in split.held]
        for worker, files in written.items():
            if not files or worker in self._sharing:
                continue
            if not orders.place.has(files[0]):
                raise RunError(
                    f"State of epoch {orders.epoch} should be in '{orders.place}/{files[0]}', which is "
                    "not there: was it written on another machine? The checkpoint must be a folder that "
                    "all executors and the driver share, or a URI that all of them reach. The epoch is "
                    "not counted."
                )
            self._sharing.add(worker)

    def publish(self) -> None:
        """Makes the results of the epoch that was committed visible."""
        self._outlets.publish(self.manifest)

    def discard(self, orders: Orders) -> None:
        """Removes what a failed epoch left in the sinks and in the state."""
        self._outlets.discard(orders.epoch, orders.attempt)
        # If that fails too, the next start does it; the error that brought us here says more
        with contextlib.suppress(StateError, OSError):
            self.store.ledger.sweep()

    def withdraw(self, epoch: int, attempt: str) -> None:
        """Removes what was staged for an epoch that is run in another attempt."""
        self._outlets.discard(epoch, attempt)

    def taken_over(self) -> StateError | None:
        """What there is to say if another run has claimed the checkpoint; None if it has not."""
        # A folder that cannot be listed or read tells nothing
        with contextlib.suppress(OSError):
            return self.store.ledger.lost()
        return None

    def clear(self) -> None:
        """Deletes what no longer counts; raises StateError if another run has taken over."""
        with explained(self.store.place):
            self.store.ledger.clear()
            self._outlets.clear()

    def close(self) -> None:
        with contextlib.ExitStack() as stack:
            # All of them, the lock last, whatever fails on the way
            stack.callback(self.store.close)
            for outlet in self._outlets.closers():
                stack.callback(outlet.close)
