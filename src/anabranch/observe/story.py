"""A run as it has gone so far, put together from its events: what page, report, metrics and `top` show.

It is bounded: the newest epochs, decisions and warnings of many. Figures of partitions stay columns.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections import OrderedDict, deque
from typing import Any

import numpy as np

from anabranch.events.event import (
    DecisionTaken,
    EffectMeasured,
    EpochHappened,
    ExchangeFigures,
    RunEnded,
    RunEvent,
    RunStarted,
    SitesChanged,
    Warned,
)
from anabranch.events.history import EventHistory
from anabranch.observe.totals import Totals
from anabranch.state.place import place

MOST_EPOCHS = 2_000
"""Epochs of which the figures of the whole run are kept."""
MOST_DETAIL_BYTES = 64 * 1024 * 1024
"""Bytes of the figures of partitions, of as many epochs as that is."""
MOST_DECISIONS, MOST_WARNINGS = 10_000, 500
BINS = 256
"""Into how many ranges of slots an exchange is cut on the map of slots and time."""


class Story:
    """What is known of a run, and of those before it from the same checkpoint."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.version = 0
        """Counts the events."""
        self.started: RunStarted | None = None
        self.ended: RunEnded | None = None
        self.sites, self.gone = 0, list[int]()
        self.totals = Totals()
        self.series: deque[dict[str, Any]] = deque(maxlen=MOST_EPOCHS)
        self.details: OrderedDict[int, EpochHappened] = OrderedDict()
        self._detail_bytes = 0
        self.heat: dict[str, deque[tuple[int, bytes, bytes]]] = {}
        """For each exchange, of each epoch: its number, and rows and bytes along the slots, as bytes."""
        self.decisions: deque[dict[str, Any]] = deque(maxlen=MOST_DECISIONS)
        self._by_number: dict[int, dict[str, Any]] = {}
        self.decided: dict[tuple[str, str], int] = {}
        """How often each kind of action was accepted or refused."""
        self.warnings: deque[dict[str, Any]] = deque(maxlen=MOST_WARNINGS)
        self.runs = 0

    def add(self, event: RunEvent) -> None:
        """Takes one more event in."""
        with self.lock:
            self.version += 1
            match event:
                case RunStarted():
                    self._start(event)
                case EpochHappened():
                    self._epoch(event)
                case DecisionTaken():
                    self._decision(event)
                case EffectMeasured():
                    known = self._by_number.get(event.number)
                    if known is not None:
                        known |= {
                            "after": event.imbalance, "givenUp": event.given_up, "cost": event.cost,
                        }  # fmt: skip
                        known["version"] = self.version
                case SitesChanged():
                    self.sites, self.gone = event.sites, event.gone
                case Warned():
                    told = {"epoch": event.epoch, "at": event.at, "text": event.text}
                    self.warnings.append({**told, "version": self.version})
                case RunEnded():
                    self.ended = event

    def _start(self, event: RunStarted) -> None:
        self.started, self.ended, self.runs = event, None, self.runs + 1
        self.sites, self.gone = event.sites, []
        self.totals = Totals()
        self._by_number.clear()

    def _epoch(self, event: EpochHappened) -> None:
        self.totals.add(event.progress)
        self.sites = event.progress["customMetrics"]["adaptation"].get("sites", self.sites)
        self.series.append({**_series(event), "version": self.version})
        # Where a run goes on before the newest epoch of its history, what came later did not happen
        self.details.pop(event.epoch, None)
        self.details[event.epoch] = event
        self._detail_bytes += event.size
        while self._detail_bytes > MOST_DETAIL_BYTES and len(self.details) > 1:
            self._detail_bytes -= self.details.popitem(last=False)[1].size
        for name, figures in event.exchanges.items():
            kept = self.heat.setdefault(name, deque(maxlen=MOST_EPOCHS))
            rows, size = (
                along(figures, column).astype("<f4").tobytes() for column in ("rows", "size")
            )
            kept.append((event.epoch, rows, size))

    def _decision(self, event: DecisionTaken) -> None:
        outcome = "accepted" if event.accepted else "refused"
        count = self.decided.get((event.what, outcome), 0)
        self.decided[event.what, outcome] = count + 1
        plain = {
            "number": event.number, "run": self.runs, "epoch": event.epoch, "at": event.at,
            "what": event.what, "action": event.action, "exchange": event.exchange,
            "partition": event.partition, "source": event.source, "target": event.target,
            "bytes": event.bytes, "cause": event.cause, "accepted": event.accepted,
            "reason": event.reason, "origin": event.origin, "before": event.imbalance, "after": None,
            "givenUp": None, "cost": None, "version": self.version,
        }  # fmt: skip
        self.decisions.append(plain)
        self._by_number[event.number] = plain
        if len(self._by_number) > 2 * MOST_DECISIONS:
            oldest = self.decisions[0]["number"]
            self._by_number = {n: one for n, one in self._by_number.items() if n >= oldest}

    @property
    def newest(self) -> EpochHappened | None:
        """The newest epoch."""
        return next(reversed(self.details.values()), None)

    def status(self) -> dict[str, Any]:
        """How it stands, in few words."""
        state = "waiting" if self.started is None else "running"
        if self.ended is not None:
            state = "failed" if self.ended.error else "ended"
        return {
            "state": state,
            "error": self.ended.error if self.ended else None,
            "at": self.ended.at if self.ended else None,
            "sites": self.sites,
            "gone": self.gone,
            "epochs": self.totals.epochs,
            "rows": self.totals.rows,
        }


