"""From the reports of an epoch to its manifest, and from a manifest back to where the run was."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from anabranch.control.holdings import Steered
from anabranch.engine.carrying import carried
from anabranch.engine.epoch import (
    EpochReport,
    Orders,
    advance_watermarks,
    inputs_reached,
    lane_times,
    newest_times,
)
from anabranch.engine.options import RunOptions
from anabranch.engine.outlets import Outlets
from anabranch.engine.progress import skew
from anabranch.errors import RunError, StateError
from anabranch.plan.keeping import identified
from anabranch.plan.plan import Plan
from anabranch.plan.subquery import IN_GRID, Subquery
from anabranch.routing.grid import choose_grid
from anabranch.routing.holdback import Reach, least
from anabranch.routing.lane_times import NOBODY, Idle, Lane, LaneTime
from anabranch.routing.partition_map import PartitionMap, even_map, slots_for
from anabranch.sinks.base import Sink
from anabranch.sinks.staging import Staging
from anabranch.sources.base import Offer
from anabranch.state.folders import explained
from anabranch.state.manifest import (
    ExchangeRecord,
    Manifest,
    StreamRecord,
    SubqueryRecord,
    refuse_other,
)
from anabranch.state.place import place
from anabranch.state.segment import NEVER
from anabranch.state.shelf import ShelfChange
from anabranch.state.store import Store

MOST_LANE_VALUES = 1_000_000
"""Hashes that are remembered of a stream's lanes at most; mostly the same few come again."""
RECENCY = 0.3
"""The weight of the newest epoch in what the manifest says an epoch takes."""


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
            begun = stored if stored and stored.epoch >= 0 else self._first(run_id)
            self._claim = begun
            change = options.evolution
            if change is not None:
                begun = carried(begun, plan, change, options.partitioning)
            records = {
                name: dict(getattr(begun, name)) for name in ("subqueries", "exchanges", "reach")
            }
            self.manifest = self._complete(replace(begun, **records))
            self._refuse_other(self.manifest)
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
        self._lane_values: dict[str, dict[int, int]] = {}
        self._idle = NOBODY
        self._started = time.time()

    def _complete(self, manifest: Manifest) -> Manifest:
        """The manifest with an entry for every subquery without state: they come and go with sinks."""
        # Those that the run has now: maps of more or fewer sites are brought to them later
        sites = manifest.sites
        partitions = self.options.sites * self.options.settings.partitions_per_site
        reached = inputs_reached(self.plan, manifest.holds, manifest.watermarks)
        for name, subquery in self.plan.subqueries.items():
            if name not in manifest.subqueries:
                if manifest.epoch >= 0 and subquery.stateful:
                    continue
                known_by = identified(subquery)
                manifest.subqueries[name] = SubqueryRecord(exchange=subquery.exchange, **known_by)
            if subquery.exchange in manifest.exchanges:
                continue
            grid = None
            if subquery.spread == IN_GRID:
                grid = choose_grid(sites, *subquery.weights)
            # The cells of a grid cannot be cut
            count, slots = (grid.cells, 0) if grid else (partitions, slots_for(partitions))
            manifest.exchanges[subquery.exchange] = ExchangeRecord(
                **mapped(even_map(count, sites, slots)),
                grid=list(grid.bands) if grid else [],
            )
            manifest.reach[subquery.exchange] = Reach(reached[subquery.exchange])
        return manifest

    def _first(self, run_id: str) -> Manifest:
        return Manifest(
            run_id=run_id,
            epoch=-1,
            sites=self.options.sites,
            committed_at=0.0,
            identity=self.plan.identity,
            streams={name: StreamRecord() for name in self.plan.streams},
            watermarks={stream.component: None for stream in self.plan.streams.values()},
            exchanges={},
            subqueries={},
            queries=dict(self.options.queries),
            partitioning=self.options.partitioning,
        )

    def _refuse_other(self, manifest: Manifest) -> None:
        what = f"The checkpoint '{self.options.root}'"
        refuse_other(manifest, self.plan.identity, what)
        # Entries of subqueries without state may be left of sinks that the query set no longer has
        keeping = {name for name, record in manifest.subqueries.items() if record.shelf}
        keeping |= {ref.subquery for ref in manifest.held}
        for name in sorted(keeping - self.plan.subqueries.keys()):
            raise StateError(
                f"{what} has state of a subquery '{name}', which the plan of this query set does not "
                f"have. Existing: {', '.join(self.plan.subqueries)}. Was its manifest changed by hand? "
                "Restore it from a copy, or start with a new checkpoint folder."
            )

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

    def reached(self) -> dict[str, int | None]:
        """How far the input of each exchange has come."""
        return {name: self.manifest.reach[name].watermark for name in self.plan.exchanges}

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

    def check_lanes(self, orders: Orders, report: EpochReport) -> None:
        """Raises RunError if rows that belong together came in different lanes of their stream."""
        for split in report.splits:
            for stream, lanes in split.lane_values.items():
                known = self._lane_values.setdefault(stream, {})
                for lane, values in lanes.items():
                    for value in values:
                        if known.setdefault(value, lane) != lane:
                            self._refuse_lanes(orders, stream, known[value], lane)
                if len(known) > MOST_LANE_VALUES:
                    known.clear()

    def _refuse_lanes(self, orders: Orders, stream: str, one: int, other: int) -> None:
        names = {partition: name for name, partition in orders.lanes[stream].items()}
        terms = ", ".join(map(str, self.plan.streams[stream].lane_terms))
        raise RunError(
            f"Stream '{stream}' is said to come partitioned by {terms}, but the same value came in the "
            f"parts '{names[one]}' and '{names[other]}', so groups would be split. Epoch {orders.epoch} "
            "is not counted. Take partitioned_by away and start with a new checkpoint."
        )

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

    def lane_times(self, offers: Mapping[str, Offer]) -> dict[str, dict[str, int | None]]:
        """How far the lanes of each stream have come: those that have had rows or may have some."""
        times: dict[str, dict[str, int | None]] = {}
        for name, record in self.manifest.streams.items():
            known = {lane: time.newest for lane, time in record.lane_times.items()}
            if name not in offers:
                times[name] = known
            elif (waiting := offers[name].lanes) is not None:
                begun = {lane: time for lane, time in known.items() if time is not None}
                times[name] = {**dict.fromkeys(waiting), **begun}
        return {name: lanes for name, lanes in times.items() if lanes}

    def commit(
        self, orders: Orders, report: EpochReport, offers: Mapping[str, Offer],
        steered: Steered,
    ) -> None:  # fmt: skip
        """Writes the manifest of the epoch, with what steers the run: from here on it has happened."""
        self._check_shared(orders, report)
        now = time.time()
        watermarks = advance_watermarks(orders, report.splits)
        reached = inputs_reached(self.plan, orders.holds, watermarks)
        shelves = {
            name: self._shelf_change(subquery, orders, report, reached)
            for name, subquery in self.plan.subqueries.items()
        }
        manifest = Manifest(
            run_id=self.manifest.run_id,
            epoch=orders.epoch,
            attempt=orders.attempt,
            sites=orders.sites,
            committed_at=now,
            identity=self.plan.identity,
            streams=self._streams(orders, report, offers, now),
            watermarks=watermarks,
            exchanges={name: self._exchange(name, orders, steered) for name in self.plan.exchanges},
            reach={
                name: Reach(reached[name], orders.holds.get(name, ()))
                for name in self.plan.exchanges
            },
            subqueries={
                name: self._subquery(subquery, orders, report, reached, shelves[name], steered)
                for name, subquery in self.plan.subqueries.items()
            },
            results=self._outlets.staged(orders, report),
            sinks=sorted(self.sinks),
            result_rows={
                output.query: self.manifest.result_rows.get(output.query, 0)
                + report.result_rows().get(output.query, 0)
                for output in self.plan.outputs
            },
            ordinal=max(
                (offer.next_ordinal for offer in offers.values()), default=self.manifest.ordinal
            ),
            ended=orders.ended,
            queries=self.manifest.queries,
            changes=self.manifest.changes,
            partitioning=self.manifest.partitioning,
            held=[ref for ref in self.manifest.held if ref not in orders.held]
            + [ref for part in report.parts() for ref in part.held],
            moving=steered.moving,
        )
        self.store.ledger.commit(manifest, shelves)
        self.manifest = manifest

    def _check_shared(self, orders: Orders, report: EpochReport) -> None:
        """Raises RunError if the driver does not see what the tasks have written to the checkpoint.

        Of every worker once: what was seen of it is seen for good.
        """
        for site in report.sites:
            written = [ref.file for done in site.subqueries.values() for ref in done.segments]
            written += [ref.file for ref in site.held]
            worker = site.executor, site.worker
            if not written or worker in self._sharing:
                continue
            if not orders.place.has(written[0]):
                raise RunError(
                    f"State of epoch {orders.epoch} should be in '{orders.place}/{written[0]}', which is "
                    "not there: was it written on another machine? The checkpoint must be a folder that "
                    "all executors and the driver share, or a URI that all of them reach. The epoch is "
                    "not counted."
                )
            self._sharing.add(worker)

    def _streams(
        self, orders: Orders, report: EpochReport, offers: Mapping[str, Offer], now: float
    ) -> dict[str, StreamRecord]:
        newest = newest_times(orders.newest, report.splits)
        lanes = lane_times(orders.lane_times, report.splits)
        records = {}
        for name, known in self.manifest.streams.items():
            seen = [split.streams[name] for split in report.splits if name in split.streams]
            rows = sum(part.rows for part in seen)
            records[name] = StreamRecord(
                offset=offers[name].offset if name in offers else known.offset,
                newest=newest[name],
                rows=known.rows + rows,
                epochs=known.epochs + (rows > 0),
                bytes=known.bytes + sum(part.bytes for part in seen),
                late=known.late + sum(part.late for part in seen),
                bad_rows=known.bad_rows + sum(part.bad_rows for part in seen),
                bad_files=known.bad_files + len({f for part in seen for f in part.bad_files}),
                last_rows_at=now if rows else known.last_rows_at,
                lanes=dict(orders.lanes.get(name, known.lanes)),
                lane_times={
                    lane: LaneTime(newest=time, last_rows_at=now)
                    if any(lane in part.lanes for part in seen)
                    else known.lane_times.get(lane, LaneTime(newest=None))
                    for lane, time in lanes.get(name, {}).items()
                },
            )
        return records

    def _exchange(self, name: str, orders: Orders, steered: Steered) -> ExchangeRecord:
        """The record of an exchange; the same object as before if nothing has changed."""
        before = self.manifest.exchanges[name]
        after = replace(
            before,
            scattered=[*before.scattered, *orders.scattering.get(name, ())],
            by_hand=name in steered.by_hand,
            adapted=name in steered.adapted,
            pins=steered.pins.get(name, {}),
        )
        if self._maps.get(name) is not orders.maps[name]:
            after = replace(after, **mapped(orders.maps[name]))
            self._maps[name] = orders.maps[name]
        return before if after == before else after

    def _shelf_change(
        self, subquery: Subquery, orders: Orders, report: EpochReport,
        reached: Mapping[str, int | None],
    ) -> ShelfChange:  # fmt: skip
        """What the epoch does to the state of a subquery."""
        done = report.of_subquery(subquery.name)
        watermark = subquery.watermark(reached[subquery.exchange])
        waiting = [subquery.watermark(h.watermark) for h in orders.holds.get(subquery.exchange, ())]
        return self.manifest.subqueries[subquery.name].shelf.change(
            [ref for part in done for ref in part.segments],
            [masked for part in done for masked in part.masked],
            NEVER if orders.ended else least([watermark, *waiting]),
        )

    def _subquery(
        self, subquery: Subquery, orders: Orders, report: EpochReport,
        reached: Mapping[str, int | None], change: ShelfChange, steered: Steered,
    ) -> SubqueryRecord:  # fmt: skip
        known = self.manifest.subqueries[subquery.name]
        done = report.of_subquery(subquery.name)
        return SubqueryRecord(
            exchange=subquery.exchange,
            **identified(subquery),
            shelf=known.shelf.after(change),
            watermark=subquery.watermark(reached[subquery.exchange]),
            combine=subquery.name in steered.combining,
            rows_in=known.rows_in + sum(part.rows_in for part in done),
            rows_out=known.rows_out + sum(part.rows_out for part in done),
            rows_received=known.rows_received + sum(part.rows_received for part in done),
            bytes_received=known.bytes_received + sum(part.bytes_received for part in done),
            bytes_out=known.bytes_out + sum(part.bytes_out for part in done),
            skew=self._skew(subquery, known, orders, report),
            seconds=smoothed(known.seconds, sum(part.seconds for part in done)),
        )

    def _skew(
        self, subquery: Subquery, known: SubqueryRecord, orders: Orders, report: EpochReport
    ) -> float:
        # Sites that other exchanges have been given are not idle for want of balance
        owners = {*orders.maps[subquery.exchange].sites}
        loads = [
            site.subqueries[subquery.name].rows_in
            for site in report.sites
            if subquery.name in site.subqueries and site.site in owners
        ]
        return (
            smoothed(known.skew if known.rows_in else 0, skew(loads)) if any(loads) else known.skew
        )

    def publish(self) -> None:
        """Makes the results of the epoch that was committed visible."""
        self._outlets.publish(self.manifest)

    def discard(self, orders: Orders) -> None:
        """Removes what a failed epoch left in the sinks and in the state."""
        self._outlets.discard(orders.epoch, orders.attempt)
        # If that fails too, the next start does it; the error that brought us here says more
        with contextlib.suppress(StateError, OSError):
            self.store.ledger.sweep()

    def taken_over(self) -> StateError | None:
        """What there is to say if another run has claimed the checkpoint; None if it has not."""
        try:
            self.store.ledger.require_lead()
        except StateError as error:
            return error
        except OSError:
            pass  # a folder that cannot be listed tells nothing
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


def mapped(known: PartitionMap) -> dict[str, Any]:
    """A map as the manifest has it."""
    whole = known.slots == known.partitions
    starts = [] if whole else list(known.starts)
    return {
        "sites": list(known.sites), "starts": starts, "slots": known.slots, "cells": known.cells,
    }  # fmt: skip


def smoothed(before: float, now: float) -> float:
    """A mean in which each epoch counts less than the next."""
    return now if before == 0 else before + RECENCY * (now - before)
