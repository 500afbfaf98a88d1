"""What an epoch costs the driver as sites and epochs grow: real ledger, real governor, made-up tasks.

Tasks report what those of a cluster would: every site has rows of all its partitions, writes a segment for
each stateful subquery and a part of the results. Orders are put together and pickled, reports decoded, as
with Spark. What the made-up tasks themselves take is not counted.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import psutil

from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
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
from anabranch.engine.telling import Teller
from anabranch.engine.transport import Transport, gather_sites
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.plan.subquery import Subquery
from anabranch.session import Session
from anabranch.state.segment import SegmentRef

SITES = (8, 64, 256, 1024)
PARTITIONS = 32
SEGMENTS = 10_000
EPOCHS = 40
WARM_UP = 10
LONG = 5_000
LONG_SITES = 8
LOOK_EVERY = 50
"""Epochs between two counts of the files, which take longer than an epoch."""
ROWS = 1_000
"""Rows that an epoch is said to have for each site."""
MEMORY = 16 * 2**30
"""Bytes of the machine that a site is said to have for itself."""
WINDOW = 60
"""By how much the time of an epoch is later than that of the one before: a window of the first query."""
BAR = 0.5
_UNTOLD: Any = None
"""In place of what was told once for the run."""
QUERIES = {
    "flows": f"SELECT tb, srcIP, SUM(len) AS bytes FROM packets GROUP BY time/{WINDOW} AS tb, srcIP",
    "heavy": "SELECT tb, bytes, COUNT(*) AS n FROM flows GROUP BY tb, bytes",
}
NOTES = (
    "Seconds are those of the driver from one epoch to the next, without its tasks: polling, orders and "
    "their bytes, reports, the commit, results, clearing away, control, progress. cpu_seconds is what its "
    "thread computed in them.",
    f"Every site writes a segment for each of {len(QUERIES)} subqueries in every epoch, and they live "
    f"until there are {SEGMENTS:,}.",
)


class MadeUp:
    """A transport whose tasks do nothing but report."""

    def __init__(self, sites: int, checkpoint: Path) -> None:
        self.placement: dict[int, str] = {}
        self.moments: tuple[list[float], list[float]] = [], []
        """When each epoch's tasks began, by the clock and by the time this thread has computed, less what
        was not the driver's own."""
        self.orders_bytes: list[int] = []
        self.entries: list[int] = []
        self.files: list[int] = []
        self.memory: list[int] = []
        self._sites, self._checkpoint, self._counted = sites, checkpoint, 0
        self._elsewhere = [0.0, 0.0]
        self._teller = Teller()
        self._random = np.random.default_rng(sites)
        self._process = psutil.Process()

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
        for site in range(self._sites):
            sites = [self._site(orders, level, site) for level in range(1, orders.plan.levels + 1)]
            yield msgspec.msgpack.encode(EpochReport(splits if site == 0 else [], sites))

    def _site(self, orders: Orders, level: int, site: int) -> SiteReport:
        report = SiteReport(
            level, site, started=time.time(), worker=site, executor=str(site), seconds=0.1,
            machine=str(site), memory=MEMORY,
        )  # fmt: skip
        for subquery in orders.plan.at_level(level):
            known = orders.maps[subquery.exchange]
            mine = known.partitions_of(site)
            rows = self._random.poisson(ROWS / PARTITIONS, len(mine))
            first = np.asarray(known.starts)[mine]
            arrays = rows, rows // 2, first
            report.arrived[subquery.exchange] = Counts(
                *(array.astype(np.int64).tobytes() for array in arrays)
            )
            report.subqueries[subquery.name] = SubqueryReport(
                rows_in=ROWS, rows_received=ROWS, bytes_received=20 * ROWS, rows_out=ROWS,
                groups=ROWS, bytes_out=20 * ROWS, seconds=0.05,
                segments=[self._segment(orders, subquery, site, first)],
            )  # fmt: skip
        return report

    def _segment(
        self, orders: Orders, subquery: Subquery, site: int, first: np.ndarray
    ) -> SegmentRef:
        file = f"state/{subquery.name}/{orders.epoch:012d}-{site:04d}-open-{orders.attempt}.arrow"
        # In the time of what the subquery reads, which for one over windows is counted in windows
        due = subquery.watermark(WINDOW * (orders.epoch + lifetime(self._sites)))
        assert due is not None
        path = orders.place.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return SegmentRef(
            file=file, batch=0, table="open", tier=0, rows=ROWS, bytes=40 * ROWS, min_due=due,
            max_due=due, live=((int(first[0]), int(first[-1]) + 1),),
            along=(ROWS,), born=(orders.epoch, orders.epoch), checksum=0,
        )  # fmt: skip


