"""A transport whose tasks are made up: they do nothing, and report what those of a cluster would.

Every site has rows of all its partitions. Of each stateful subquery it writes a segment, which goes when it
is due; where slots are put aside another one for these, which is merged into a later one.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil

from anabranch.engine.orders import Orders
from anabranch.engine.preparing import Ahead
from anabranch.engine.report import (
    Counts,
    EpochReport,
    SiteReport,
    SplitReport,
    StreamReport,
    SubqueryReport,
)
from anabranch.engine.run import Run
from anabranch.engine.telling import Teller
from anabranch.engine.transport import Transport, gather_sites
from anabranch.plan.subquery import Subquery
from anabranch.routing.partition_map import PartitionMap
from anabranch.routing.ranges import ranges_where
from anabranch.routing.reach import slots_of
from anabranch.session import Session
from anabranch.state.segment import SegmentRef, slots_in

PARTITIONS = 32
SEGMENTS = 10_000
ROWS = 1_000
"""Rows that an epoch is said to have for each site."""
MEMORY = 16 * 2**30
"""Bytes of the machine that a site is said to have for itself."""
WINDOW = 60
"""By how much the time of an epoch is later than that of the one before: a window of the first query."""
FAR = 1_000_000
"""Epochs after which something is due that a run does not come to."""
LOOK_EVERY = 50
"""Epochs between two counts of the files, which take longer than an epoch."""
_UNTOLD: Any = None
"""In place of what was told once for the run."""


@dataclass(frozen=True)
class Driven:
    """What a run does whose driver is measured."""

    queries: Mapping[str, str]
    prepare: Callable[[Run], None] | None = None
    """What is done to the run before its third epoch."""
    stays: bool = False
    """Whether windows of slots that are put aside do not close, so that they stay so."""
    segments: int = 2
    """How many a site writes in an epoch."""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def lifetime(self, sites: int) -> int:
        """The epochs after which as many segments go as come."""
        return max(2, SEGMENTS // (self.segments * sites))


class MadeUp:
    """A transport whose tasks do nothing but report."""

    def __init__(self, sites: int, checkpoint: Path, case: Driven) -> None:
        self.placement: dict[int, str] = {}
        self.moments: tuple[list[float], list[float]] = [], []
        """When each epoch's tasks began, by the clock and by the time this thread has computed, less what
        was not the driver's own."""
        self.orders_bytes: list[int] = []
        self.entries: list[int] = []
        self.files: list[int] = []
        self.memory: list[int] = []
        self._sites, self._checkpoint, self._counted = sites, checkpoint, 0
        self._lifetime, self._stays = case.lifetime(sites), case.stays
        self._elsewhere = [0.0, 0.0]
        self._teller = Teller()
        self._random = np.random.default_rng(sites)
        self._process = psutil.Process()
        self._map: PartitionMap | None = None
        self._arrays = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self._owed: dict[tuple[str, int], deque[SegmentRef]] = {}
        """What each site keeps of slots that are put aside, by subquery; the oldest first."""

    def parallelism(self) -> int:
        return self._sites

    def alive(self, sites: int) -> list[bool]:
        return [True] * sites

    def close(self) -> None:
        pass

    def has_prepared(self, orders: Orders) -> bool:
        return False

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        for moments, now, elsewhere in zip(self.moments, _clocks(), self._elsewhere, strict=True):
            moments.append(now - elsewhere)
        fewer, news = self._teller.tell(orders)
        sent = len(pickle.dumps((replace(fewer, standing=_UNTOLD), news)))
        began = _clocks()
        self.orders_bytes.append(sent)
        reports = list(self._reports(orders))
        self._look()
        for number, (before, now) in enumerate(zip(began, _clocks(), strict=True)):
            self._elsewhere[number] += now - before
        report = gather_sites(reports)
        report.seconds = 0.2
        return report

    def _look(self) -> None:
        """Notes how large things are."""
        entries = sorted((self._checkpoint / "manifests").iterdir())
        self.entries.append(entries[-1].stat().st_size)
        if len(self.files) % LOOK_EVERY == 0:
            self._counted = sum(1 for _ in (self._checkpoint / "state").rglob("*.arrow"))
        self.files.append(len(entries) + self._counted)
        self.memory.append(self._process.memory_info().rss)

    def _reports(self, orders: Orders) -> Iterator[bytes]:
        """What the tasks of an epoch would have sent to the driver."""
        seen = StreamReport(rows=ROWS, bytes=60 * ROWS, newest=WINDOW * orders.epoch)
        splits = [SplitReport(streams={"packets": seen}, seconds=0.05)] * self._sites
        aside = {}
        for name, spilled in orders.spilled.items():
            aside[name] = np.zeros(orders.maps[name].slots, dtype=bool)
            aside[name][slots_in(slots_of(spilled))] = True
        for site in range(self._sites):
            levels = range(1, orders.plan.levels + 1)
            sites = [self._site(orders, level, site, aside) for level in levels]
            yield msgspec.msgpack.encode(EpochReport(splits if site == 0 else [], sites))

    def _site(
        self, orders: Orders, level: int, site: int, aside: Mapping[str, np.ndarray]
    ) -> SiteReport:
        report = SiteReport(
            level, site, started=time.time(), worker=site, executor=str(site), seconds=0.1,
            machine=str(site), memory=MEMORY,
        )  # fmt: skip
        for subquery in orders.plan.at_level(level):
            known = orders.maps[subquery.exchange]
            mine = known.partitions_of(site)
            starts, widths = self._starts(known)
            rows = self._random.poisson(ROWS / PARTITIONS, len(mine))
            first = starts[mine]
            arrays = rows, rows // 2, first
            report.arrived[subquery.exchange] = Counts(
                *(array.astype(np.int64).tobytes() for array in arrays)
            )
            done = report.subqueries[subquery.name] = SubqueryReport(
                rows_in=ROWS, rows_received=ROWS, bytes_received=20 * ROWS, rows_out=ROWS,
                inputs=[(ROWS, 20 * ROWS)] * len(subquery.paths), groups=ROWS, compared=ROWS,
                bytes_out=20 * ROWS, seconds=0.05,
            )  # fmt: skip
            begin, end = int(first[0]), int(first[-1]) + 1
            if subquery.exchange not in aside:
                done.segments.append(self._segment(orders, subquery, site, ((begin, end),)))
                continue
            end = begin + int(widths[mine].sum())
            inside = np.zeros(end, dtype=bool)
            inside[begin:] = aside[subquery.exchange][begin:end]
            self._owe(orders, subquery, site, tuple(ranges_where(inside)), done)
            inside[begin:] = ~inside[begin:]
            live = tuple(ranges_where(inside))
            done.segments.append(self._segment(orders, subquery, site, live))
        return report

    def _starts(self, known: PartitionMap) -> tuple[np.ndarray, np.ndarray]:
        """The first slot of each partition and how many it has, which takes long to put together."""
        if self._map is not known:
            self._map = known
            self._arrays = np.asarray(known.starts), known.widths
        return self._arrays

    def _owe(
        self, orders: Orders, subquery: Subquery, site: int, live: tuple[tuple[int, int], ...],
        done: SubqueryReport,
    ) -> None:  # fmt: skip
        """Writes what came to slots that are put aside: packed, with all there was, when they go."""
        owed = self._owed.setdefault((subquery.name, site), deque())
        packs = not owed
        ref = self._segment(orders, subquery, site, live, packs)
        done.segments.append(ref)
        owed.append(ref)
        if packs:
            before = orders.shelves[subquery.name].within(live)
            done.masked += [(one.file, one.batch, [*live]) for one in before]
        elif len(owed) > self._lifetime:
            # The packed one stays
            merged = owed[1]
            del owed[1]
            done.masked.append((merged.file, merged.batch, [*merged.live]))

    def _segment(
        self, orders: Orders, subquery: Subquery, site: int, live: tuple[tuple[int, int], ...],
        packed: bool | None = None,
    ) -> SegmentRef:  # fmt: skip
        """A segment of slots in memory, or, where it is told whether it is packed, of slots put aside."""
        kind = "open" if packed is None else "owed"
        file = f"state/{subquery.name}/{orders.epoch:012d}-{site:04d}-{kind}-{orders.attempt}.arrow"
        # In the time of what the subquery reads, which for one over windows is counted in windows
        stays = self._stays and (packed is not None or subquery.exchange not in orders.spilled)
        due = subquery.watermark(WINDOW * (orders.epoch + (FAR if stays else self._lifetime)))
        assert due is not None
        path = orders.place.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        table = next(iter(subquery.operator.tables)).name
        return SegmentRef(
            file=file, batch=0, table=table, tier=0, rows=ROWS, bytes=40 * ROWS, min_due=due,
            max_due=due, live=live, along=(ROWS,), born=(orders.epoch, orders.epoch), checksum=0,
            packed=bool(packed),
        )  # fmt: skip


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


class Faked(Session):
    """A session with a transport of its own."""

    def __init__(self, sites: int, settings: dict[str, Any], made_up: MadeUp) -> None:
        super().__init__(None, sites, settings)
        self._made_up = made_up

    def _transport(self) -> Transport:
        return self._made_up
