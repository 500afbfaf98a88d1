"""How parcels get from splits to sites. The twin does it in this process; `spark.py` through Spark."""

from __future__ import annotations

import time
from typing import Protocol

import msgspec

from anabranch.engine.orders import Orders
from anabranch.engine.preparing import Ahead, as_splits_see
from anabranch.engine.report import EpochReport, Word
from anabranch.engine.site import run_site
from anabranch.engine.split import run_split
from anabranch.engine.telling import Listener, Teller
from anabranch.routing.frame import unpack


class Transport(Protocol):
    """Runs the tasks of an epoch and returns their reports."""

    placement: dict[int, str]
    """The executor each site was asked to run on, where that matters."""

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        """Runs the tasks; `ahead` is asked what to prepare while the sites work, if anything may be."""

    def has_prepared(self, orders: Orders) -> bool:
        """Whether the splits of just these orders are prepared; if others are, they are given up."""

    def parallelism(self) -> int:
        """How many split tasks are worth having."""

    def alive(self, sites: int) -> list[bool]:
        """Whether each site has a place to run on."""

    def close(self) -> None: ...


class Twin:
    """The in-process twin: the same split and site code, one after another, without Spark."""

    def __init__(self, splits: int = 2) -> None:
        self._splits = splits
        self._teller, self._listener = Teller(), Listener()
        self.placement: dict[int, str] = {}
        self._prepared: tuple[Orders, list[list[bytes]]] | None = None
        """The orders of splits that were run ahead, and their parcels."""

    def parallelism(self) -> int:
        return self._splits

    def run(self, orders: Orders, ahead: Ahead | None = None) -> EpochReport:
        began = time.perf_counter()
        told, news = self._teller.tell(orders)
        heard = self._listener.hear(told, news, lambda: self._teller.beginning)
        report = self._run(heard, ahead)
        report.seconds = time.perf_counter() - began
        return report

    def has_prepared(self, orders: Orders) -> bool:
        if self._prepared is not None and self._prepared[0] != as_splits_see(orders):
            self._prepared = None
        return self._prepared is not None

    def _split(self, orders: Orders) -> list[list[bytes]]:
        """The parcels of each split task."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared[0].attempt == orders.attempt:
            return prepared[1]
        seen = as_splits_see(orders)
        return [list(run_split(seen, task)) for task in range(len(orders.pieces))]

    def _run(self, orders: Orders, ahead: Ahead | None) -> EpochReport:
        rows = self._split(orders)
        if orders.plan.levels == 0:
            return gather_splits([parcels[0] for parcels in rows])
        if ahead is not None:
            # Before the sites: whatever they do must make no difference to it
            following = ahead(gather_splits([parcels[0] for parcels in rows]).splits)
            if following is not None:
                self._prepared = as_splits_see(following), self._split(following)
        for level in range(1, orders.plan.levels + 1):
            rows = [
                list(run_site(orders, level, site, [parcels[site] for parcels in rows]))
                for site in range(orders.sites)
            ]
        return gather_sites([parcels[0] for parcels in rows])

    def alive(self, sites: int) -> list[bool]:
        return [True] * sites

    def close(self) -> None:
        pass


def gather_sites(reports: list[bytes]) -> EpochReport:
    """The reports of the last level's sites as one."""
    whole = EpochReport()
    for data in reports:
        part = msgspec.msgpack.decode(data, type=EpochReport)
        whole.splits += part.splits
        whole.sites += part.sites
    return whole


def gather_splits(parcels: list[bytes]) -> EpochReport:
    """The reports of splits whose query set has no stateful operator."""
    words = [msgspec.convert(unpack(parcel)[0], Word) for parcel in parcels]
    return EpochReport([split for word in words for split in word.splits], [])
