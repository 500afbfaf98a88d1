"""What Spark's Python workers run: the tasks of an epoch, and what they have been told of it before."""

from __future__ import annotations

import functools
import gc
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pyspark import Broadcast, cloudpickle
from pyspark.serializers import pack_long

from anabranch.engine.orders import Orders, StandingOrders
from anabranch.engine.telling import Listener


class Portable:
    """What stands for a run, for a broadcast; unpickled it is the standing orders themselves.

    A broadcast alone refuses functions that a worker cannot import: user aggregates of lambdas.
    """

    def __init__(self, standing: StandingOrders) -> None:
        self._standing = standing

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (cloudpickle.dumps(self._standing),)


@dataclass(frozen=True)
class TaskWords:
    """What a task is told: once for the run, now and then, and for the epoch."""

    run: Broadcast[Any]
    beginning: Broadcast[bytes]
    epoch: bytes | Broadcast[bytes]

    def broadcasts(self) -> list[Broadcast[Any]]:
        return [one for one in (self.run, self.beginning, self.epoch) if isinstance(one, Broadcast)]

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

    def __call__(self, task: int, nothing: Iterable[Any]) -> Iterator[bytes]:
        _prepare_worker()
        from anabranch.engine.split import run_split

        # A worker whose input was not read to its end is not used again
        deque(nothing, maxlen=0)
        return _addressed(run_split(self.told.orders(), task, self.handover), self.shuffled)


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
