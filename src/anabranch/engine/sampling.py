"""What the controller gets to see: samples of each level from the reports of an epoch, bytes of state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from anabranch.adapt.collector import Sample, Traffic
from anabranch.engine.epoch import Counts, EpochReport, Orders
from anabranch.plan.plan import Plan
from anabranch.routing.partition_map import PartitionMap
from anabranch.state.segment import SegmentRef


def sample(
    orders: Orders, report: EpochReport, number: int, exchanges: Sequence[str]
) -> Sample | None:
    """One epoch at one level, from the reports; None if nothing came to it."""
    parts = [part for part in report.sites if part.level == number]
    senders = report.splits if number == 1 else [p for p in report.sites if p.level == number - 1]
    traffic = {}
    for exchange in exchanges:
        known = orders.maps[exchange]
        sent = [part.sent[exchange] for part in senders if exchange in part.sent]
        if not sent:
            continue
        rows, peaks, slots = _added(sent, known.partitions)
        own = {member.name for member in orders.plan.exchanges[exchange].members}
        done = [d for part in parts for name, d in part.subqueries.items() if name in own]
        traffic[exchange] = Traffic(
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


def state_bytes(
    plan: Plan, exchange: str, known: PartitionMap, segments: Mapping[str, Sequence[SegmentRef]]
) -> np.ndarray:
    """The bytes of each partition's state, taken as spread evenly over a segment's slots."""
    steps = np.zeros(known.slots + 1)
    for member in plan.exchanges[exchange].members:
        for ref in segments.get(member.name, ()):
            first, end = np.asarray(ref.live).reshape(-1, 2).T
            density = ref.bytes / max(1, int((end - first).sum()))
            steps[first] += density
            steps[end] -= density
    found: np.ndarray = np.add.reduceat(np.cumsum(steps)[:-1], np.asarray(known.starts))
    found[found < 0] = 0.0
    return found
