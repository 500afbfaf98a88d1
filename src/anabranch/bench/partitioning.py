"""Load on the busiest site while hosts are added: Figs 8 to 11, 13 and 14 of query-aware partitioning.

One to four hosts of two partitions, the same trace for all. The plan has the central form of the paper:
what the partitioning does not suit, and all results, come together on one site.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from anabranch.bench.duck import connect
from anabranch.bench.measure import load, machine
from anabranch.bench.network import (
    EXPECTED,
    EXPERIMENTS,
    Configuration,
    Experiment,
    Trace,
    many_queries,
)
from anabranch.bench.result import Result
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

HOSTS = (1, 2, 3, 4)
PARTS = 2
"""Partitions of a host."""
SETTLING = 3
"""Epochs before those that count: senders sub-aggregate once an epoch has shown that it pays."""
TRACE = Trace(windows=8, rows=1_200_000, flows=40_000, hosts=8_000)
QUERIES = 50
"""As many as one of the paper's applications runs at once."""
LINEAR = 0.95
"""The share of linear growth that sampling leaves at least."""
NOTES = (
    "Received are rows and bytes of Arrow frames that reach the site from an exchange, its own host's "
    "included; what stays in the parts it came in is not received. Of every epoch the busiest site "
    "counts, and of the epochs the median.",
    "busy_ms is the time of that site's tasks, its share of the work on the partitions included.",
    "The jitter and flow_pairs queries are written as histories of two rows; DuckDB is asked with the "
    "self-joins of the paper and must give the same rows.",
    "The paper lets its optimal set of the conflict suit only the aggregation. By its own rules "
    "(srcIP & 0xFFF0, destIP) also suits the join, and so both run on the partitions here.",
    "In the conflict every packet of the jitter query is sent whatever the number of hosts, so the naive "
    "load is a line that does not begin at zero; linearity compares its slopes.",
)


