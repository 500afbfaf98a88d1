"""What Spark's Python workers run: the tasks of an epoch, and what they have been told of it before."""

from __future__ import annotations

import functools
import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
from pyspark import Accumulator, Broadcast, cloudpickle
from pyspark.serializers import pack_long

from anabranch.engine.orders import Orders, StandingOrders
from anabranch.engine.preparing import as_splits_see
from anabranch.engine.report import SplitReport, Word
from anabranch.engine.telling import Listener
from anabranch.engine.workers import require_alike
from anabranch.routing.frame import unpack


class Portable:
    """What stands for a run, for a broadcast; unpickled it is the standing orders themselves.

    A broadcast alone refuses functions that a worker cannot import: user aggregates of lambdas.
    """

    def __init__(self, standing: StandingOrders, versions: dict[str, str]) -> None:
        self._standing = standing
        self._versions = versions

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[dict[str, str], bytes]]:
        return _arrived, (self._versions, cloudpickle.dumps(self._standing))


def _arrived(versions: dict[str, str], standing: bytes) -> Any:
    """The standing orders, in a worker that is like the driver; RunError in another."""
    require_alike(versions)
    return pickle.loads(standing)


@dataclass(frozen=True)
class TaskWords:
    """What a task is told: once for the run, now and then, and for the epoch."""

    run: Broadcast[Any]
    beginning: Broadcast[bytes]
    epoch: bytes | Broadcast[bytes]

    def broadcasts(self) -> list[Broadcast[Any]]:
        return [one for one in (self.run, self.beginning, self.epoch) if isinstance(one, Broadcast)]

    def close(self) -> None:
        """Lets go of what was told for the epoch."""
        if isinstance(self.epoch, Broadcast):
            self.epoch.destroy()

    def orders(self) -> Orders:
        words = self.epoch if isinstance(self.epoch, bytes) else self.epoch.value
        orders, news = pickle.loads(words)
        heard = _listener().hear(orders, news, lambda: self.beginning.value)
        return replace(heard, standing=self.run.value)


@functools.cache
def _listener() -> Listener:
    """What this worker has heard."""
    return Listener()


UNTOLD: Any = None
"""In place of what has been told before."""


@functools.cache
def _prepare_worker() -> None:
    """Once per Python worker: freezes the objects of the libraries.

    Spark runs a full garbage collection after every task; without them it takes no time instead of
    some 40 ms.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class SplitTask:
    told: TaskWords
    shuffled: bool
    handover: str
    reports: Accumulator[dict[str, bytes]] | None
    """Where the driver hears what a split has read before the sites tell it."""

    def __call__(self, task: int, nothing: Iterable[Any]) -> Iterator[bytes]:
        _prepare_worker()
        from anabranch.engine.split import run_split

        # A worker whose input was not read to its end is not used again
        deque(nothing, maxlen=0)
        orders = as_splits_see(self.told.orders())
        parcels = run_split(orders, task, self.handover)
        if self.reports is not None:
            parcels = self._reported(orders.attempt, task, parcels)
        return _addressed(parcels, self.shuffled)

    def _reported(self, attempt: str, task: int, parcels: Iterator[bytes]) -> Iterator[bytes]:
        """The parcels; what the first one says of what was read is told to the driver, too."""
        for number, parcel in enumerate(parcels):
            if number == 0:
                assert self.reports is not None
                (report,) = msgspec.convert(unpack(parcel)[0], Word).splits
                brief = SplitReport(streams=report.streams, fault=report.fault)
                self.reports.add({f"{attempt}-{task}": msgspec.msgpack.encode(brief)})
            yield parcel


@dataclass(frozen=True)
class SiteTask:
    told: TaskWords
    level: int
    shuffled: bool
    handover: str

    def __call__(self, site: int, arrived: Iterable[Any]) -> Iterator[bytes]:
        _prepare_worker()
        from anabranch.engine.site import run_site

        parcels = (part[1] if isinstance(part, tuple) else part for part in arrived)
        orders = self.told.orders()
        sent = run_site(orders, self.level, site, parcels, self.handover)
        return _addressed(sent, self.shuffled)


def _addressed(parcels: Iterator[bytes], shuffled: bool) -> Iterator[bytes]:
    """Each parcel behind the number of its site, as Spark's pairwise shuffle wants it."""
    for site, parcel in enumerate(parcels):
        if shuffled:
            yield pack_long(site)
        yield parcel
