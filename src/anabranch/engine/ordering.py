"""What the tasks of an epoch are told: made of the last manifest, the governor's decisions and the offers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping

from anabranch.control.governor import Governor
from anabranch.engine.commit import Checkpoint
from anabranch.engine.lanes import lanes_reached
from anabranch.engine.lookups import Lookups
from anabranch.engine.options import RunOptions
from anabranch.engine.orders import Orders, StandingOrders, stream_orders
from anabranch.engine.preparing import Attempt
from anabranch.engine.reading import lanes_of, spread, tasks_of
from anabranch.plan.plan import Plan
from anabranch.routing.lane_times import Idle
from anabranch.routing.reach import Reach
from anabranch.sources.base import Offer


class Ordering:
    """Makes the orders of a run, one epoch after another."""

    def __init__(
        self, plan: Plan, options: RunOptions, checkpoint: Checkpoint, governor: Governor
    ) -> None:
        self._plan, self._options = plan, options
        self._checkpoint, self._governor = checkpoint, governor
        self._standing = StandingOrders(plan, options.root, options.settings)
        place = checkpoint.store.place
        self._now = 0
        self._lookups = Lookups(options.tables, place, options.settings.fsync)

    def attempt(self, epoch: int) -> Attempt:
        """A new try of an epoch."""
        name = uuid.uuid4().hex[:8]
        seconds = time.time()
        streams = stream_orders(self._options, self._plan.streams, seconds)
        # The clock of a machine may be set back, and another machine may go on
        self._now = max(round(seconds * 1_000_000), self._now, self._checkpoint.manifest.now)
        return Attempt(name, streams, self._checkpoint.stagings(epoch, name), self._now)

    def orders(
        self, offers: Mapping[str, Offer], tasks: int, attempt: Attempt, ended: bool, idle: Idle,
        flush: bool,
    ) -> Orders:  # fmt: skip
        """The orders of the next epoch; the governor is told that it begins."""
        options, manifest, governor = self._options, self._checkpoint.manifest, self._governor
        epoch = manifest.epoch + 1
        pieces = [(name, piece) for name, offer in offers.items() for piece in offer.pieces]
        streams, maps = self._plan.streams, governor.maps
        known = {name: record.lanes for name, record in manifest.streams.items()}
        lanes = lanes_of(streams, known, maps, pieces)
        governor.begin(manifest)
        waiting = governor.holding(manifest, ended, flush)
        holdings, last = governor.holdings, ended or flush
        spilled, cleaned = holdings.spilling.take_next(manifest, last)
        resettling = holdings.resettling({*waiting.holds, *spilled})
        last = last or holdings.spilling.cleaning_all
        turns = holdings.shapes.take_next(
            manifest, maps, waiting.holds, spilled, cleaned, resettling.scattering, last
        )
        return Orders(
            standing=self._standing,
            epoch=epoch,
            attempt=attempt.name,
            sites=governor.sites,
            maps=governor.maps,
            shelves={name: record.shelf for name, record in manifest.subqueries.items()},
            combine=frozenset(governor.holdings.combining),
            newest={name: record.newest for name, record in manifest.streams.items()},
            lane_times=lanes_reached(manifest.streams, offers),
            watermarks=manifest.watermarks,
            idle=idle,
            ended=ended,
            cleaning_all=governor.holdings.spilling.cleaning_all,
            streams=attempt.streams,
            results=attempt.results,
            now=attempt.now,
            pieces=spread(pieces, tasks, tasks_of(streams, maps, lanes)),
            lanes=lanes,
            grids=dict(holdings.grids.current),
            hot=governor.holdings.hot.condensed(epoch),
            scattered={
                name: tuple(record.scattered)
                for name, record in manifest.exchanges.items()
                if record.scattered
            },
            resettling=resettling,
            turns=turns,
            sampling=governor.planning.due(ended),
            released=waiting.released,
            held=waiting.held,
            reach={
                name: Reach(reached.watermark, waiting.holds.get(name, ()), spilled.get(name, ()))
                for name, reached in manifest.reach.items()
            },
            cleaned=cleaned,
            tables=self._lookups.versions(manifest.tables),
            fetch=governor.fetches(manifest),
            memory=tuple(governor.memory.limit.tolist()),
            faults=options.faults.of_sites(epoch, attempt.name, options.checkpoint),
        )
