"""The transport through Spark: one job an epoch, two Python hops a level, frames in its shuffle.

Every split writes exactly one parcel per site, so every shuffled partition has exactly as many elements
as there were tasks before it. That makes it possible to zip it with an RDD of the same shape whose
partitions prefer an executor (`SparkContext.makeRDD` with locations, times a filler of as many
elements), which pins each site's task to the executor the driver names without another Python hop.
Spark falls back to any executor when the named one is gone.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from pyspark import Broadcast, SparkContext, cloudpickle

from anabranch.engine.executors import Executors
from anabranch.engine.laps import Laps
from anabranch.engine.orders import Orders, StandingOrders
from anabranch.engine.placement import bind
from anabranch.engine.preparing import Ahead, as_splits_see
from anabranch.engine.rdds import Rdds
from anabranch.engine.report import EpochReport
from anabranch.engine.spark_splits import MERGED, SparkSplits
from anabranch.engine.spark_tasks import UNTOLD, Portable, SiteTask, SplitTask, TaskWords
from anabranch.engine.telling import Teller
from anabranch.engine.transport import gather_sites, gather_splits
from anabranch.engine.workers import advice, ready_workers, versions
from anabranch.errors import STAGES, RunError
from anabranch.processor import WORKER

WORKER_ENVIRONMENT = {
    WORKER: "1",
    # Spark has the parallelism
    "POLARS_MAX_THREADS": "1",
    # Polars, Arrow and NumPy would give memory back to the system within half a second, only to ask for
    # it again in the next epoch: a fifth of a site's time
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:10000,muzzy_decay_ms:0",
    "MIMALLOC_PURGE_DELAY": "10000",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}
ALONG = 1 << 18
"""Bytes from which on the orders of an epoch are broadcast; fewer go along with its tasks."""
EARLIER = 4
"""Broadcasts kept behind the newest: a job under way may still send tasks that were told of them."""


class SparkTransport:
    """Runs epochs on a Spark cluster."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        for name, value in WORKER_ENVIRONMENT.items():
            context.environment.setdefault(name, value)
        self._splits = max(1, context.defaultParallelism)
        self._executors = Executors(context)
        self._local = bool(context._jsc.sc().isLocal())
        self._bound: dict[int, str] = {}
        self._seen = 0
        """The most executors there have been."""
        self._standing: tuple[StandingOrders, Broadcast[Any]] | None = None
        """What the workers have been told for the whole run."""
        self._teller = Teller()
        self._beginning: tuple[bytes, Broadcast[Any]] | None = None
        self._earlier: deque[Broadcast[Any]] = deque()
        """What news build on, and its broadcast."""
        self.placement: dict[int, str] = {}
        """The executor each site was asked to run on in the last epoch; empty in local mode."""
        self._prepared: SparkSplits | None = None
        """The splits of the next epoch, run ahead."""
        self._reports = context.accumulator({}, MERGED)
        """What splits have reported, as soon as they ended."""
        self._beside = ThreadPoolExecutor(1, "anabranch-epoch")
        self._rdds: Rdds | None = None
        if self._local or self._executors.living():
            self._ready()

    def parallelism(self) -> int:
        """One split for each core that is there now; where there is none, as many as Spark said at first."""
        return (0 if self._local else self._executors.cores()) or self._splits

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        laps = Laps()
        prepared, self._prepared = self._prepared, None
        try:
            splits = prepared
            if splits is None or splits.orders.attempt != orders.attempt:
                splits = self._splits_of(orders, bool(ahead))
            laps.ended("tell")
            try:
                report = self._run(orders, splits, ahead, laps)
            finally:
                splits.close()
        except Exception as error:
            raise _explained(error) from error
        laps.ended("collect")
        report.seconds, report.steps = laps.total, laps.seconds
        return report

    def has_prepared(self, orders: Orders) -> bool:
        if self._prepared and as_splits_see(self._prepared.orders) != as_splits_see(orders):
            self._give_up()
        return self._prepared is not None

    def _give_up(self) -> None:
        """Lets go of what is prepared, once nothing of it is still written."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            prepared.heard()
            prepared.close()

    def _run(
        self, orders: Orders, splits: SparkSplits, ahead: Ahead | None, laps: Laps
    ) -> EpochReport:
        rdds, levels = self._ready(), orders.plan.levels
        if levels == 0:
            return gather_splits(self._collect(splits.parcels, orders.epoch))
        told = splits.words if splits.orders is orders else self._words(orders)
        executors = self._executors_of(orders.sites)
        arrived, senders = splits.shuffled(orders.sites), len(orders.pieces)
        for level in range(1, levels + 1):
            partitions = (
                rdds.zipped(arrived, executors, senders) if executors else arrived.parcels.rdd()
            )
            task = SiteTask(told, level, level < levels, splits.handover)
            parcels = rdds.tasks(partitions, task, bool(executors), told.broadcasts())
            if level < levels:
                arrived, senders = rdds.shuffled(parcels, orders.sites), orders.sites
        laps.ended("build")
        try:
            if ahead is None:
                return gather_sites(self._collect(parcels, orders.epoch))
            jobs = rdds.jobs()
            collected = self._beside.submit(self._collect, parcels, orders.epoch)
            heard = splits.heard()
            while rdds.jobs() == jobs and not collected.done():
                # Sites have to be asked for before more splits: Spark gives cores to older jobs first
                time.sleep(0.001)
            following = ahead(heard) if heard is not None else None
            if following is not None:
                self._prepared = self._splits_of(following, True)
            laps.ended("prepare")
            return gather_sites(collected.result())
        finally:
            if told is not splits.words:
                told.close()

    def _collect(self, parcels: Any, epoch: int) -> list[bytes]:
        self._context.setJobDescription(f"Anabranch: epoch {epoch}")
        return self._ready().collect(parcels)

    def _splits_of(self, orders: Orders, begin: bool) -> SparkSplits:
        """The splits of an epoch; with `begin` they are run at once, else when the sites ask for them."""
        rdds, senders, told = self._ready(), len(orders.pieces), self._words(orders)
        executors = self._executors_of(orders.sites)
        if orders.lanes and executors:
            # Splits that read lanes are placed as the sites they feed
            wanted = [executors[task % orders.sites] for task in range(senders)]
            begun = rdds.pinned(wanted).rdd()
        else:
            begun = rdds.empty(senders)
        handover, levels = self._handover(), orders.plan.levels
        task = SplitTask(told, levels > 0, handover, self._reports if begin else None)
        parcels = rdds.tasks(begun, task, False, told.broadcasts())
        splits = SparkSplits(orders, told, handover, parcels, rdds, self._reports)
        if begin and levels:
            self._context.setJobDescription(f"Anabranch: splits of epoch {orders.epoch}")
            splits.begin()
        return splits

    def _words(self, orders: Orders) -> TaskWords:
        fewer, news = self._teller.tell(orders)
        return TaskWords(
            self._stand(orders.standing),
            self._begin(),
            self._tell(cloudpickle.dumps((replace(fewer, standing=UNTOLD), news))),
        )

    def _executors_of(self, sites: int) -> list[str]:
        """The executor of each site; none where there is no choice."""
        self.placement = self._place(sites)
        return [self.placement[site] for site in range(sites) if self.placement]

    def _handover(self) -> str:
        """A folder for the frames of an epoch, where all tasks run on this machine: Spark passes on notes.

        In Spark's own folder for such files: a shuffle would leave the same bytes there.
        """
        return (
            tempfile.mkdtemp(prefix="parcels-", dir=self._context._temp_dir) if self._local else ""
        )

    def _ready(self) -> Rdds:
        """What makes RDDs, once it is known that the executors can run tasks."""
        if self._rdds is None:
            ready_workers(self._context)
            self._rdds = Rdds(self._context)
        return self._rdds

    def _tell(self, words: bytes) -> bytes | Broadcast[bytes]:
        """What an epoch tells goes along with its tasks, unless it is much."""
        return words if len(words) < ALONG else self._context.broadcast(words)

    def _stand(self, standing: StandingOrders) -> Broadcast[Any]:
        """What stands for the whole run, broadcast once: workers keep it, and what they make of it."""
        if self._standing is None or self._standing[0] is not standing:
            self._stop_telling()
            self._standing = standing, self._context.broadcast(Portable(standing, versions()))
        return self._standing[1]

    def _begin(self) -> Broadcast[Any]:
        """What news build on: another broadcast only when the teller has begun anew."""
        if self._beginning is None or self._beginning[0] is not self._teller.beginning:
            if self._beginning is not None:
                self._earlier.append(self._beginning[1])
            if len(self._earlier) > EARLIER:
                self._earlier.popleft().destroy()
            self._beginning = (
                self._teller.beginning,
                self._context.broadcast(self._teller.beginning),
            )
        return self._beginning[1]

    def alive(self, sites: int) -> list[bool]:
        """Whether each site's executor lives; new executors are given sites."""
        if self._local:
            return [True] * sites
        found = self._executors.living()
        executors = list(found)
        self._seen = max(self._seen, len(executors))
        if executors:
            # As many as at first, and at least one for each core
            most = max(-(-sites // self._seen), min(found.values()))
            self._bound = bind(self._bound, executors, sites, most)
        return [bool(executors) and site in self._bound for site in range(sites)]

    def _place(self, sites: int) -> dict[int, str]:
        """Each site on its executor, one that has none on any; nothing where there is only the driver."""
        if self._local or len({*self._bound.values()}) < 2:
            return {}
        known = list(self._bound.values())
        return {site: self._bound.get(site, known[site % len(known)]) for site in range(sites)}

    def close(self) -> None:
        self._give_up()
        self._stop_telling()

    def _stop_telling(self) -> None:
        for told in (self._standing, self._beginning):
            if told is not None:
                told[1].destroy()
        while self._earlier:
            self._earlier.popleft().destroy()
        self._standing = self._beginning = None


def _explained(error: Exception) -> Exception:
    """Spark's error in one line; ours as they are."""
    if type(error).__name__ in STAGES:
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    plain = [re.sub(r"^(: |Caused by: )", "", line) for line in lines]
    telling = [line for line in plain if re.match(r"[A-Za-z_.]*(Error|Exception)\b", line)]
    # The Python traceback inside Spark's message ends with the line that tells what happened; the
    # JVM's begins with it
    python = [line for line in telling if not line.startswith(("org.", "java.", "py4j."))]
    (cause,) = python[-1:] or telling[:1] or plain[-1:] or [repr(error)]
    if "No module named" in cause:
        # An executor that has come after the first epoch
        return RunError(f"An executor cannot run Anabranch: {cause:.300}. {advice()}")
    return RunError(f"Spark could not finish the epoch: {cause:.500}")
