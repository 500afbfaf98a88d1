"""Figs 3, 6, 7 and 8 of Flux: what its buffer and its load policy do, beside the policy that tunes itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from anabranch.observe.steps import Steps
from anabranch.settings import Settings
from anabranch.simulate.cluster import LOADED, Cluster, Event
from anabranch.simulate.demand import even, skewed
from anabranch.simulate.governing import as_published, self_tuning
from anabranch.simulate.model import Simulation
from anabranch.simulate.scale import Scale

CLUSTER = Cluster()
TURN = 0.5
"""Seconds that the rotating load of Fig 3 stays on each site."""
SECONDS = {"fig6": 30, "fig7": 30, "static": 14}
POLICIES: dict[str, Callable[[], Settings | None]] = {
    "static": lambda: None,
    "flux": as_published,
    "self_tuning": self_tuning,
}


def measure_baseline(seed: int, steps: Steps) -> dict[str, Any]:
    """Unloaded: with the traditional exchange, and with the skew buffer."""
    steps.begin("baseline")
    rates = {
        name: Simulation(
            _fine(rows), even(CLUSTER.partitions), seed, exchange=name == "exchange"
        ).run(3).rate(1)
        for name, rows in (("exchange", 0), ("flux", CLUSTER.buffer_rows))
    }  # fmt: skip
    return {name: round(rate) for name, rate in rates.items()}


def measure_fig3(seed: int, scale: Scale, unloaded: float, steps: Steps) -> dict[str, Any]:
    """Throughput under a load that goes round all sites, over the space that producers have."""
    load = [
        event
        for site in range(CLUSTER.sites)
        for event in (
            Event(site * TURN, site, rate=LOADED),
            Event((site + 1) * TURN, site, rate=1.0),
        )
    ]

    def rate(rows: int, exchange: bool) -> float:
        steps.begin(f"fig 3: {'exchange' if exchange else 'flux'}, {rows} rows")
        chances = even(CLUSTER.partitions)
        simulation = Simulation(_fine(rows), chances, seed, events=load, exchange=exchange)
        return round(simulation.run(round(CLUSTER.sites * TURN)).rate())

    return {
        "buffer_kb": [rows * CLUSTER.row_bytes / 1024 for rows in scale.buffers],
        "unloaded": unloaded,
        "no_buffer": rate(0, exchange=True),
        "exchange": [rate(rows, exchange=True) for rows in scale.buffers],
        "flux": [rate(rows, exchange=False) for rows in scale.buffers],
        "paper": {
            "no_buffer": "about half of unloaded",
            "flux": "above exchange, approaches unloaded as the buffer grows",
        },
    }


def measure_fig6(seed: int, unloaded: float, steps: Steps) -> dict[str, Any]:
    """Throughput of every second with one site loaded from t = 1 s on."""
    found: dict[str, Any] = {"unloaded": unloaded, "best": unloaded * _left(1)}
    site = 5
    for name, settings in POLICIES.items():
        steps.begin(f"fig 6: {name}")
        events = [Event(1.0, site, rate=LOADED)]
        record = Simulation(
            CLUSTER, even(CLUSTER.partitions), seed, settings(), events
        ).run(SECONDS["fig6"])  # fmt: skip
        found[name] = record.rows.round().tolist()
        found[f"{name}_moves"] = len(record.moves)
        found[f"{name}_moves_off_the_loaded_site"] = sum(
            move.source == site for move in record.moves
        )
    effect = int(np.argmax(np.array(found["static"]) < 0.9 * unloaded))
    found["effect_at"] = effect
    for name in ("flux", "self_tuning"):
        low = np.flatnonzero(np.array(found[name]) < 0.95 * found["best"])
        found[f"{name}_recovered_after"] = max(int(low.max()) + 1 - effect, 0) if len(low) else 0
    found["paper"] = {
        "unloaded": 6.9e5, "static": "about half", "effect_at": 5, "moves": 32,
        "steady_at": 14, "recovered_after": 9,
    }  # fmt: skip
    return found


def measure_fig7(seed: int, scale: Scale, unloaded: float, steps: Steps) -> dict[str, Any]:
    """Steady throughput over the number of loaded sites."""
    found: dict[str, Any] = {
        "loaded": list(scale.loaded),
        "linear": [unloaded * _left(count) for count in scale.loaded],
        "paper": {"static": "flat once one site is loaded", "flux": "smooth, linear degradation"},
    }
    order = np.random.default_rng(seed).permutation(CLUSTER.sites).tolist()
    for name, settings in POLICIES.items():
        found[name] = []
        seconds = SECONDS["static" if name == "static" else "fig7"]
        for count in scale.loaded:
            steps.begin(f"fig 7: {name}, {count} sites loaded")
            events = [Event(0.0, site, rate=LOADED) for site in order[:count]]
            simulation = Simulation(CLUSTER, even(CLUSTER.partitions), seed, settings(), events)
            found[name].append(round(simulation.run(seconds).rate(seconds - 6)))
    return found


def measure_fig8(seed: int, scale: Scale, steps: Steps) -> dict[str, Any]:
    """Throughput of 80/20 rows over δ_min, all sites alike and with 8 loaded, the mean of several seeds."""
    found: dict[str, Any] = {
        "least_ms": [least * 1000 for least in scale.least],
        "seeds": scale.seeds,
    }
    for case in ("unloaded", "loaded"):
        runs = found[case] = {"static": [], "self_tuning": [], "fixed": [[] for _ in scale.least]}
        for number in range(scale.seeds):
            rng = np.random.default_rng([seed, number])
            chances = skewed(CLUSTER.partitions, rng)
            popular = int(np.argmax(chances)) * CLUSTER.sites // CLUSTER.partitions
            others = rng.permutation([site for site in range(CLUSTER.sites) if site != popular])
            slow = [popular, *others[:7].tolist()] if case == "loaded" else []
            events = [Event(0.0, site, rate=LOADED) for site in slow]
            tries: list[tuple[str, list[float], Settings | None]] = [
                ("static", runs["static"], None),
                ("self-tuning", runs["self_tuning"], self_tuning()),
            ]
            tries += [
                (f"δ_min {least * 1000:g} ms", runs["fixed"][at], as_published(least=least))
                for at, least in enumerate(scale.least)
            ]
            for name, into, settings in tries:
                steps.begin(f"fig 8: {case}, {name}, seed {number + 1} of {scale.seeds}")
                simulation = Simulation(CLUSTER, chances, seed + number, settings, events)
                into.append(round(simulation.run(scale.skewed_seconds).rate()))
        for name in ("static", "self_tuning"):
            runs[f"{name}_mean"] = round(float(np.mean(runs[name])))
        runs["fixed_mean"] = [round(float(np.mean(values))) for values in runs["fixed"]]
        above = np.array(runs["fixed_mean"]) > found["unloaded"]["static_mean"]
        lasting = np.flatnonzero(~above)
        first = int(lasting.max()) + 1 if len(lasting) else 0
        runs["crosses_static_unloaded_at_ms"] = (
            found["least_ms"][first] if 0 < first < len(above) else None
        )
    found["paper"] = {
        "unloaded": {"least_delta": "half of static", "crosses_static_unloaded_at_ms": 250},
        "loaded": {"crosses_static_unloaded_at_ms": 150},
    }
    return found


def _left(loaded: int) -> float:
    """The share of the cluster's capacity that is left beside the load on so many sites."""
    return 1 - (1 - LOADED) * loaded / CLUSTER.sites


def _fine(rows: int) -> Cluster:
    """The cluster with so much space in its buffers; small ones need small steps."""
    return replace(CLUSTER, buffer_rows=rows, step=1e-3)
