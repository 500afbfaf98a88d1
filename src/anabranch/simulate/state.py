"""State larger than the memory of many sites, under the policies of the engine: hours in seconds.

A model of the paper's three-way join: how much state each partition has in memory and in generations that
were put aside, and the results that follow from it. Sites keep up with their input, as the paper assumes, so
results depend on memory alone. The policies are those of the engine, asked with the views that it would give.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from anabranch.adapt.actions import Move, Spill
from anabranch.adapt.policies.disk import propose_active_disk, propose_lazy_disk
from anabranch.adapt.policies.spill import Thresholds, propose_spill
from anabranch.adapt.view import Partitions, Sites, View
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.settings import ACTIVE_DISK, LAZY_DISK, NONE

ROW_BYTES = 700
"""Bytes of a row in memory: the paper fills 200 MB in about 25 minutes with three streams at 10 ms a row."""
RESULT_SECONDS, BYTE_SECONDS = 200e-6, 1 / 40e6
"""What the clean-up takes for a result and for a byte from disk, on one of the paper's machines."""
SPAN = 0.75
"""Minutes that are at least between two moves of state: its 45 s."""
PARTITIONS = 100
"""Of each site, as in the paper with three."""


@dataclass(frozen=True)
class StateScenario:
    """A cluster and what it is given to do."""

    sites: int = 3
    minutes: int = 60
    memory: float = 200e6
    """Of each site."""
    rows: float = 2000.0
    """A minute of each stream, for every three sites."""
    tuple_range: float = 30_000.0
    """For every three sites, too."""
    shares: Sequence[float] = ()
    """What part of the partitions each site has at first; none: all alike."""
    ratios: Sequence[float] = (3.0,)
    """The join ratios of the partitions of the first sites, and of all others the last one."""


