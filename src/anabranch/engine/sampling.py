"""From the reports of an epoch to the controller's samples, one for each level."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anabranch.adapt.collector import Sample, Traffic
from anabranch.engine.epoch import Counts, EpochReport, Orders


def sample(orders: Orders, report: EpochReport, number: int, homes: Sequence[str]) -> Sample | None:
    """One epoch at one level, from the reports; None if nothing came to it."""
    parts = [part for part in report.sites if part.level == number]
    senders = report.splits if number == 1 else [p for p in report.sites if p.level == number - 1]
    traffic = {}
    for home in homes:
        known = orders.maps[home]
        sent = [part.sent[home] for part in senders if home in part.sent]
        if not sent:
            continue
        rows, peaks, slots = _added(sent, known.partitions)
        own = {name for name, part in orders.plan.subqueries.items() if part.home == home}
        done = [d for part in parts for name, d in part.subqueries.items() if name in own]
        traffic[home] = Traffic(
            rows, peaks, slots, sum(d.seconds for d in done), sum(d.rows_out for d in done)
        )
    if not traffic or not parts:
        return None
    first = min(part.started for part in parts)
    busy, waiting, rows_in = (np.zeros(orders.sites) for _ in range(3))
    executors = [""] * orders.sites
    for part in parts:
        busy[part.site] = part.seconds
        waiting[part.site] = part.started - first
        rows_in[part.site] = sum(done.rows_in for done in part.subqueries.values())
        executors[part.site] = part.executor
    return Sample(float(busy.max()), busy, waiting, rows_in, traffic, executors)


def _added(sent: Sequence[Counts], count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What all senders sent to each partition; the fullest slot is that of the sender who sent most."""
    rows, peaks = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    slots, most = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for part in sent:
        rows += np.frombuffer(part.rows, dtype=np.int64)
        peak = np.frombuffer(part.peak_rows, dtype=np.int64)
        at = np.frombuffer(part.peak_slot, dtype=np.int64)
        larger = peak > most
        same = at == slots
        peaks = np.where(same, peaks + peak, np.where(larger, peak, peaks))
        slots, most = np.where(larger, at, slots), np.maximum(most, peak)
    return rows, peaks, slots
