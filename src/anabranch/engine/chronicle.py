"""The chronicle of a run: what an epoch has shown becomes its progress report and the events of the run.

Whatever shows a run is made of these. Nothing here is waited for: events are handed on elsewhere
(`events/stream.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

import anabranch
from anabranch.adapt.actions import Replan
from anabranch.control.decisions import Decision, rounded
from anabranch.control.governor import Governor
from anabranch.control.observed import Observed, state_bytes
from anabranch.engine.commit import Checkpoint
from anabranch.engine.laps import Laps
from anabranch.engine.options import RunOptions
from anabranch.engine.orders import Orders
from anabranch.engine.progress import describe_epoch
from anabranch.engine.report import EpochReport
from anabranch.errors import AnabranchError
from anabranch.events.event import (
    ASIDE,
    BY_HAND,
    HOT,
    MOVING,
    PAUSED,
    PINNED,
    DecisionTaken,
    EffectMeasured,
    EpochHappened,
    ExchangeFigures,
    RunEnded,
    RunStarted,
    SitesChanged,
    Warned,
    columns,
)
from anabranch.events.stream import EventStream
from anabranch.explain.outline import outline
from anabranch.plan.plan import Plan
from anabranch.sources.base import Offer

MOST_OPEN = 1_000
"""Decisions whose effect is still looked out for."""


class Chronicle:
    """Tells what happens in a run."""

    def __init__(
        self, plan: Plan, options: RunOptions, run_id: str, checkpoint: Checkpoint,
        governor: Governor, events: EventStream,
    ) -> None:  # fmt: skip
        self._plan, self._options, self._run_id = plan, options, run_id
        self._checkpoint, self._governor, self._events = checkpoint, governor, events
        self.progress: deque[dict[str, Any]] = deque(maxlen=options.settings.recent_progress)
        """The reports of the last epochs."""
        self._decisions = 0
        self._open: deque[tuple[int, Decision]] = deque(maxlen=MOST_OPEN)
        self._sites = (options.sites, np.ones(options.sites, dtype=bool))

    def started(self) -> None:
        """The run begins."""
        manifest, options = self._checkpoint.manifest, self._options
        sinks = {query: sink.describe() for query, sink in self._checkpoint.sinks.items()}
        self._events.tell(
            RunStarted(
                at=time.time(), epoch=manifest.epoch, run=self._run_id, checkpoint=manifest.run_id,
                name=options.name, place=options.root, version=anabranch.__version__,
                sites=options.sites, settings=msgspec.to_builtins(options.settings),
                plan=outline(self._plan, sinks),
            )
        )  # fmt: skip

    def ended(self, error: AnabranchError | None) -> None:
        """The run is over: waits until everything has been handed on."""
        epoch, told = self._checkpoint.manifest.epoch, None if error is None else str(error)
        self._events.tell(RunEnded(at=time.time(), epoch=epoch, error=told))
        self._events.close()

    def sites(self, governor: Governor, epoch: int) -> None:
        """Tells of sites that have come or gone since it was last looked."""
        count, alive = self._sites
        now = governor.holdings.alive
        if count != governor.sites or not np.array_equal(alive, now):
            self._sites = governor.sites, now.copy()
            gone = np.flatnonzero(~now).tolist()
            self._events.tell(
                SitesChanged(at=time.time(), epoch=epoch, sites=governor.sites, gone=gone)
            )

    def epoch(
        self, orders: Orders, report: EpochReport, shown: Observed, offers: Mapping[str, Offer],
        previous: float, laps: Laps, placement: Mapping[int, str],
    ) -> None:  # fmt: skip
        """Tells of an epoch and of what was decided after it; maps must not change meanwhile."""
        checkpoint, manifest = self._checkpoint, self._checkpoint.manifest
        untold = self._governor.untold()
        told = describe_epoch(
            manifest.run_id, self._run_id, self._options.name, orders, manifest, report, offers,
            previous, laps, checkpoint.sinks, self._governor.describe(manifest, untold), placement,
        )  # fmt: skip
        told["customMetrics"]["warnings"] += checkpoint.warnings
        memory = self._governor.memory
        told["customMetrics"]["warnings"] += memory.too_small(manifest, self._governor.maps)
        checkpoint.warnings = []
        if self._options.evolution is not None and not self.progress:
            told["customMetrics"]["evolution"] = self._options.evolution.described()
        self.progress.append(told)
        at, number = manifest.committed_at, orders.epoch
        figures = {name: self._figures(name, orders, shown) for name in self._plan.exchanges}
        self._events.tell(EpochHappened(at=at, epoch=number, progress=told, exchanges=figures))
        for text in told["customMetrics"]["warnings"]:
            self._events.tell(Warned(at=at, epoch=number, text=text))
        self.sites(self._governor, number)
        self._decided(untold, at, number)

    def _figures(self, name: str, orders: Orders, shown: Observed) -> ExchangeFigures:
        """The partitions of an exchange, as the epoch has left them."""
        known, governor = orders.maps[name], self._governor
        exchange, manifest = self._plan.exchanges[name], self._checkpoint.manifest
        starts = np.asarray(known.starts)
        sample = shown.samples.get(exchange.level)
        traffic = sample.traffic.get(name) if sample is not None else None
        none = np.zeros(len(starts))
        shelves = {name: record.shelf for name, record in manifest.subqueries.items()}
        size = state_bytes(exchange, known, shelves)
        aside = governor.memory.aside(name, known, size)
        marks = np.where(aside > 0, ASIDE, 0)
        pinned = governor.pins.get(name, {})
        for mark, some in (
            (PINNED, list(pinned)),
            (MOVING, [start for exchange, start in governor.moving if exchange == name]),
            (PAUSED, [start for exchange, start in governor.stopped if exchange == name]),
        ):
            if some:
                marks |= np.where(np.isin(starts, some), mark, 0)
        hot = [slot for exchange, slot in governor.holdings.hot.handled if exchange == name]
        if hot:
            marks[np.searchsorted(starts, hot, "right") - 1] |= HOT
        if name in governor.holdings.by_hand:
            marks |= BY_HAND
        return ExchangeFigures(
            slots=known.slots,
            seconds=round(traffic.seconds, 6) if traffic is not None else 0.0,
            **columns(
                starts=starts, sites=known.sites, rows=none if traffic is None else traffic.rows,
                rows_out=none if traffic is None or traffic.rows_out is None else traffic.rows_out,
                size=size, aside=aside, marks=marks,
            ),
        )  # fmt: skip

    def _decided(self, decisions: list[Decision], at: float, epoch: int) -> None:
        still: list[tuple[int, Decision]] = []
        for number, one in self._open:
            measured = one.cost if isinstance(one.action, Replan) else one.after
            if measured is None and one.given_up is None:
                still.append((number, one))
                continue
            effect = EffectMeasured(
                at=at, epoch=epoch, number=number, imbalance=rounded(one.after), given_up=one.given_up,
                cost=rounded(one.cost),
            )  # fmt: skip
            self._events.tell(effect)
        self._open = deque(still, maxlen=MOST_OPEN)
        for one in decisions:
            self._decisions += 1
            plain = one.action.plain()
            taken = DecisionTaken(
                at=at, epoch=one.epoch, number=self._decisions, what=plain["kind"],
                action=plain["action"], exchange=one.action.exchange, partition=one.action.partition,
                source=plain["source"], target=plain["target"], bytes=int(plain["bytes"]),
                cause=one.action.cause, accepted=one.accepted, reason=one.reason, origin=one.origin,
                seconds=round(one.seconds, 6), imbalance=rounded(one.before),
            )  # fmt: skip
            self._events.tell(taken)
            if one.accepted:
                self._open.append((self._decisions, one))
