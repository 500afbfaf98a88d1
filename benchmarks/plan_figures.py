"""The figures of the paper on plan-aware balancing in one drawing: our runs beside what the paper states."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS = {
    "none": "#999999", "balancing": "#1f6f8b", "reoptimising": "#c8702a", "both": "#2c7a4b",
    "parallel-track": "#1f6f8b", "moving-state": "#c8702a", "auto": "#2c7a4b",
}  # fmt: skip
PAPER = "#222222"
WORDS = {
    "none": "no adaptation", "balancing": "balancing", "reoptimising": "re-optimising", "both": "both",
    "parallel-track": "parallel track (PTLB)", "moving-state": "moving state (MSLB)",
    "auto": "chosen by cost",
}  # fmt: skip


def draw_plans(found: dict[str, Any]) -> plt.Figure:
    """Figs 7 and 8, and 9 to 13 where they were measured."""
    tracks = found["fig9"].get("available", True)
    figure, grid = plt.subplots(
        3 if tracks else 1, 3, figsize=(14, 11 if tracks else 4), squeeze=False
    )
    _over_time(grid[0][0], found["fig7"], "Fig 7: results so far", "thousand results")
    _ratios(grid[0][1], found["fig7"])
    _over_time(grid[0][2], found["fig8"], "Fig 8: rows that wait or are kept", "thousand rows")
    if tracks:
        for axes, name in zip(grid[1], ("fig9", "fig10", "fig11"), strict=True):
            _by_window(axes, found[name], f"Fig {name[3:]}: {found[name]['rate']:g} rows/s")
        _lengths(grid[2][0], found["fig12"])
        _over_time(
            grid[2][1], found["fig13"], "Fig 13: state large, rates fallen", "thousand results"
        )
        grid[2][2].axis("off")
    return figure


def _over_time(axes: Axes, found: dict[str, Any], title: str, unit: str) -> None:
    for name, values in found["over_time"].items():
        shown = [value / 1000 for value in values]
        axes.plot(found["seconds"], shown, color=COLOURS[name], label=WORDS[name])
    axes.axvline(30, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("seconds (emulated); rates fall at 30")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=8)


def _ratios(axes: Axes, found: dict[str, Any]) -> None:
    names = ("balancing", "reoptimising", "both")
    for place, name in enumerate(names):
        ours, paper = found[name], found["paper"][name]
        axes.bar(place - 0.2, ours, 0.38, color=COLOURS[name], label="ours" if not place else None)
        axes.bar(
            place + 0.2, paper, 0.38, fill=False, edgecolor=PAPER, hatch="//",
            label=None if place else "paper, about",
        )  # fmt: skip
        for shift, value in ((-0.2, ours), (0.2, paper)):
            axes.annotate(
                f"{value:.1f}", (place + shift, value), (0, 2), textcoords="offset points",
                ha="center", fontsize=8,
            )  # fmt: skip
    axes.axhline(1, color="grey", linewidth=1, linestyle="--")
    axes.set_xticks(range(3), [WORDS[name] for name in names], fontsize=8)
    axes.set_ylabel("results / those without adaptation")
    axes.set_title(f"Fig 7: after {found['compared_at_seconds']:g} s", fontsize=9)
    axes.margins(y=0.25)
    axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)


def _by_window(axes: Axes, found: dict[str, Any], title: str) -> None:
    windows = [int(window) for window in found["ratios"]]
    for shift, name in ((-0.27, "parallel-track"), (0.0, "moving-state"), (0.27, "auto")):
        values = [cell[name] for cell in found["ratios"].values()]
        places = [place + shift for place in range(len(windows))]
        axes.bar(places, values, 0.26, color=COLOURS[name], label=WORDS[name])
    for window, pair in found["paper"].get("ratios", {}).items():
        place = windows.index(int(window))
        for shift, name in ((-0.27, "parallel-track"), (0.0, "moving-state")):
            label = "paper, about" if name == "parallel-track" else None
            axes.plot(place + shift, pair[name], "_", color=PAPER, markersize=16, label=label)
    axes.axhline(1, color="grey", linewidth=1, linestyle="--")
    axes.set_xticks(range(len(windows)), [f"{window} s" for window in windows])
    axes.set_xlabel("window")
    axes.set_ylabel("results / those without adaptation")
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=7)


def _lengths(axes: Axes, found: dict[str, Any]) -> None:
    windows = [int(window) for window in found["seconds_by_window"]]
    for name in ("parallel-track", "moving-state"):
        values = [cell[name] for cell in found["seconds_by_window"].values()]
        axes.plot(windows, values, "o-", color=COLOURS[name], label=WORDS[name])
    axes.plot(
        windows, [2 * one for one in windows], "--", color=PAPER, label="paper: twice the window"
    )
    axes.set_xlabel("window, s")
    axes.set_ylabel("seconds of the streams")
    axes.set_title("Fig 12: how long a transition takes, 40 rows/s", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