@dataclass
class StateModel:
    """The partitions of a cluster, and the results that they have given."""

    scene: StateScenario
    site: np.ndarray = field(init=False)
    fresh: np.ndarray = field(init=False)
    """Rows of each stream in memory, by partition."""
    put_aside: np.ndarray = field(init=False)
    """The same of all generations on disk."""
    given: np.ndarray = field(init=False)
    """Results of generations on disk."""
    results: np.ndarray = field(init=False)
    """Those of the last minute."""

    def __post_init__(self) -> None:
        scene, count = self.scene, PARTITIONS * self.scene.sites
        shares = np.asarray(scene.shares or np.full(scene.sites, 1 / scene.sites))
        self.site = np.searchsorted(np.cumsum(shares) * count, np.arange(count) + 0.5)
        ratios = np.asarray(scene.ratios)
        ratio = ratios[np.minimum(np.arange(count) // PARTITIONS, len(ratios) - 1)]
        self.rate = np.full(count, scene.rows / (3 * PARTITIONS))
        self.keys = scene.tuple_range / (3 * PARTITIONS) / ratio
        self.fresh, self.put_aside, self.given, self.results = np.zeros((4, count))

    def matches(self, rows: np.ndarray) -> np.ndarray:
        """The results of a generation with so many rows of each stream."""
        return np.asarray(self.keys * (rows / self.keys) ** 3)

    def advance(self) -> float:
        """A minute of input; what it gives."""
        before = self.matches(self.fresh)
        self.fresh = self.fresh + self.rate
        self.results = self.matches(self.fresh) - before
        return float(self.results.sum())

    def apply(self, actions: Iterable[Move | Spill]) -> None:
        gone = np.zeros(len(self.site), dtype=bool)
        for action in actions:
            if isinstance(action, Move):
                self.site[action.partition] = action.target
            else:
                gone[action.partition] = True
        self.given = np.where(gone, self.given + self.matches(self.fresh), self.given)
        self.put_aside = np.where(gone, self.put_aside + self.fresh, self.put_aside)
        self.fresh = np.where(gone, 0.0, self.fresh)

    @property
    def owed(self) -> np.ndarray:
        """The results that are missing, by partition."""
        whole = self.matches(self.fresh + self.put_aside)
        return np.asarray(whole - self.given - self.matches(self.fresh))

    def view(self) -> View:
        """What the engine would see of it."""
        count, sites = len(self.site), self.scene.sites
        none, zero = np.zeros(sites), np.zeros(count)
        resident, aside = 3 * ROW_BYTES * self.fresh, 3 * ROW_BYTES * self.put_aside
        kept = np.bincount(self.site, resident, sites)
        spilled = np.bincount(self.site, aside, sites)
        return View(
            ("joined",), 1.0,
            Sites(
                busy=none, waiting=none, rows=none, slowness=none + 1, resident=kept, spilled=spilled,
                held=none, memory=np.full(sites, self.scene.memory), alive=np.ones(sites, dtype=bool),
            ),
            Partitions(
                exchange=zero.astype(int), start=np.arange(count), slots=zero.astype(int) + 1,
                site=self.site, rows_in=self.rate, rows_out=self.results, work=zero,
                bytes=resident + aside, aside=aside, last_use=zero, spills=zero == 0, closing=zero > 0,
                since=zero, generations=zero, awaited=zero > 0, fixed=aside > 0, peak=zero,
                peak_at=zero.astype(int),
            ),
        )  # fmt: skip


def simulate(
    scene: StateScenario, policy: str, thresholds: Thresholds | None = None
) -> dict[str, Any]:
    """What a cluster gives under a policy, and how long its clean-up takes."""
    limits = thresholds or Thresholds(idle=scene.minutes / 2)
    cluster, results = StateModel(scene), list[float]()
    moves, since, most = 0, np.inf, 0.0
    for minute in range(scene.minutes):
        results.append((results[-1] if results else 0.0) + cluster.advance())
        since += 1
        view = cluster.view()
        most = max(most, float(view.sites.resident.max()))
        wanted: list[Move | Spill] = []
        if policy != NONE and since >= SPAN:
            wanted = [*propose_lazy_disk(view, limits)]
        if wanted:
            moves, since = moves + len(wanted), 0
            cluster.apply(wanted)
            view = cluster.view()
        pushed = [*propose_spill(view, limits)]
        if policy == ACTIVE_DISK and not wanted and not pushed:
            # The paper knows how long its run is: state grows with it
            expected = float(view.partitions.bytes.sum()) * scene.minutes / (minute + 1)
            pushed = [*propose_active_disk(view, limits, expected)]
        cluster.apply(pushed)
    owed, size = cluster.owed, 3 * ROW_BYTES * cluster.put_aside
    seconds = np.bincount(
        cluster.site, owed * RESULT_SECONDS + size * BYTE_SECONDS, minlength=scene.sites
    )
    return {
        "results": round(results[-1]),
        "results_by_tenth": [round(one) for one in results[scene.minutes // 10 - 1 :: scene.minutes // 10]],
        "cleanup_rows": round(float(owed.sum())),
        "cleanup_seconds": round(float(seconds.max()), 1),
        "moves": moves,
        "most_bytes": round(most),
    }  # fmt: skip


def run_state(quick: bool, steps: Steps) -> dict[str, Any]:
    """Figs 20 and 21 of the paper, the run of six hours, and clusters of up to 1,000 sites."""
    begun = time.monotonic()
    uneven = (2 / 3, 1 / 6, 1 / 6)
    scenes = {
        "fig20": StateScenario(shares=uneven, memory=70e6),
        "fig20_long": StateScenario(
            shares=uneven, minutes=360, memory=70e6, tuple_range=300_000.0, ratios=(1.0,)
        ),
        "fig21": StateScenario(ratios=(4.0, 1.0), memory=70e6),
    }
    sizes = (3, 10, 100) if quick else (3, 10, 30, 100, 300, 1000)
    steps.expect(len(scenes) + len(sizes))
    found: dict[str, Any] = {}
    for name, scene in scenes.items():
        steps.begin(name)
        policies = (LAZY_DISK, ACTIVE_DISK) if name == "fig21" else (NONE, LAZY_DISK)
        found[name] = {policy: simulate(scene, policy) for policy in policies}
    found["sites"] = {}
    for sites in sizes:
        steps.begin(f"{sites:,} sites")
        # A third of the sites, or one, have two thirds of the partitions
        crowded = max(1, sites // 3)
        shares = [2 / 3 / crowded] * crowded + [1 / 3 / (sites - crowded)] * (sites - crowded)
        scene = replace(scenes["fig20"], sites=sites, shares=shares)
        since = time.monotonic()
        both = {policy: simulate(scene, policy) for policy in (NONE, LAZY_DISK, ACTIVE_DISK)}
        found["sites"][str(sites)] = {
            **both,
            "results_ratio": _ratio(both[LAZY_DISK]["results"], both[NONE]["results"]),
            "seconds": round(time.monotonic() - since, 2),
        }
    lazy, none = found["fig20"][LAZY_DISK], found["fig20"][NONE]
    long_lazy, long_none = found["fig20_long"][LAZY_DISK], found["fig20_long"][NONE]
    early, late = found["fig21"][LAZY_DISK], found["fig21"][ACTIVE_DISK]
    over_time = [
        _ratio(b, a)
        for a, b in zip(early["results_by_tenth"], late["results_by_tenth"], strict=True)
        if a
    ]
    figures = {
        "fig20_results_ratio": _ratio(lazy["results"], none["results"]),
        "fig20_cleanup_ratio": _ratio(long_lazy["cleanup_seconds"], long_none["cleanup_seconds"]),
        "fig21_least_ratio": min(over_time),
        "fig21_final_ratio": over_time[-1],
    }
    bars = [
        Bar("fig20_results_ratio", figures["fig20_results_ratio"], ">=", 1.3),
        Bar("fig20_cleanup_ratio", figures["fig20_cleanup_ratio"], "<=", 0.5),
        Bar("fig21_least_ratio", figures["fig21_least_ratio"], "<", 1.0),
        Bar("fig21_final_ratio", figures["fig21_final_ratio"], ">", 1.0),
    ]
    return {
        "quick": quick, **figures, **found, "bars": [bar.plain() for bar in bars],
        "seconds": round(time.monotonic() - begun, 2),
    }  # fmt: skip


def _ratio(one: float, other: float) -> float:
    return round(one / other, 4) if other else float("inf")
