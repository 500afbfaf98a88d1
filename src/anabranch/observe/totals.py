"""A run added up from its progress reports: what views show and summaries say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

RECENT_RATES = 20
RECENT_WARNINGS = 3
RECENT_DECISIONS = 3
WARNING_EPOCHS = 10


@dataclass
class Throughput:
    """Rows that went into a site or a subquery and came out of it, and the time it took."""

    rows_in: int = 0
    rows_out: int = 0
    busy_seconds: float = 0.0

    def add(self, rows_in: int, rows_out: int, busy_seconds: float = 0.0) -> None:
        self.rows_in += rows_in
        self.rows_out += rows_out
        self.busy_seconds += busy_seconds


@dataclass
class StreamTotals:
    """What a run has read of a stream, and what of it took no part."""

    rows: int = 0
    """Late ones too, but no bad ones."""
    late: int = 0
    bad_rows: int = 0
    bad_files: int = 0
    newest: str = ""
    watermark: str = ""

    @property
    def bad(self) -> int:
        return self.bad_rows + self.bad_files

    def add(self, source: dict[str, Any]) -> None:
        metrics, times = source["customMetrics"], source["eventTime"]
        self.rows += source["numInputRows"]
        self.late += metrics["lateRows"]
        self.bad_rows += metrics["badRows"]
        self.bad_files += metrics["badFiles"]
        self.newest, self.watermark = moment(times.get("max")), moment(times.get("watermark"))


def moment(value: Any) -> str:
    """A point in event time: a number as it is, a timestamp to the second.

    >>> moment("2026-01-31T23:59:59.123"), moment("2026-01-31T23:59:59.123+00:00"), moment(60), moment(None)
    ('2026-01-31 23:59:59', '2026-01-31 23:59:59Z', '60', 'none yet')
    """
    if value is None:
        return "none yet"
    text = str(value)
    if text[10:11] != "T":
        return text
    return text[:19].replace("T", " ") + ("Z" if text.endswith("+00:00") else "")


@dataclass
class Totals:
    """The sum of the reports given to `add`, in the order of their epochs: those of one run."""

    epochs: int = 0
    rows: int = 0
    seconds: float = 0.0
    first_rows: int = 0
    first_seconds: float = 0.0
    streams: dict[str, StreamTotals] = field(default_factory=dict)
    sites: dict[int, Throughput] = field(default_factory=dict)
    subqueries: dict[str, Throughput] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    rates: list[float] = field(default_factory=list)
    """Rows per second of the last epochs that had input."""
    warnings: list[tuple[int, str]] = field(default_factory=list)
    """What operators have warned of in the last epochs, with the epoch; the newest come last."""
    moved: int = 0
    """Partitions that moved, by themselves or by hand."""
    decisions: list[dict[str, Any]] = field(default_factory=list)
    """The newest decisions that were carried out; the newest come last."""
    last: dict[str, Any] = field(default_factory=dict)
    """The newest report; empty before the first."""

    def add(self, progress: dict[str, Any]) -> None:
        """Counts one epoch."""
        rows = int(progress["numInputRows"])
        seconds = progress["durationMs"]["triggerExecution"] / 1000
        if self.epochs == 0:
            self.first_rows, self.first_seconds = rows, seconds
        self.epochs += 1
        self.rows += rows
        self.seconds += seconds
        if rows:
            rate = float(progress["processedRowsPerSecond"])
            self.rates = [*self.rates, rate][-RECENT_RATES:]
        for source in progress["sources"]:
            self.streams.setdefault(source["description"], StreamTotals()).add(source)
        for site in progress["customMetrics"]["sites"]:
            flow = self.sites.setdefault(site["site"], Throughput())
            flow.add(site["rowsIn"], site["rowsOut"], site["busySeconds"])
        for part in progress["stateOperators"]:
            flow = self.subqueries.setdefault(part["operatorName"], Throughput())
            flow.add(part["customMetrics"]["rowsIn"], part["customMetrics"]["rowsOut"])
        for sink in progress["sinks"]:
            known = self.results.get(sink["query"], 0)
            self.results[sink["query"]] = known + sink["numOutputRows"]
        adaptation = progress["customMetrics"].get("adaptation", {})
        made = [one for one in adaptation.get("decisions", ()) if one["accepted"]]
        self.moved += sum(one["kind"] == "move" for one in made)
        self.decisions = [*self.decisions, *made][-RECENT_DECISIONS:]
        epoch = int(progress["batchId"])
        told = [(epoch, text) for text in progress["customMetrics"]["warnings"]]
        recent = [warning for warning in self.warnings if warning[0] > epoch - WARNING_EPOCHS]
        self.warnings = [*recent, *told][-RECENT_WARNINGS:]
        self.last = progress

    @property
    def rate(self) -> float:
        """Rows per second over all epochs, the first with its warm-up included."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def warm_rate(self) -> float:
        """Rows per second without the first epoch, in which Spark starts its workers."""
        rest = self.seconds - self.first_seconds
        return (self.rows - self.first_rows) / rest if rest > 0 else 0.0

    def share(self, site: int) -> float:
        """The part of all rows that one site received."""
        whole = sum(total.rows_in for total in self.sites.values())
        return self.sites[site].rows_in / whole if whole else 0.0

    @property
    def late(self) -> int:
        """Rows of all streams that came too late."""
        return sum(stream.late for stream in self.streams.values())

    def summary(self) -> dict[str, Any]:
        """The run as one JSON object, with the field names of progress where they fit."""
        return {
            "epochs": self.epochs,
            "numInputRows": self.rows,
            "seconds": round(self.seconds, 3),
            "rowsPerSecond": round(self.rate),
            "rowsPerSecondWarm": round(self.warm_rate),
            "partitionsMoved": self.moved,
            "eventTime": self.last.get("eventTime", {}),
            "sources": [
                {
                    "description": source["description"],
                    **_counts(self.streams[source["description"]]),
                    **{
                        key: count
                        for key, count in source["customMetrics"].items()
                        if "Total" in key
                    },
                }
                for source in self.last.get("sources", [])
            ],
            "sites": [
                {
                    "site": number,
                    "rowsIn": total.rows_in,
                    "rowsOut": total.rows_out,
                    "share": round(self.share(number), 4),
                    "busySeconds": round(total.busy_seconds, 3),
                }
                for number, total in sorted(self.sites.items())
            ],
            "stateOperators": [
                {key: part[key] for key in ("operatorName", "numRowsTotal", "memoryUsedBytes")}
                for part in self.last.get("stateOperators", [])
            ],
            "sinks": [
                {**sink, "numOutputRows": self.results[sink["query"]]}
                for sink in self.last.get("sinks", [])
            ],
        }


def _counts(stream: StreamTotals) -> dict[str, int]:
    return {
        "numInputRows": stream.rows, "lateRows": stream.late, "badRows": stream.bad_rows,
        "badFiles": stream.bad_files,
    }  # fmt: skip