def run_partitioning(quick: bool, steps: Steps) -> Result:
    """All experiments; with `quick`, a tenth of the rows and flows."""
    scale = 10 if quick else 1
    trace = Trace(TRACE.windows, TRACE.rows // scale, TRACE.flows // scale, TRACE.hosts // scale)
    runs = [
        (one, way, hosts) for one in EXPERIMENTS for way in one.configurations for hosts in HOSTS
    ]
    steps.expect(len(runs) + 1)
    before = load()
    measured: dict[str, dict[str, list[dict[str, Any]]]] = {}
    equal = True
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        traces = {one.name: replace(trace, flows=trace.flows * one.spread) for one in EXPERIMENTS}
        expected = {
            name: rows for one in EXPERIMENTS for name, rows in _expected(one, traces[one.name])
        }
        steps.begin("Starting Spark")
        host = Session.local(cores=os.cpu_count() or 2)
        try:
            for one, way, hosts in runs:
                steps.begin(f"{one.name}, {way.name}, {hosts} host(s)")
                folder = Path(scratch) / one.name
                found, right = _run(host, traces[one.name], one, way, hosts, folder, expected)
                measured.setdefault(one.name, {}).setdefault(way.name, []).append(found)
                equal &= right
                if hosts == HOSTS[-1] and way is one.configurations[-1]:
                    shutil.rmtree(folder)
        finally:
            host.stop()
    figures: dict[str, Any] = {"quick": quick, "equal": equal, "rows_per_window": trace.rows}
    figures["analysis"] = _analysis(QUERIES)
    figures |= {one.name: _figures(measured[one.name]) for one in EXPERIMENTS}
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("partitioning", figures, _bars(figures), NOTES, equal, circumstances)


def _analysis(count: int) -> dict[str, Any]:
    """How long it takes to read so many queries, sample their stream, choose, and compile."""
    session = Session.in_process(sites=4)
    session.stream("tcp", generator="packets", rows=1_000_000, ordered="time")
    began = time.perf_counter()
    for name, query in many_queries(count).items():
        session.query(name, query)
    read = time.perf_counter()
    choice = session.partitioning()
    chosen = time.perf_counter()
    session.plan()
    ended = time.perf_counter()
    return {
        "queries": count,
        "seconds": round(ended - began, 3),
        "reading_seconds": round(read - began, 3),
        "choosing_seconds": round(chosen - read, 3),
        "candidates": sum(len(part.candidates) for part in choice.parts),
    }


def _expected(one: Experiment, trace: Trace) -> Iterator[tuple[str, pl.DataFrame]]:
    whole = pl.concat([trace.window(number) for number in range(trace.windows)])
    with connect() as duck:
        duck.register("tcp", whole.to_arrow())
        for name in one.output:
            yield name, duck.sql(EXPECTED[name]).pl()


def _run(
    host: Session, trace: Trace, one: Experiment, way: Configuration, hosts: int, scratch: Path,
    expected: Mapping[str, pl.DataFrame],
) -> tuple[dict[str, Any], bool]:  # fmt: skip
    """The loads of one run, and whether its results were right."""
    parts = hosts * PARTS
    folder = scratch / f"{parts}-{'-'.join(way.partitioned_by)}"
    if not folder.exists():
        trace.write(folder, parts, way.partitioned_by)
    session = Session(
        host.spark,
        sites=parts,
        settings={
            "central": True,
            "max_files_per_epoch": parts,
            "split_tasks": hosts if way.per_host else parts,
            # What a partitioning does by itself: no one evens it out, and nothing waits for a slow site
            "policy": "none",
            "skew_buffer": "none",
        },
    )
    session.stream("tcp", path=folder, ordered="time", partitioned_by=way.partitioned_by)
    for name, query in one.queries.items():
        session.query(name, query)
    session.permit({"tcp": way.partitioned_by} if way.partitioned_by else {})
    run = session.start(sinks=dict.fromkeys(one.output, "memory"), at_end="close")
    run.await_termination()
    counted = run.recent_progress[SETTLING : trace.windows]
    busiest = [
        max(told["customMetrics"]["sites"], key=lambda site: site["bytesReceived"])
        for told in counted
    ]
    right = all(_same(run.results(name), expected[name]) for name in one.output)
    return {
        "hosts": hosts,
        "rows": int(median(site["rowsReceived"] for site in busiest)),
        "bytes": int(median(site["bytesReceived"] for site in busiest)),
        "busy_ms": round(1000 * median(site["busySeconds"] for site in busiest), 1),
        "epochs": len(counted),
    }, right


def _same(found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    wanted = expected.select(pl.col(name).cast(kind) for name, kind in found.schema.items())
    order = found.columns
    return found.height > 0 and found.sort(order).equals(wanted.sort(order))


def _figures(measured: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """What was measured, with growth, linearity and what each configuration saves."""
    figures: dict[str, Any] = dict(measured)
    naive, optimal = measured["naive"], measured["optimal"]
    first, second = naive[0]["rows"], naive[1]["rows"]
    figures["naive_growth"] = round(naive[-1]["rows"] / first, 3)
    figures["naive_linearity"] = round(
        min((at["rows"] - first) / (at["hosts"] - 1) for at in naive[1:]) / (second - first), 3
    )
    figures["optimal_growth"] = round(
        max(at[what] / optimal[0][what] - 1 for at in optimal for what in ("rows", "bytes")), 3
    )
    for name in measured:
        if name != "naive":
            saved = 1 - measured[name][-1]["bytes"] / naive[-1]["bytes"]
            figures[f"{name}_saving"] = round(saved, 3)
    return figures


def _bars(figures: Mapping[str, Any]) -> tuple[Bar, ...]:
    bars = []
    for one in EXPERIMENTS:
        found = figures[one.name]
        bars.append(Bar(f"{one.name}.optimal_growth", found["optimal_growth"], "<=", 0.2))
        bars.append(Bar(f"{one.name}.naive_linearity", found["naive_linearity"], ">=", LINEAR))
        if one.name != "conflict":
            limit = LINEAR * HOSTS[-1]
            bars.append(Bar(f"{one.name}.naive_growth", found["naive_growth"], ">=", limit))
    conflict = figures["conflict"]
    bars.append(Bar("analysis.seconds", figures["analysis"]["seconds"], "<", 2.0))
    bars.append(Bar("conflict.suboptimal_saving", conflict["suboptimal_saving"], ">=", 0.36))
    bars.append(Bar("conflict.optimal_saving", conflict["optimal_saving"], ">=", 0.64))
    return tuple(bars)