def run_driver(quick: bool, steps: Steps) -> Result:
    """Every number of sites, then many epochs on few; with `quick`, fewer of both."""
    counts, epochs, long = (SITES[:2], WARM_UP + 5, 200) if quick else (SITES, EPOCHS, LONG)
    steps.expect(len(counts) + 1)
    before = load()
    figures: dict[str, Any] = {
        "quick": quick,
        "partitions_per_site": PARTITIONS,
        "segments": SEGMENTS,
        "sites": {},
    }
    for count in counts:
        steps.begin(f"{count:,} sites, {count * PARTITIONS:,} partitions")
        figures["sites"][str(count)] = time_of_driver(count, epochs, quick)
    steps.begin(f"{long:,} epochs on {LONG_SITES} sites")
    figures["long"] = _growth(_run(LONG_SITES, long))
    most = str(counts[-1])
    figures[f"seconds_{most}"] = figures["sites"][most]["seconds"]
    growth = figures["long"]["seconds_ratio"]
    bars = (
        Bar(f"seconds_{most}", figures[f"seconds_{most}"], "<=", BAR),
        Bar("seconds of the last epochs against earlier ones", growth, "<=", 1.3),
    )
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("driver", figures, bars, NOTES, circumstances=circumstances)


def time_of_driver(sites: int, epochs: int, quick: bool) -> dict[str, Any]:
    """What so many epochs cost the driver, once as many segments go as come; with `quick`, before that."""
    warm = WARM_UP if quick else max(WARM_UP, lifetime(sites))
    return _told(_run(sites, warm + epochs), warm)


def _clocks() -> tuple[float, float]:
    return time.perf_counter(), time.thread_time()


def lifetime(sites: int) -> int:
    """The epochs after which as many segments go as come."""
    return max(2, SEGMENTS // (len(QUERIES) * sites))


@dataclass(frozen=True)
class MeasuredEpochs:
    """What was measured, epoch by epoch."""

    seconds: list[float]
    cpu: list[float]
    orders: list[int]
    """Bytes that tasks are told."""
    entries: list[int]
    """Bytes of each entry of the ledger."""
    files: list[int]
    """Files in the checkpoint."""
    memory: list[int]
    """Bytes that the driver has resident."""


def _told(found: MeasuredEpochs, warm: int) -> dict[str, Any]:
    return {
        "seconds": round(median(found.seconds[warm:]), 4),
        "seconds_most": round(max(found.seconds[warm:]), 4),
        "cpu_seconds": round(median(found.cpu[warm:]), 4),
        "orders_bytes": round(median(found.orders[warm:])),
        "manifest_bytes": round(mean(found.entries[warm:])),
    }


def _growth(found: MeasuredEpochs) -> dict[str, Any]:
    """What of an epoch has grown from the time when all segments were there to the end."""
    tenth = len(found.cpu) // 10
    full = min(lifetime(LONG_SITES), len(found.cpu) // 2)
    early, late = slice(full, full + tenth), slice(-tenth, None)
    seconds = [round(median(found.cpu[part]), 5) for part in (early, late)]
    return {
        "epochs": len(found.cpu),
        "cpu_seconds": seconds,
        "seconds_ratio": round(seconds[1] / seconds[0], 3),
        "manifest_bytes": [round(mean(found.entries[part])) for part in (early, late)],
        "orders_bytes": [round(mean(found.orders[part])) for part in (early, late)],
        "files": [round(mean(found.files[part])) for part in (early, late)],
        "memory_bytes": [round(mean(found.memory[part])) for part in (early, late)],
    }


def _run(sites: int, epochs: int) -> MeasuredEpochs:
    """So many epochs of a run whose tasks are made up."""
    settings = {
        "partitions_per_site": PARTITIONS,
        "max_rows_per_epoch": 100,
        "fsync": False,
        "recent_progress": 10,
    }
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        transport = MadeUp(sites, Path(scratch))
        session = _Faked(None, sites, settings, transport)
        session.stream("packets", generator="packets", rows=100 * (epochs + 1), ordered="time")
        for name, text in QUERIES.items():
            session.query(name, text)
        session.start(
            sinks={"heavy": lambda rows, epoch: None}, checkpoint=scratch
        ).await_termination()
    wall, cpu = (np.diff(moments).tolist() for moments in transport.moments)
    return MeasuredEpochs(
        wall, cpu, transport.orders_bytes, transport.entries, transport.files, transport.memory
    )


class _Faked(Session):
    """A session with a transport of its own."""

    def __init__(self, spark: None, sites: int, settings: dict[str, Any], made_up: MadeUp) -> None:
        super().__init__(spark, sites, settings)
        self._made_up = made_up

    def _transport(self) -> Transport:
        return self._made_up
