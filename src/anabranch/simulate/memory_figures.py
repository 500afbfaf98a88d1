"""Figs 9 and 10 of Flux: one site's memory is halved; throughput and latency until all is well again."""

from __future__ import annotations

from typing import Any

import numpy as np

from anabranch.observe.steps import Steps
from anabranch.settings import Settings
from anabranch.simulate.cluster import Cluster, Event
from anabranch.simulate.demand import even
from anabranch.simulate.governing import as_published, self_tuning
from anabranch.simulate.model import Simulation

CLUSTER = Cluster(partitions=32 * 128, partition_rows=75_000)
CUT_AT, CUT_TO = 1.0, 512e6
SECONDS = 80
STEADY = 60
"""The seconds after this one count as the steady state."""


def measure_memory(
    seed: int, unloaded: float, steps: Steps
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows and mean latency (µs) of every second, without moves and under each memory policy."""
    rows: dict[str, Any] = {"unloaded": unloaded}
    latency: dict[str, Any] = {"unloaded_us": CLUSTER.row_seconds * 1e6}
    policies: dict[str, Settings | None] = {
        "static": None,
        "flux": as_published("memory"),
        "self_tuning": self_tuning("hybrid"),
    }
    for name, settings in policies.items():
        steps.begin(f"figs 9, 10: {name}")
        events = [Event(CUT_AT, 5, memory=CUT_TO)]
        record = Simulation(CLUSTER, even(CLUSTER.partitions), seed, settings, events).run(SECONDS)
        late = record.latency * 1e6
        rows[name] = record.rows.round().tolist()
        latency[name] = [None if np.isnan(value) else round(value, 1) for value in late.tolist()]
        rows[f"{name}_moves"] = len(record.moves)
        rows[f"{name}_steady"] = round(record.rate(STEADY))
        steady = record.waited[STEADY:].sum() / record.rows[STEADY:].sum()
        latency[f"{name}_steady_us"] = round(float(steady) * 1e6, 1)
        slow = np.flatnonzero(record.rows < 0.95 * unloaded)
        late_seconds = np.flatnonzero(~(late < 1.1 * CLUSTER.row_seconds * 1e6))
        rows[f"{name}_recovered_at"] = int(slow.max()) + 1 if len(slow) else 0
        latency[f"{name}_recovered_at"] = int(late_seconds.max()) + 1 if len(late_seconds) else 0
    rows["paper"] = {
        "unloaded": 6.9e5,
        "static_steady": 1.6e5,
        "recovered_at": 37,
        "spilled_at": 15,
    }
    latency["paper"] = {"unloaded_us": 45, "static_steady_us": 2.4e5, "recovered_at": 37}
    return rows, latency
