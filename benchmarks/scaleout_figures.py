"""StreamCloud's Figs 7a to 7e and 10 in one drawing: our runs, the model, and what the paper states."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS = ("#9fb8ad", "#d9a441", "#c8702a", "#1f6f8b")
PAPER = "#222222"
TITLES = {
    "fig7a": ("map", "Fig 7a: map (filter is the same)"),
    "fig7b": ("join", "Fig 7b: equi-join"),
    "fig7c": ("aggregate", "Fig 7c: aggregate"),
    "fig7d": ("product", "Fig 7d: Cartesian product"),
    "fig7e": ("fixed", "Fig 7e: product, windows of rows"),
}


def draw_scaleout(found: dict[str, Any]) -> plt.Figure:
    """Load against throughput on the left of each pair, efficiency by sites on the right."""
    figure, grid = plt.subplots(3, 4, figsize=(15, 10))
    places = grid.reshape(-1, 2)
    for (curve, shares), (name, (operator, title)) in zip(places[:5], TITLES.items(), strict=True):
        _curves(curve, found[name][operator], title)
        _shares(shares, found[name])
    _hosts(places[5][0], found["fig10"]["hosts"], "Fig 10: equi-join on hosts of 4 cores")
    _hosts(places[5][1], found["fig10"]["simulated"], "Fig 10: the same in the model")
    return figure


def _curves(axes: Axes, found: dict[str, Any], title: str) -> None:
    for colour, (sites, points) in zip(COLOURS, found["sites"].items(), strict=False):
        loads = [point["load"] for point in points]
        done = [point["throughput"] for point in points]
        axes.plot(loads, done, "o-", markersize=3, color=colour, label=f"{sites} sites")
    axes.set_xlabel("rows/s that come (emulated)")
    axes.set_ylabel(f"{found['unit']}/s")
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=7)


def _shares(axes: Axes, found: dict[str, Any]) -> None:
    for colour, name in zip(("#1f6f8b", "#c8702a"), [*found], strict=False):
        if name == "paper":
            continue
        shares = {int(sites): share for sites, share in found[name]["efficiency"].items()}
        axes.plot([*shares], [*shares.values()], "o-", markersize=3, color=colour, label=name)
    paper = found["paper"]
    if "most" in paper:
        each = [most / sites for sites, most in zip(paper["sites"], paper["most"], strict=True)]
        shown = [one / each[0] for one in each]
        axes.plot(paper["sites"], shown, "x--", color=PAPER, label="paper, against its first")
    axes.axvline(8, color="grey", linewidth=0.8, linestyle=":")
    axes.axhline(1, color="grey", linewidth=0.8, linestyle="--")
    axes.set_xscale("log", base=2)
    axes.set_ylim(0, 1.3)
    axes.set_xlabel("sites; beyond the dotted line in the model")
    axes.set_ylabel("throughput / linear")
    axes.legend(frameon=False, fontsize=7, loc="lower left")


def _hosts(axes: Axes, found: dict[str, Any], title: str) -> None:
    for colour, (hosts, rates) in zip(COLOURS[::-1], found.items(), strict=False):
        sites = [int(each) for each in rates]
        axes.plot(
            sites, [*rates.values()], "o-", markersize=3, color=colour, label=f"{hosts} hosts"
        )
    axes.axvline(4, color="grey", linewidth=0.8, linestyle=":")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("sites on each host")
    axes.set_ylabel("pairs/s")
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=7)
