"""The figures of the paper on state adaptation in one drawing: our runs as lines, one figure in each."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

COLOURS = ("#1f6f8b", "#c8702a", "#6c8ebf", "#d9a441", "#999999")
WORDS = {
    "poor": "least productive first",
    "rich": "most productive first",
    "none": "nothing moves",
    "pushing": "nothing moves",
    "moving": "memory is evened out",
}


def draw_spill(found: dict[str, Any]) -> plt.Figure:
    """Figs 9, 10, 11, 12, 16, 17, 20 and 21."""
    figure, grid = plt.subplots(4, 2, figsize=(10, 13))
    titles = {
        "fig9": "Fig 9: share of the state pushed at once",
        "fig11": "Fig 11: join ratios 4, 2 and 1",
        "fig12": "Fig 12: all join ratios 3",
        "fig17": "Fig 17: memory for all if partitions move",
        "fig20": "Fig 20: two thirds of the partitions on one of three sites",
        "fig21": "Fig 21: join ratio 4 on one site, 1 on the others",
    }
    places = [grid[0][0], grid[1][0], grid[1][1], grid[2][1], grid[3][0], grid[3][1]]
    for axes, (name, title) in zip(places, titles.items(), strict=True):
        _results(axes, found[name]["over_time"], title)
    _memory(grid[0][1], found["fig10"])
    _swing(grid[2][0], found["fig16"]["memory"])
    return figure


def _results(axes: Axes, lines: dict[str, list[int]], title: str) -> None:
    for colour, (name, summed) in zip(COLOURS, lines.items(), strict=False):
        shown = [value / 1e6 for value in summed]
        axes.plot(range(1, len(shown) + 1), shown, color=colour, label=WORDS.get(name, name))
    axes.set_xlabel("minutes of the paper")
    axes.set_ylabel("million results so far")
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=8)


def _memory(axes: Axes, found: dict[str, Any]) -> None:
    for colour, (name, kept) in zip(COLOURS, found["memory"].items(), strict=False):
        axes.plot(range(1, len(kept) + 1), [size / 1e6 for size in kept], color=colour, label=name)
    most = (found["limit"] + found["epoch"]) / 1e6
    axes.axhline(most, color="black", linewidth=1, linestyle=":", label="limit and an epoch")
    axes.set_xlabel("minutes of the paper")
    axes.set_ylabel("MB in memory")
    axes.set_title("Fig 10: memory by share pushed at once", fontsize=9)
    axes.legend(frameon=False, fontsize=8)


def _swing(axes: Axes, found: dict[str, list[list[float]]]) -> None:
    for colour, (name, kept) in zip(COLOURS, found.items(), strict=False):
        for site, style in ((0, "-"), (1, "--")):
            minutes = [(epoch + 1) / 4 for epoch in range(len(kept))]
            sizes = [sites[site] / 1e6 for sites in kept]
            label = f"{WORDS.get(name, name)}, site {site}"
            axes.plot(minutes, sizes, style, color=colour, label=label)
    axes.set_xlabel("minutes of the paper")
    axes.set_ylabel("MB in memory")
    axes.set_title("Fig 16: sites that get ten times the rows in turn", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
