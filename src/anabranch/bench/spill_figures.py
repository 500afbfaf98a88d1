"""The experiments of the paper on state adaptation, one after another: their runs, and what they show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from anabranch.bench.spill_runs import (
    PARTITIONS,
    Approach,
    PaperTraffic,
    SpillCourse,
    TrafficFiles,
    run_one,
    write,
)
from anabranch.observe.steps import Steps
from anabranch.settings import ACTIVE_DISK, ANY, LAZY_DISK, POOR, RICH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SITES = (1, 2, 3, 4, 5)
PUSHED = (0.1, 0.3, 0.5, 1.0)
REPEATS = 3
UNEVEN = (2 / 3, 1 / 6, 1 / 6)
ONE_MINUTE = 4
"""Epochs of a minute where a quarter of a minute matters: Figs 14 to 16."""


class Experiments:
    """The runs of all figures, each over files that are written once."""

    def __init__(
        self, spark: SparkSession | None, scratch: Path, quick: bool, steps: Steps
    ) -> None:
        self._spark, self._scratch, self._steps = spark, scratch, steps
        self._part = 3 if quick else 1
        self._written: dict[str, TrafficFiles] = {}
        self._runs = 0
        self.repeats = 1 if quick else REPEATS
        self.equal = True

    def files(
        self, name: str, minutes: int, rows: int, tuple_range: int, ratios: Sequence[float],
        each: int = 1, turn: int = 0,
    ) -> TrafficFiles:  # fmt: skip
        """The files of some minutes with so many rows of each stream; quickly, a third of them."""
        if name not in self._written:
            traffic = PaperTraffic(
                minutes * each // self._part, rows // each, tuple_range // self._part,
                np.resize(ratios, PARTITIONS).tolist(), turn * each // self._part,
            )  # fmt: skip
            self._written[name] = write(self._scratch / name, traffic)
        return self._written[name]

    def run(self, title: str, files: TrafficFiles, asked: Approach) -> SpillCourse:
        self._steps.begin(title)
        self._runs += 1
        course = run_one(self._spark, files, asked, self._scratch / f"run-{self._runs}")
        self.equal &= course.equal
        return course


def small_and_large(bench: Experiments) -> dict[str, Any]:
    """Figs 6 and 7: a query that fits, and one that does not, on 1 to 5 sites."""
    small = bench.files("small", 40, 3000, 50_000, [1.0])
    few = {n: bench.run(f"fig6, {n} sites", small, Approach(n)) for n in SITES}
    large = bench.files("large", 40, 6000, 50_000, [2.0])
    whole = bench.run("fig7, all in memory", large, Approach())
    limit = 0.3 * whole.state_bytes
    many = {n: bench.run(f"fig7, {n} sites", large, Approach(n, limit)) for n in SITES}
    return {
        "fig6": {
            "results_ratio": _ratio(few[5].total, few[1].total),
            "results": {n: course.total for n, course in few.items()},
            "seconds": {n: round(course.seconds, 2) for n, course in few.items()},
        },
        "fig7": {
            "in_order": _rising([course.total for course in many.values()]),
            "results": {n: course.total for n, course in many.items()},
            "full_after": {n: course.spilled for n, course in many.items()},
            "all_in_memory": whole.total,
        },
    }


def pushing(bench: Experiments) -> dict[str, Any]:
    """Figs 9, 10 and 12: how much is pushed at once, and which of partitions that are alike."""
    alike = bench.files("alike", 50, 2000, 30_000, [3.0])
    whole = bench.run("fig9, all in memory", alike, Approach())
    limit, epoch = 0.4 * whole.state_bytes, whole.state_bytes / alike.traffic.epochs

    def asked(share: float, first: str) -> Approach:
        return Approach(memory=limit, settings={"spill_share": share, "spill_first": first})

    pushed = {
        share: bench.run(f"fig9, {share:.0%} pushed", alike, asked(share, ANY)) for share in PUSHED
    }
    chosen = {
        first: bench.run(f"fig12, {first} first", alike, asked(0.3, first))
        for first in (POOR, RICH)
    }
    shares = {0.0: whole, **pushed}
    return {
        "fig9": {
            "in_order": _rising([course.total for course in reversed(shares.values())]),
            "results": {f"{share:.0%}": course.total for share, course in shares.items()},
            "over_time": {f"{share:.0%}": _summed(course) for share, course in shares.items()},
        },
        "fig10": {
            "most_over_limit": round(max(c.most for c in pushed.values()) / (limit + epoch), 4),
            "limit": round(limit),
            "epoch": round(epoch),
            "memory": {f"{share:.0%}": [m[0] for m in c.memory] for share, c in shares.items()},
        },
        "fig12": {
            "results_ratio": _ratio(chosen[POOR].total, chosen[RICH].total),
            "results": {first: course.total for first, course in chosen.items()},
            "over_time": {first: _summed(course) for first, course in chosen.items()},
        },
    }


def unequal(bench: Experiments) -> dict[str, Any]:
    """Fig 11: which of partitions that are not alike are pushed, and what their clean-up takes."""
    mixed = bench.files("mixed", 60, 2000, 30_000, [4.0, 2.0, 1.0])
    whole = bench.run("fig11, all in memory", mixed, Approach())
    runs = {
        first: bench.run(
            f"fig11, {first} first",
            mixed,
            Approach(memory=0.4 * whole.state_bytes, settings={"spill_first": first}),
        )
        for first in (POOR, RICH)
    }
    rows = {first: course.owed for first, course in runs.items()}
    seconds = {first: round(course.clean_up, 2) for first, course in runs.items()}
    return {
        "fig11": {
            "results_ratio": _ratio(runs[POOR].total, runs[RICH].total),
            "cleanup_ratio": _ratio(rows[POOR], rows[RICH]),
            "results": {first: course.total for first, course in runs.items()},
            "all_in_memory": whole.total,
            "over_time": {first: _summed(course) for first, course in runs.items()},
        },
        "cleanup": {"rows": rows, "seconds": seconds},
    }


def moving(bench: Experiments) -> dict[str, Any]:
    """Figs 14 to 16: what it costs to even out memory again and again."""
    swinging = bench.files("swinging", 60, 2000, 30_000, [1.0], each=ONE_MINUTE, turn=5)
    ways = {"none": Approach(2)} | {
        f"{even:.0%} every {15 * every} s": Approach(
            2, policy=LAZY_DISK, settings={"memory_balance": even}, every=every
        )
        for even, every in ((0.9, 3), (0.8, 3), (0.5, 3), (0.9, 1), (0.9, 2))
    }
    runs: dict[str, list[SpillCourse]] = {name: [] for name in ways}
    for repeat in range(bench.repeats):
        for name, asked in ways.items():
            runs[name].append(bench.run(f"fig14, {name}, run {repeat + 1}", swinging, asked))
    spent = {name: min(course.computing for course in some) for name, some in runs.items()}
    of_90 = ["90% every 15 s", "90% every 30 s", "90% every 45 s"]
    by_share = ["90% every 45 s", "80% every 45 s", "50% every 45 s"]
    uneven = {name: _unevenness(runs[name][0]) for name in ("none", "90% every 15 s")}

    def costs(names: list[str]) -> dict[str, Any]:
        return {
            "cost": round(max(spent[name] for name in names) / spent["none"] - 1, 4),
            "costs": {name: round(spent[name] / spent["none"] - 1, 4) for name in names},
            "adaptations": {name: runs[name][0].rounds for name in names},
            "partitions_moved": {name: runs[name][0].moved for name in names},
            "cpu_seconds": {
                name: [round(course.computing, 2) for course in runs[name]]
                for name in ["none", *names]
            },
            "seconds": {
                name: [round(course.seconds, 2) for course in runs[name]]
                for name in ["none", *names]
            },
        }

    return {
        "fig14": costs(by_share),
        "fig15": costs(of_90),
        "fig16": {
            "uneven_ratio": _ratio(uneven["90% every 15 s"], uneven["none"]),
            "unevenness": {name: round(value, 4) for name, value in uneven.items()},
            "memory": {name: runs[name][0].memory for name in uneven},
        },
    }


def moving_or_pushing(bench: Experiments) -> dict[str, Any]:
    """Fig 17: memory that is enough for all if partitions move."""
    even = bench.files("even", 60, 2000, 30_000, [3.0])
    first = (0.5, 0.25, 0.25)
    whole = bench.run("fig17, all in memory", even, Approach(3))
    # Enough for all of it together, not for what the first site has
    limit = 0.4 * whole.state_bytes
    alone = bench.run("fig17, pushing alone", even, Approach(3, limit, shares=first))
    moving = bench.run("fig17, moving", even, Approach(3, limit, LAZY_DISK, shares=first))
    return {
        "fig17": {
            "results_ratio": _ratio(moving.total, alone.total),
            "results": {"pushing": alone.total, "moving": moving.total},
            "all_in_memory": whole.total,
            "over_time": {"pushing": _summed(alone), "moving": _summed(moving)},
        }
    }


def both(bench: Experiments) -> dict[str, Any]:
    """Figs 20 and 21: lazy-disk, active-disk, and neither."""
    even = bench.files("even", 60, 2000, 30_000, [3.0])
    whole = bench.run("fig20, all in memory", even, Approach(3))
    limit = 0.28 * whole.state_bytes
    alone = bench.run("fig20, no distribution", even, Approach(3, limit, shares=UNEVEN))
    lazy = bench.run("fig20, lazy-disk", even, Approach(3, limit, LAZY_DISK, shares=UNEVEN))
    hours = bench.files("hours", 180, 4000, 300_000, [1.0])
    size = whole.state_bytes * hours.traffic.epochs * 4000 / (even.traffic.epochs * 2000)
    long_alone = bench.run(
        "fig20, 6 hours, no distribution", hours, Approach(3, size / 15, shares=UNEVEN)
    )
    long_lazy = bench.run(
        "fig20, 6 hours, lazy-disk", hours, Approach(3, size / 15, LAZY_DISK, shares=UNEVEN)
    )
    rich = bench.files(
        "rich", 60, 2000, 30_000, np.repeat([4.0, 1.0, 1.0], PARTITIONS // 3).tolist()
    )
    all_rich = bench.run("fig21, all in memory", rich, Approach(3))
    limit = 0.15 * all_rich.state_bytes
    runs = {
        policy: bench.run(f"fig21, {policy}", rich, Approach(3, limit, policy))
        for policy in (LAZY_DISK, ACTIVE_DISK)
    }
    ratios = [
        _ratio(active, other)
        for active, other in zip(_summed(runs[ACTIVE_DISK]), _summed(runs[LAZY_DISK]), strict=True)
        if other
    ]
    return {
        "fig20": {
            "results_ratio": _ratio(lazy.total, alone.total),
            "cleanup_ratio": _ratio(long_lazy.clean_up, long_alone.clean_up),
            "results": {"none": alone.total, LAZY_DISK: lazy.total},
            "over_time": {"none": _summed(alone), LAZY_DISK: _summed(lazy)},
            "six_hours": {
                name: {
                    "results": course.total,
                    "cleanup_rows": course.owed,
                    "cleanup_seconds": round(course.clean_up, 2),
                }
                for name, course in (("none", long_alone), (LAZY_DISK, long_lazy))
            },
        },
        "fig21": {
            "least_ratio": min(ratios),
            "final_ratio": ratios[-1],
            "over_time": {policy: _summed(course) for policy, course in runs.items()},
        },
    }


def _ratio(one: float, other: float) -> float:
    return round(one / other, 4) if other else float("inf")


def _rising(values: list[int]) -> int:
    """Whether each is at least as much as the one before."""
    return int(all(first <= second for first, second in pairwise(values)))


def _summed(course: SpillCourse) -> list[int]:
    """The results by the end of each epoch."""
    return [*accumulate(course.results)]


def _unevenness(course: SpillCourse) -> float:
    """By how much the memory of two sites differs, as a share of the fuller one's, on average."""
    return fmean(1 - min(sites) / max(sites) for sites in course.memory if max(sites))
