"""Sites whose service takes emulated time, and streams that come by a clock of that time.

The engine works on every row; only how long that takes is computed and not measured, from what sites have
done: rows taken in, pairs of rows looked at, rows of intermediates made, rows of state that came from another
site. Sites work at the same time, and an epoch takes as long as the busiest of them. So a run is the same
whatever else the machine does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from anabranch.engine.orders import Orders
from anabranch.engine.preparing import Ahead
from anabranch.engine.report import EpochReport, SubqueryReport
from anabranch.engine.transport import Transport, Twin
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import intersect, union
from anabranch.session import Session
from anabranch.simulate.service import Service
from anabranch.sources.base import EpochLimits, Offer, ReadContext, Reader, StreamSample
from anabranch.testing.sources import FramePiece

TICKS = 1_000
"""Units of the streams' time in a second."""


class PlanClock:
    """Emulated time, and how far the streams have been read by it."""

    def __init__(self, epoch: float, end: float) -> None:
        self._epoch, self.end = epoch, end
        """Seconds of the streams that one epoch takes in, if they are there; seconds of the run."""
        self.now = epoch
        self.read = 0.0
        self.spent: list[float] = []
        """The seconds that each epoch has taken, without what it waited for rows."""

    @property
    def upto(self) -> float:
        """Up to which time of the streams the next epoch reads."""
        return min(self.now, self.read + self._epoch)

    @property
    def over(self) -> bool:
        return self.now >= self.end

    def pass_epoch(self, seconds: float) -> None:
        """An epoch has taken so long; the next one begins when there is enough for it to read."""
        self.read = self.upto
        self.spent.append(seconds)
        self.now = max(self.now + seconds, self.read + self._epoch)


@dataclass
class ArrivalSource:
    """Rows that come by a clock; those that have not come before its end are never read."""

    rows: pl.DataFrame
    """With the column `t`, their time in ticks, in order."""
    clock: PlanClock

    @property
    def schema(self) -> pl.Schema:
        return self.rows.schema

    def sample(self, rows: int, limits: EpochLimits) -> StreamSample | None:
        return StreamSample(self.rows.head(rows), self.rows.height)

    def open(self, context: ReadContext) -> Reader:
        return ArrivalReader(self.rows, self.clock)

    def describe(self) -> str:
        return type(self).__name__


class ArrivalReader:
    """What one run has read of them."""

    def __init__(self, rows: pl.DataFrame, clock: PlanClock) -> None:
        self._rows, self._clock = rows, clock
        self._times = rows["t"].to_numpy() / TICKS

    def poll(self, limits: EpochLimits, ordinal: int) -> Offer | None:
        if self._clock.over:
            return None
        first, end = np.searchsorted(self._times, [self._clock.read, self._clock.upto]).tolist()
        piece = FramePiece(self._rows[first:end], ordinal, f"rows {first} to {end}")
        return Offer((piece,), end, ordinal + 1)

    def finished(self) -> bool:
        return self._clock.over

    def committed(self, offset: Any) -> None:
        pass

    def stop(self) -> None:
        pass


class ServiceTwin(Twin):
    """The in-process twin with sites that take emulated time."""

    def __init__(self, service: Service, clock: PlanClock) -> None:
        super().__init__(splits=1)
        self._service, self._clock = service, clock
        self._maps: Mapping[str, PartitionMap] = {}

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        report = super().run(orders, None)
        came = self._came(orders)
        for part in report.sites:
            part.started, part.seconds = 0.0, came.get(part.site, 0.0)
            for name, done in part.subqueries.items():
                done.seconds = self._takes(done, orders.epoch)
                done.seconds += done.rows_in * self._twice(orders, name, part.site)
                part.seconds += done.seconds
        report.seconds = self._lasts(report)
        self._clock.pass_epoch(report.seconds)
        return report

    def _lasts(self, report: EpochReport) -> float:
        return max(part.seconds for part in report.sites)

    def _takes(self, done: SubqueryReport, epoch: int) -> float:
        """What the work for a subquery takes; `sampling` is that part of it."""
        ask = self._service
        keys = sum(vector[0] for vector in done.sampled.values())
        done.sampling = keys * ask.row
        made = made_between(done, epoch)
        return (
            done.rows_in * ask.row + done.compared * ask.pair + made * ask.intermediate
            + done.sampling
        )  # fmt: skip

    def _twice(self, orders: Orders, name: str, site: int) -> float:
        """What it takes a site to look up new rows a second time, where slots are on a parallel track."""
        turn = orders.turns.get(name)
        if turn is None or not turn.tracks:
            return 0.0
        known = orders.maps[orders.plan.subqueries[name].exchange]
        tracked = union([(one.first, one.end) for one in turn.tracks], [])
        share = _slots(intersect(known.owned_by(site), tracked)) / _slots(known.owned_by(site))
        return share * self._service.row

    def _came(self, orders: Orders) -> dict[int, float]:
        """The seconds that sites take for state that goes to others or comes from them."""
        found: dict[int, float] = {}
        for name, subquery in orders.plan.subqueries.items():
            known = orders.maps[subquery.exchange]
            before = self._maps.get(subquery.exchange)
            shelf = orders.shelves[name]
            if before is None or before.slots != known.slots or not shelf.bytes:
                continue
            size = np.zeros(known.slots)
            size[: len(shelf.bytes_by_slot)] = shelf.bytes_by_slot[: known.slots]
            rows = size / size.sum() * shelf.rows if size.any() else size
            slots = np.arange(known.slots)
            was, now = before.site_of(slots), known.site_of(slots)
            for sites in (was, now):
                sums = np.bincount(sites, np.where(was != now, rows, 0.0), orders.sites)
                for site, moved in enumerate(sums.tolist()):
                    found[site] = found.get(site, 0.0) + moved * self._service.moved
        self._maps = dict(orders.maps)
        return found


def made_between(done: SubqueryReport, epoch: int) -> int:
    """The rows of intermediates that were made in an epoch, new ones and those of a change of shape."""
    # What is merged is of a higher tier. On a track, what has a row from before its cut is born with that
    return sum(
        ref.rows
        for ref in done.segments
        if ref.table.startswith("mid") and ref.born[1] == epoch and not ref.tier
    )


def _slots(ranges: Sequence[tuple[int, int]]) -> int:
    return max(1, sum(end - first for first, end in ranges))


class ServiceSession(Session):
    """A session without Spark whose runs take emulated time."""

    service: Service
    clock: PlanClock

    def _transport(self) -> Transport:
        return ServiceTwin(self.service, self.clock)
