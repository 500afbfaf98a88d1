"""Structured logs: a JSON object for each event, a line each, for programs that collect logs."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any, TextIO

import msgspec

from anabranch.events.event import EpochHappened, RunEnded, RunEvent, RunStarted, Warned


class JsonLog:
    """Writes a line for each event; epochs in short, as `--json` has them whole."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def add(self, event: RunEvent) -> None:
        print(json.dumps(line(event), default=str), file=self._output, flush=True)


def line(event: RunEvent) -> dict[str, Any]:
    """An event as a line of a log."""
    warns = isinstance(event, Warned) or (isinstance(event, RunEnded) and event.error)
    told = {
        "time": dt.datetime.fromtimestamp(event.at, dt.UTC).isoformat(timespec="milliseconds"),
        "level": "warning" if warns else "info",
        "event": type(event).__name__,
        "epoch": event.epoch,
    }
    if isinstance(event, EpochHappened):
        progress = event.progress
        return told | {
            "rows": progress["numInputRows"],
            "rowsPerSecond": round(progress["processedRowsPerSecond"]),
            "durationMs": progress["durationMs"]["triggerExecution"],
            "results": {sink["query"]: sink["numOutputRows"] for sink in progress["sinks"]},
        }
    left_out = {
        "at",
        "epoch",
        "event",
        *(("plan", "settings") if isinstance(event, RunStarted) else ()),
    }
    plain = msgspec.to_builtins(event)
    return told | {name: value for name, value in plain.items() if name not in left_out}
