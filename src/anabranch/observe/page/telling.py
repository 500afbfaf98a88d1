"""What the page is told: a story as JSON, figures of partitions as packed columns.

A column is a byte for each partition, the root of its share of the greatest, so that small ones can still be
told apart; the greatest is told beside it. So an epoch of 8,192 partitions takes some ten kilobytes.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from anabranch.events.event import EpochHappened, ExchangeFigures
from anabranch.observe.story import Story

FIRST_EPOCHS, FIRST_DECISIONS = 600, 300
"""What a page gets of the past when it is opened."""
MOST_AT_ONCE = 500


def whole(story: Story, control: bool, live: bool) -> dict[str, Any]:
    """What a page begins with."""
    with story.lock:
        started, newest = story.started, story.newest
        return {
            "run": None
            if started is None
            else {
                "id": started.run, "checkpoint": started.checkpoint, "name": started.name,
                "place": started.place, "version": started.version, "at": started.at,
                "settings": started.settings, "plan": started.plan,
            },
            "control": control,
            "live": live,
            **since(story, -1),
            "detail": None if newest is None else detail(newest),
        }  # fmt: skip


def since(story: Story, version: int) -> dict[str, Any]:
    """What has come after a version of the story; the first time only the newest of it."""
    with story.lock:
        series = [one for one in story.series if one["version"] > version][-FIRST_EPOCHS:]
        first = series[0]["epoch"] if series else None
        decisions = [one for one in story.decisions if one["version"] > version]
        return {
            "version": story.version,
            "status": story.status(),
            "series": series,
            "heat": {
                name: [
                    [epoch, *(packed_range(np.frombuffer(one, "<f4")) for one in columns)]
                    for epoch, *columns in kept
                    if first is not None and epoch >= first
                ][-len(series) :]
                for name, kept in story.heat.items()
            }
            if series
            else {},
            "decisions": decisions[-FIRST_DECISIONS:],
            "decided": len(story.decisions),
            "ticks": sorted({one["epoch"] for one in decisions if one["accepted"]})[-FIRST_EPOCHS:],
            "warnings": [one for one in story.warnings if one["version"] > version][-100:],
        }


def older(story: Story, before: int, count: int) -> list[dict[str, Any]]:
    """Decisions before one that the page has, newest last; told by their versions."""
    with story.lock:
        found = [one for one in story.decisions if one["version"] < before]
        return found[-min(count, MOST_AT_ONCE) :]


def detail(event: EpochHappened) -> dict[str, Any]:
    """Everything about one epoch."""
    told = event.progress
    custom = told["customMetrics"]
    adaptation = custom["adaptation"]
    memory = {one["site"]: one for one in adaptation.get("memory", ())}
    seconds = max(told["durationMs"]["triggerExecution"] / 1000, 1e-9)
    return {
        "epoch": event.epoch,
        "at": event.at,
        "seconds": seconds,
        "sites": [
            [
                site["site"], round(site["busySeconds"], 4), site["rowsIn"], site["rowsOut"],
                *(memory.get(site["site"], {}).get(key) for key in ("resident", "aside", "limit")),
                site["executor"],
            ]
            for site in custom["sites"]
        ],
        "streams": [
            {
                "name": one["description"], "rows": one["numInputRows"], "backlog": one["backlog"],
                "newest": one["eventTime"].get("max"), "watermark": one["eventTime"].get("watermark"),
                **{
                    key: one["customMetrics"][key]
                    for key in (
                        "rowsTotal", "lateRows", "lateRowsTotal", "badRowsTotal", "badFilesTotal", "bad",
                    )
                },
            }
            for one in told["sources"]
        ],
        "subqueries": {
            one["operatorName"]: {
                "rowsIn": own["rowsIn"], "rowsOut": own["rowsOut"], "received": own["rowsReceived"],
                "bytes": own["bytesReceived"], "busy": own["busySeconds"], "sites": own["sites"],
                "state": one["memoryUsedBytes"], "stateRows": one["numRowsTotal"],
                "aside": own["spilledBytes"], "skew": own["skew"],
            }
            for one in told["stateOperators"]
            for own in [one["customMetrics"]]
        },
        "results": {sink["query"]: sink["numOutputRows"] for sink in told["sinks"]},
        "waiting": adaptation.get("waiting", [])[:200],
        "waitingRows": adaptation.get("waitingRows", 0),
        "moving": adaptation.get("moving", [])[:200],
        "shapes": adaptation.get("shapes", {}),
        "exchanges": {name: packed(one) for name, one in event.exchanges.items()},
    }  # fmt: skip


def packed(figures: ExchangeFigures) -> dict[str, Any]:
    """The partitions of an exchange: starts and owners as they are, figures as a byte each."""
    columns = {name: figures.column(name) for name in ("rows", "rows_out", "size", "aside")}
    top = {name: float(column.max(initial=0.0)) for name, column in columns.items()}
    # The same scale for what is put aside as for all, to compare them
    top["aside"] = top["size"]
    raw = [
        figures.column("starts").astype("<u2").tobytes(),
        figures.column("sites").tobytes(),
        *(quantised(column, top[name]).tobytes() for name, column in columns.items()),
        figures.marks,
    ]
    data = base64.b64encode(zlib.compress(b"".join(raw), 1)).decode()
    return {
        "slots": figures.slots, "count": len(figures), "top": top, "seconds": figures.seconds,
        "data": data,
    }  # fmt: skip


def quantised(column: np.ndarray, top: float) -> np.ndarray:
    """Values as bytes: the root of their share of the greatest."""
    if top <= 0:
        return np.zeros(len(column), dtype="u1")
    found: np.ndarray = np.round(255 * np.sqrt(np.clip(column / top, 0, 1))).astype("u1")
    return found


def packed_range(column: np.ndarray) -> list[Any]:
    """A column of the map of slots and time: its greatest, and the rest as bytes."""
    top = float(column.max(initial=0.0))
    return [round(top, 1), base64.b64encode(quantised(column, top).tobytes()).decode()]
