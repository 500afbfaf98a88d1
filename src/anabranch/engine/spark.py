"""The transport through Spark: one job an epoch, two Python hops a level, frames in its shuffle.

Every split writes exactly one parcel per site, so every shuffled partition has exactly as many elements
as there were tasks before it. That makes it possible to zip it with an RDD of the same shape whose
partitions prefer an executor (`SparkContext.makeRDD` with locations, times a filler of as many
elements), which pins each site's task to the executor the driver names without another Python hop.
Spark falls back to any executor when the named one is gone.
"""

from __future__ import annotations

import functools
import gc
import pickle
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark import RDD, Broadcast, SparkContext, cloudpickle
from pyspark.serializers import NoOpSerializer, PairDeserializer, pack_long

from anabranch.engine.orders import Orders, StandingOrders
from anabranch.engine.placement import bind
from anabranch.engine.report import EpochReport
from anabranch.engine.telling import Listener, News, Teller
from anabranch.engine.transport import gather_sites, gather_splits
from anabranch.engine.workers import ready_workers
from anabranch.errors import STAGES, RunError

WORKER_ENVIRONMENT = {
    # Spark has the parallelism
    "POLARS_MAX_THREADS": "1",
    # Polars, Arrow and NumPy would give memory back to the system within half a second, only to ask for
    # it again in the next epoch: a fifth of a site's time
    "_RJEM_MALLOC_CONF": "dirty_decay_ms:10000,muzzy_decay_ms:0",
    "MIMALLOC_PURGE_DELAY": "10000",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}


class SparkTransport:
    """Runs epochs on a Spark cluster."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        for name, value in WORKER_ENVIRONMENT.items():
            context.environment.setdefault(name, value)
        self._splits = max(1, context.defaultParallelism)
        self._local = bool(context._jsc.sc().isLocal())
        self._bound: dict[int, str] = {}
        self._seen = 0
        """The most executors there have been."""
        self._standing: tuple[StandingOrders, Broadcast[Any]] | None = None
        """What the workers have been told for the whole run."""
        self._teller = Teller()
        self._beginning: tuple[bytes, Broadcast[Any]] | None = None
        """What news build on, and its broadcast."""
        self.placement: dict[int, str] = {}
        """The executor each site was asked to run on in the last epoch; empty in local mode."""
        if self._local or self._executors():
            ready_workers(context)

    def parallelism(self) -> int:
        return self._splits

    def run(self, orders: Orders) -> EpochReport:
        began = time.perf_counter()
        report = self._run(orders)
        report.seconds = time.perf_counter() - began
        return report

    def _run(self, orders: Orders) -> EpochReport:
        ready_workers(self._context)
        tasks = len(orders.pieces)
        fewer, news = self._teller.tell(orders)
        told = _Told(
            self._stand(orders.standing),
            self._begin(),
            self._context.broadcast(_Portable((replace(fewer, standing=_UNTOLD), news))),
        )
        try:
            parcels = self._splits_for(orders).mapPartitionsWithIndex(
                _split_task(told, orders.plan.levels > 0)
            )
            if orders.plan.levels == 0:
                return gather_splits(parcels.collect())
            for level in range(1, orders.plan.levels + 1):
                arrived = self._shuffle(parcels, tasks, orders.sites)
                last = level == orders.plan.levels
                parcels = arrived.mapPartitionsWithIndex(_site_task(told, level, not last))
                tasks = orders.sites
            return gather_sites(parcels.collect())
        except Exception as error:
            raise _explained(error) from error
        finally:
            told.epoch.destroy()

    def _stand(self, standing: StandingOrders) -> Broadcast[Any]:
        """What stands for the whole run, broadcast once: workers keep it, and what they make of it."""
        if self._standing is None or self._standing[0] is not standing:
            self.close()
            self._standing = standing, self._context.broadcast(_Portable(standing))
        return self._standing[1]

    def _begin(self) -> Broadcast[Any]:
        """What news build on: another broadcast only when the teller has begun anew."""
        if self._beginning is None or self._beginning[0] is not self._teller.beginning:
            if self._beginning is not None:
                self._beginning[1].destroy()
            self._beginning = (
                self._teller.beginning,
                self._context.broadcast(self._teller.beginning),
            )
        return self._beginning[1]

    def _splits_for(self, orders: Orders) -> RDD[Any]:
        """One partition per split task; those that read lanes are placed as the sites they feed."""
        tasks = len(orders.pieces)
        placement = self._place(orders.sites) if orders.lanes else {}
        if not placement:
            return self._context.parallelize(range(tasks), tasks)
        wanted = [placement[task % orders.sites] for task in range(tasks)]
        return RDD(self._pinned(wanted), self._context, NoOpSerializer())

    def _shuffle(self, parcels: RDD[Any], senders: int, sites: int) -> RDD[Any]:
        """The parcels regrouped by site, each site's task placed where the driver wants it."""
        jvm = self._context._jvm
        assert jvm is not None
        parcels._bypass_serializer = True  # type: ignore[attr-defined]
        pairs = jvm.PairwiseRDD(parcels._jrdd.rdd()).asJavaPairRDD()
        partitioner = jvm.PythonPartitioner(sites, 0)
        shuffled = jvm.PythonRDD.valueOfPair(pairs.partitionBy(partitioner))
        self.placement = self._place(sites)
        if not self.placement:
            return RDD(shuffled, self._context, NoOpSerializer())
        zipped = self._pins(senders, sites).zip(shuffled)
        deserializer = PairDeserializer(NoOpSerializer(), NoOpSerializer())
        return RDD(zipped, self._context, deserializer)

    def alive(self, sites: int) -> list[bool]:
        """Whether each site's executor lives; new executors are given sites."""
        if self._local:
            return [True] * sites
        found = self._executors()
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

    def _executors(self) -> dict[str, int]:
        """The living executors as Spark's location strings, in order, with their cores."""
        listed = self._context._jsc.sc().statusStore().executorList(True)
        entries = [listed.apply(number) for number in range(listed.size())]
        found = [
            (entry.id(), entry.hostPort().rsplit(":", 1)[0], int(entry.totalCores()))
            for entry in entries
            if entry.id() != "driver"
        ]
        found.sort(key=lambda entry: (len(entry[0]), entry[0]))
        return {f"executor_{host}_{number}": cores for number, host, cores in found}

    def _pins(self, senders: int, sites: int) -> Any:
        """An RDD with `senders` elements per partition, each partition preferring its executor."""
        jvm = self._context._jvm
        assert jvm is not None
        rows = self._pinned([self.placement[site] for site in range(sites)])
        # Made by the JVM: PySpark would pack several numbers into one element
        numbers = jvm.java.util.ArrayList()
        for sender in range(senders):
            numbers.add(sender)
        filler = self._context._jsc.parallelize(numbers, 1)
        return rows.cartesian(filler).keys()

    def _pinned(self, executors: list[str]) -> Any:
        """An RDD with one element per partition, each partition preferring its executor."""
        jvm = self._context._jvm
        assert jvm is not None
        convert = jvm.scala.jdk.javaapi.CollectionConverters
        entries = jvm.java.util.ArrayList()
        for executor in executors:
            wanted = jvm.java.util.ArrayList()
            wanted.add(executor)
            entries.add(jvm.scala.Tuple2(bytearray(b"-"), convert.asScala(wanted).toSeq()))
        tag = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("[B"))
        rows = self._context._jsc.sc().makeRDD(convert.asScala(entries).toSeq(), tag)
        return jvm.org.apache.spark.api.java.JavaRDD(rows, tag)

    def close(self) -> None:
        for told in (self._standing, self._beginning):
            if told is not None:
                told[1].destroy()
        self._standing = self._beginning = None


