"""`anabranch simulate flux`: the experiments of the Flux paper, our values beside its own, and their bars."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from anabranch.observe.bars import Bar, within
from anabranch.observe.steps import Steps
from anabranch.simulate import load_figures, memory_figures
from anabranch.simulate.scale import FULL, QUICK

BASELINE = 6.9e5
"""Rows a second of the paper's unloaded cluster."""


def simulations(quick: bool) -> int:
    """How many simulations there will be, for showing how far it has got."""
    scale = QUICK if quick else FULL
    fig8 = 2 * scale.seeds * (2 + len(scale.least))
    return 1 + (1 + 2 * len(scale.buffers)) + 3 + 3 * len(scale.loaded) + fig8 + 3


def run_flux(seed: int, quick: bool, steps: Steps) -> dict[str, Any]:
    """All figures as plain values."""
    begun, scale = time.monotonic(), QUICK if quick else FULL
    baseline = load_figures.measure_baseline(seed, steps)
    unloaded = baseline["flux"]
    fig3 = load_figures.measure_fig3(seed, scale, unloaded, steps)
    fig6 = load_figures.measure_fig6(seed, unloaded, steps)
    fig7 = load_figures.measure_fig7(seed, scale, unloaded, steps)
    fig8 = load_figures.measure_fig8(seed, scale, steps)
    fig9, fig10 = memory_figures.measure_memory(seed, unloaded, steps)
    figures: dict[str, Any] = {
        "baseline_rows_per_s": baseline["exchange"],
        "baseline": {**baseline, "paper": BASELINE},
        "fig3": fig3, "fig6": fig6, "fig7": fig7, "fig8": fig8, "fig9": fig9, "fig10": fig10,
    }  # fmt: skip
    return {
        "benchmark": "flux", "seed": seed, "quick": quick, **figures,
        "bars": [bar.plain() for bar in judge(figures)],
        "seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip


def judge(figures: dict[str, Any]) -> list[Bar]:
    """The bars of all figures; those on adaptive runs are for the policy that tunes itself."""
    fig3, fig6, fig7, fig8 = (figures[name] for name in ("fig3", "fig6", "fig7", "fig8"))
    fig9, fig10 = figures["fig9"], figures["fig10"]
    unloaded = fig3["unloaded"]
    late = fig6["effect_at"] + 12
    static = np.array(
        [rate for count, rate in zip(fig7["loaded"], fig7["static"], strict=True) if count]
    )
    linear = np.abs(np.array(fig7["self_tuning"]) / np.array(fig7["linear"]) - 1)
    bars = [
        *within("baseline against the paper's", figures["baseline_rows_per_s"] / BASELINE, 0.95, 1.05),
        *within("fig 3: no buffer, of unloaded", fig3["no_buffer"] / unloaded, 0.45, 0.60),
        Bar("fig 3: least of flux over exchange", _least(fig3["flux"], fig3["exchange"]), ">=", 1.0),
        Bar("fig 3: flux at the largest, of unloaded", fig3["flux"][-1] / unloaded, ">=", 0.95),
        *within("fig 6: static, of unloaded", float(np.mean(fig6["static"][late:])) / unloaded, 0.4, 0.6),
        Bar(
            "fig 6: self-tuning from 12 s after the effect, least second of the best possible",
            min(fig6["self_tuning"][late:]) / fig6["best"], ">=", 0.95,
        ),
        Bar("fig 6: self-tuning, seconds to 95% of that", fig6["self_tuning_recovered_after"], "<=", 12),
        Bar("fig 7: self-tuning, most off the linear profile", float(linear.max()), "<=", 0.05),
        Bar("fig 7: static with load, highest over lowest", float(static.max() / static.min()), "<=", 1.05),
    ]  # fmt: skip
    for case in ("unloaded", "loaded"):
        runs, level = fig8[case], fig8["unloaded"]["static_mean"]
        ours, fixed = runs["self_tuning_mean"], runs["fixed_mean"]
        bars += [
            Bar(f"fig 8, {case}: least δ_min over static unloaded", fixed[0] / level, "<=", 1.0),
            Bar(f"fig 8, {case}: largest δ_min over static unloaded", fixed[-1] / level, ">=", 1.0),
            Bar(f"fig 8, {case}: self-tuning over the best δ_min", ours / max(fixed), ">=", 1.0),
        ]  # fmt: skip
    return [
        *bars,
        Bar("fig 9: seconds until throughput is back", fig9["self_tuning_recovered_at"] - 1, "<=", 40),
        Bar("fig 10: seconds until latency is back", fig10["self_tuning_recovered_at"] - 1, "<=", 40),
    ]  # fmt: skip


def _least(ours: list[float], theirs: list[float]) -> float:
    return min(our / their for our, their in zip(ours, theirs, strict=True))