def story_of(checkpoint: str) -> tuple[Story, EventHistory]:
    """What is known of the runs from a checkpoint, and where more will come from."""
    story, history = Story(), EventHistory(place(checkpoint))
    for event in history.look():
        story.add(event)
    return story, history


def along(figures: ExchangeFigures, name: str, bins: int = BINS) -> np.ndarray:
    """A column summed up along the slots, in at most so many ranges of equal length."""
    count = min(bins, figures.slots)
    edges = np.arange(count + 1) * (figures.slots / count)
    starts = np.append(figures.column("starts").astype(float), figures.slots)
    # Spread evenly over the slots of a partition: sums up to each edge, then differences
    whole = np.concatenate([[0.0], np.cumsum(figures.column(name), dtype=float)])
    found: np.ndarray = np.diff(np.interp(edges, starts, whole))
    return found


def _series(event: EpochHappened) -> dict[str, Any]:
    told = event.progress
    times, custom = told["durationMs"], told["customMetrics"]
    seconds = times["triggerExecution"] / 1000
    sources, state = told["sources"], told["stateOperators"]
    busy = [site["busySeconds"] for site in custom["sites"]]
    counts = [source["customMetrics"] for source in sources]
    mean = sum(busy) / len(busy) if busy else 0.0
    return {
        "epoch": event.epoch,
        "at": event.at,
        "rows": told["numInputRows"],
        "rate": round(told["processedRowsPerSecond"], 1),
        "seconds": seconds,
        "tasks": times["addBatch"] / 1000,
        "commit": (times["commitOffsets"] + times["publish"]) / 1000,
        "results": sum(sink["numOutputRows"] for sink in told["sinks"]),
        "late": sum(count["lateRows"] for count in counts),
        "bad": sum(count["badRows"] + count["badFiles"] for count in counts),
        "backlog": sum(source["backlog"] or 0 for source in sources),
        "state": sum(one["memoryUsedBytes"] for one in state),
        "aside": sum(one["customMetrics"]["spilledBytes"] for one in state),
        "waiting": custom["adaptation"].get("waitingRows", 0),
        "imbalance": round(max(busy) / mean, 3) if mean > 0 else None,
        "delay": {source["description"]: delay(source["eventTime"]) for source in sources},
    }


def delay(times: dict[str, Any]) -> float | None:
    """How far the watermark is behind the newest time of a stream: in seconds, or in its own unit."""
    newest, watermark = (_number(times.get(name)) for name in ("max", "watermark"))
    return None if newest is None or watermark is None else max(0.0, newest - watermark)


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            moment = dt.datetime.fromisoformat(value)
        except ValueError:
            return None
        return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()
    return None if value is None else float(value)