class _Portable:
    """Orders for a broadcast; unpickled they are the orders themselves.

    A broadcast alone refuses functions that a worker cannot import: user aggregates of lambdas.
    """

    def __init__(self, orders: tuple[Orders, News] | StandingOrders) -> None:
        self._orders = orders

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (cloudpickle.dumps(self._orders),)


@dataclass(frozen=True)
class _Told:
    """What a task is told: once for the run, now and then, and for the epoch."""

    run: Broadcast[Any]
    beginning: Broadcast[Any]
    epoch: Broadcast[Any]

    def orders(self) -> Orders:
        orders, news = self.epoch.value
        heard = _listener().hear(orders, news, lambda: self.beginning.value)
        return replace(heard, standing=self.run.value)


@functools.cache
def _listener() -> Listener:
    """What this worker has heard."""
    return Listener()


_UNTOLD: Any = None
"""In place of what has been told before."""


@functools.cache
def _prepare_worker() -> None:
    """Once per Python worker: freezes the objects of the libraries.

    Spark runs a full garbage collection after every task; without them it takes no time instead of
    some 40 ms.
    """
    gc.collect()
    gc.freeze()


def _split_task(told: _Told, shuffled: bool) -> Callable[[int, Iterable[Any]], Iterator[bytes]]:
    def run(task: int, _: Iterable[Any]) -> Iterator[bytes]:
        _prepare_worker()
        from anabranch.engine.split import run_split

        return _addressed(run_split(told.orders(), task), shuffled)

    return run


def _site_task(
    told: _Told, level: int, shuffled: bool
) -> Callable[[int, Iterable[Any]], Iterator[bytes]]:
    def run(site: int, arrived: Iterable[Any]) -> Iterator[bytes]:
        _prepare_worker()
        from anabranch.engine.site import run_site

        parcels = (part[1] if isinstance(part, tuple) else part for part in arrived)
        return _addressed(run_site(told.orders(), level, site, parcels), shuffled)

    return run


def _addressed(parcels: Iterator[bytes], shuffled: bool) -> Iterator[bytes]:
    """Each parcel behind the number of its site, as Spark's pairwise shuffle wants it."""
    for site, parcel in enumerate(parcels):
        if shuffled:
            yield pack_long(site)
        yield parcel


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
    return RunError(f"Spark could not finish the epoch: {cause:.500}")
