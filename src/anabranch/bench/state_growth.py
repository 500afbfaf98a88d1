"""Epoch time at a fixed delta while the open state grows: it must follow the delta, not the state.

One long window, so that nothing closes, and keys that hardly ever come twice, so that every row is one
more open group. Between the sizes the state is filled with larger epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.data import Packets
from anabranch.bench.jobs import EpochTime, Ours, run_job
from anabranch.bench.measure import load, machine, percentile, spread
from anabranch.bench.result import Result, describe
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps

SIZES = (1_000_000, 10_000_000, 50_000_000)
DELTA = 200_000
FILL = 1_000_000
SETTLING = 2
"""Epochs of the fixed delta after filling that do not count: the last filling's merges run out."""
MEASURED = 11
KEYS = 1 << 40
NOTES = (
    f"At each size {SETTLING} epochs settle and {MEASURED} count; the sizes are those at which the "
    "settling begins.",
    "Times are whole epochs: from the look for new files to results made visible, merges of state "
    "segments included.",
    "fastest_growth compares the fastest epoch of the last size with that of the first. Other work on "
    "the machine adds to every epoch and so makes growth look smaller; this is hurt least by it.",
)


@dataclass(frozen=True)
class GrowthCourse:
    """The rows of every epoch, and which epochs count at which size."""

    rows: tuple[int, ...]
    measured: dict[int, range]


def course(sizes: tuple[int, ...], delta: int, fill: int) -> GrowthCourse:
    """The epochs that bring the state to each size and measure there.

    >>> course((1000,), 200, 1000).rows[:7]
    (200, 200, 200, 200, 200, 200, 200)
    """
    rows: list[int] = []
    measured: dict[int, range] = {}
    for size in sizes:
        # The first size is reached in small steps: they also warm up the workers
        step = delta if not measured else fill
        while (missing := size - sum(rows)) > 0:
            rows.append(min(step, missing))
        rows += [delta] * SETTLING
        measured[size] = range(len(rows), len(rows) + MEASURED)
        rows += [delta] * MEASURED
    return GrowthCourse(tuple(rows), measured)


def run_state_growth(quick: bool, steps: Steps) -> Result:
    """Grows the state to each size; with `quick`, sizes and delta are a tenth."""
    scale = 10 if quick else 1
    way = course(tuple(size // scale for size in SIZES), DELTA // scale, FILL // scale)
    packets = Packets(way.rows, sources=KEYS, plain=True)
    steps.expect(2)
    before = load()
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        data = Path(scratch) / "data"
        steps.begin(f"Writing {packets.total:,} rows in {len(way.rows)} files")
        for _ in packets.write(data):
            pass
        job = Ours(
            data=str(data), scratch=f"{scratch}/run", files=1,
            window=2 * len(way.rows) * packets.seconds_per_file,
        )  # fmt: skip
        steps.begin(f"{job}, the open state grows to {max(way.measured):,} rows")
        outcome = run_job(job)
    epochs = outcome.answer.epochs
    stages = [_stage(size, [epochs[at] for at in way.measured[size]]) for size in way.measured]
    growth = stages[-1]["median_ms"] / stages[0]["median_ms"]
    figures: dict[str, Any] = {
        "quick": quick,
        "growth": round(growth, 3),
        "mean_growth": round(stages[-1]["mean_ms"] / stages[0]["mean_ms"], 3),
        "fastest_growth": round(stages[-1]["least_ms"] / stages[0]["least_ms"], 3),
        "delta_rows": DELTA // scale,
        "stages": stages,
        "peak_rss_mb": outcome.peak.rss_mb,
        "peak_pss_mb": outcome.peak.pss_mb,
        "run": describe(outcome),
    }
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    bars = (Bar("growth", figures["growth"], "<=", 1.3),)
    right = [epoch.rows for epoch in epochs] == list(way.rows)
    return Result("state-growth", figures, bars, NOTES, right, circumstances)


def _stage(size: int, epochs: list[EpochTime]) -> dict[str, float]:
    times = spread([epoch.ms for epoch in epochs])
    return {
        "state_rows": size,
        "state_rows_at_end": epochs[-1].state_rows,
        "median_ms": times.median,
        "mean_ms": round(fmean(times.values), 1),
        "p90_ms": percentile(times.values, 0.9),
        "least_ms": times.least,
        "most_ms": times.most,
        "epochs": len(epochs),
    }
