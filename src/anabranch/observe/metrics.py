"""Metrics of a run for Prometheus: as text at an address of this machine, and as a file for node exporter.

Names and units follow Prometheus' conventions. Labels are bounded: what goes beyond `MOST_LABELS` of one kind
is added up as `other`, so that many queries or sites cannot flood a server.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from anabranch.errors import SettingsError
from anabranch.events.event import (
    DecisionTaken,
    EpochHappened,
    RunEnded,
    RunEvent,
    RunStarted,
    SitesChanged,
    Warned,
)
from anabranch.observe.hosts import checked_names, hosts_of
from anabranch.observe.story import delay
from anabranch.observe.totals import Totals

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MOST_LABELS = 512
OTHER = "other"
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
FILE_SECONDS = 2.0
Samples = Iterable[tuple[Mapping[str, Any], float]]


class Metrics:
    """Counts what happens in a run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: RunStarted | None = None
        self._ended: RunEnded | None = None
        self._totals = Totals()
        self._last: EpochHappened | None = None
        self._durations: Counter[float] = Counter()
        self._decisions: Counter[tuple[str, str]] = Counter()
        self._busy: Counter[str] = Counter()
        self._warnings = self._sites = self._gone = 0

    def add(self, event: RunEvent) -> None:
        """Takes one more event in."""
        with self._lock:
            match event:
                case RunStarted():
                    self._started, self._ended, self._sites = event, None, event.sites
                case EpochHappened():
                    self._epoch(event)
                case DecisionTaken():
                    outcome = "accepted" if event.accepted else "refused"
                    self._decisions[event.what, outcome] += 1
                case SitesChanged():
                    self._sites, self._gone = event.sites, len(event.gone)
                case Warned():
                    self._warnings += 1
                case RunEnded():
                    self._ended = event

    def _epoch(self, event: EpochHappened) -> None:
        self._last = event
        self._totals.add(event.progress)
        seconds = event.progress["durationMs"]["triggerExecution"] / 1000
        self._durations[next((top for top in BUCKETS if seconds <= top), float("inf"))] += 1
        for one in event.progress["stateOperators"]:
            self._busy[one["operatorName"]] += one["customMetrics"]["busySeconds"]

    def text(self) -> str:
        """All metrics as Prometheus reads them."""
        with self._lock:
            return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        totals, started = self._totals, self._started
        if started is not None:
            labels = {"version": started.version, "run": started.run, "name": started.name}
            yield from gauge("info", "What runs.", [(labels, 1)])
        state = "running" if self._ended is None else "failed" if self._ended.error else "ended"
        states = [({"state": one}, float(one == state)) for one in ("running", "ended", "failed")]
        yield from gauge("run_state", "1 for the state that the run is in.", states)
        yield from gauge("sites", "Sites that the next epoch has.", [({}, self._sites)])
        yield from gauge("sites_gone", "Sites whose executor is not there.", [({}, self._gone)])
        yield from counter("epochs_total", "Epochs committed.", [({}, totals.epochs)])
        yield from counter("warnings_total", "Warnings told.", [({}, self._warnings)])
        yield from self._histogram()
        decisions = [
            ({"kind": k, "outcome": o}, n) for (k, o), n in sorted(self._decisions.items())
        ]
        yield from counter(
            "decisions_total", "Actions proposed, by what became of them.", decisions
        )
        yield from self._streams()
        results = named("query", dict(totals.results))
        yield from counter("result_rows_total", "Results given.", results)
        busy = named("site", {str(site): flow.busy_seconds for site, flow in totals.sites.items()})
        yield from counter("site_busy_seconds_total", "Time that each site was at work.", busy)
        rows = named("site", {str(site): flow.rows_in for site, flow in totals.sites.items()})
        yield from counter("site_input_rows_total", "Rows that came to each site.", rows)
        worked = named("subquery", dict(self._busy))
        yield from counter("subquery_busy_seconds_total", "Time spent on each subquery.", worked)
        if self._last is not None:
            yield from self._now(self._last)

    def _histogram(self) -> Iterator[str]:
        name = "anabranch_epoch_duration_seconds"
        yield from _head(name, "How long epochs took.", "histogram")
        below = 0
        for top in (*BUCKETS, float("inf")):
            below += self._durations[top]
            yield f'{name}_bucket{{le="{"+Inf" if top == float("inf") else f"{top:g}"}"}} {below}'
        yield f"{name}_sum {self._totals.seconds:g}"
        yield f"{name}_count {below}"

    def _streams(self) -> Iterator[str]:
        streams = self._totals.streams
        for name, field, about in (
            ("input_rows_total", "rows", "Rows read, late ones too."),
            ("late_rows_total", "late", "Rows that came too late."),
            ("bad_rows_total", "bad_rows", "Rows that could not be read."),
            ("bad_files_total", "bad_files", "Files that could not be read."),
        ):
            found = {stream: getattr(one, field) for stream, one in streams.items()}
            yield from counter(name, about, named("stream", found))

    def _now(self, last: EpochHappened) -> Iterator[str]:
        told = last.progress
        adaptation = told["customMetrics"]["adaptation"]
        yield from gauge(
            "last_commit_timestamp_seconds", "When the newest epoch was committed.", [({}, last.at)]
        )
        yield from gauge(
            "waiting_rows",
            "Rows that wait before exchanges.",
            [({}, adaptation.get("waitingRows", 0))],
        )
        busy = [site["busySeconds"] for site in told["customMetrics"]["sites"]]
        ratio = max(busy) * len(busy) / sum(busy) if sum(busy) else 1.0
        yield from gauge(
            "imbalance_ratio", "The busiest site's time against the mean.", [({}, ratio)]
        )
        for unit, kind in (("seconds", str), ("ticks", int)):
            behind = {
                one["description"]: found
                for one in told["sources"]
                if isinstance(one["eventTime"].get("max"), kind)
                and (found := delay(one["eventTime"])) is not None
            }
            about = f"The newest time less the watermark, in {unit} of the stream's time."
            yield from gauge(f"watermark_delay_{unit}", about, named("stream", behind))
        state = {one["operatorName"]: one for one in told["stateOperators"]}
        for name, key, about in (
            ("subquery_state_bytes", "memoryUsedBytes", "State of each subquery."),
            ("subquery_state_rows", "numRowsTotal", "Rows of state of each subquery."),
        ):
            sizes = {name_: one[key] for name_, one in state.items()}
            yield from gauge(name, about, named("subquery", sizes))
        parts = {exchange: len(figures) for exchange, figures in last.exchanges.items()}
        yield from gauge(
            "exchange_partitions", "Partitions of each exchange.", named("exchange", parts)
        )
        memory = adaptation.get("memory", ())
        for name, key, about in (
            ("site_resident_bytes", "resident", "State in the memory of each site."),
            ("site_aside_bytes", "aside", "State that each site has put aside."),
            ("site_memory_limit_bytes", "limit", "State that each site may keep in memory."),
        ):
            kept = {str(one["site"]): one[key] for one in memory if one[key] is not None}
            yield from gauge(name, about, named("site", kept))


def named(label: str, values: Mapping[str, float]) -> list[tuple[dict[str, str], float]]:
    """Samples by a label, of which there are not too many."""
    items = list(values.items())
    found = [({label: name}, value) for name, value in items[:MOST_LABELS]]
    rest = sum(value for _, value in items[MOST_LABELS:])
    return [*found, *([({label: OTHER}, rest)] if len(items) > MOST_LABELS else [])]


def counter(name: str, about: str, samples: Samples) -> Iterator[str]:
    return _metric(name, about, "counter", samples)


def gauge(name: str, about: str, samples: Samples) -> Iterator[str]:
    return _metric(name, about, "gauge", samples)


def _metric(name: str, about: str, kind: str, samples: Samples) -> Iterator[str]:
    name = f"anabranch_{name}"
    yield from _head(name, about, kind)
    for labels, value in samples:
        text = ",".join(f'{label}="{_escaped(str(one))}"' for label, one in labels.items())
        yield f"{name}{{{text}}} {value:.17g}" if text else f"{name} {value:.17g}"


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} {kind}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def serve_metrics(
    metrics: Metrics, port: int, host: str = "127.0.0.1", names: Iterable[str] = ()
) -> tuple[int, Callable[[], None]]:
    """Answers `GET /metrics` on a port, of loopback unless told otherwise; the port, and what ends it.

    Who asks must call it by a name of loopback, by `host`, or by one of `names`.
    """
    given = checked_names(names)
    hosts: frozenset[str] = frozenset()

    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version, timeout = "anabranch", "", 20

        def do_GET(self) -> None:
            asked = [name.lower() for name in self.headers.get_all("host", [])]
            if len(asked) != 1 or asked[0] not in hosts:
                self._answer(421, b"These metrics go by another name.\n")
            elif self.path.split("?")[0] == "/metrics":
                self._answer(200, metrics.text().encode())
            else:
                self._answer(404, b"There is only /metrics.\n")

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", CONTENT)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as error:
        raise SettingsError(
            f"Metrics cannot be served on {host}, port {port}: {error.strerror}. Give another port."
        ) from error
    server.daemon_threads = True
    at = int(server.server_address[1])
    hosts = hosts_of(host, at, given)
    threading.Thread(target=server.serve_forever, name="anabranch-metrics", daemon=True).start()

    def close() -> None:
        server.shutdown()
        server.server_close()

    return at, close


def write_metrics(metrics: Metrics, path: Path) -> Callable[[], None]:
    """Keeps a file with the metrics, whole at any time; returns what ends it, with the last figures."""
    ending = threading.Event()

    def write() -> None:
        beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        beside.write_text(metrics.text())
        os.replace(beside, path)

    def keep() -> None:
        while not ending.wait(FILE_SECONDS):
            with contextlib.suppress(OSError):
                write()

    try:
        write()
    except OSError as error:
        raise SettingsError(f"Cannot write metrics to '{path}': {error.strerror}.") from error
    thread = threading.Thread(target=keep, name="anabranch-metrics-file", daemon=True)
    thread.start()

    def close() -> None:
        ending.set()
        thread.join()
        with contextlib.suppress(OSError):
            write()

    return close
