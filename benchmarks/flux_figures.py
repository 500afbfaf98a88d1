"""The figures of Flux in one drawing: our simulation as lines, what the paper states as marks and notes."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

STATIC, FLUX, OURS, PAPER = "#999999", "#c8702a", "#1f6f8b", "#b03060"
LINES = (
    ("static", STATIC, "static"),
    ("flux", FLUX, "Flux's policy"),
    ("self_tuning", OURS, "tuned by itself"),
)


def draw_flux(found: dict[str, Any]) -> plt.Figure:
    """Figs 3, 6, 7, 8, 9 and 10."""
    figure, grid = plt.subplots(3, 2, figsize=(10, 10.5))
    draw_fig3(grid[0][0], found["fig3"])
    draw_fig6(grid[0][1], found["fig6"])
    draw_fig7(grid[1][0], found["fig7"])
    draw_fig8(grid[1][1], found["fig8"])
    draw_fig9(grid[2][0], found["fig9"])
    draw_fig10(grid[2][1], found["fig10"])
    return figure


def draw_fig3(axes: Axes, found: dict[str, Any]) -> None:
    sizes = found["buffer_kb"]
    for name, colour, label in (
        ("flux", OURS, "skew buffer (Flux)"),
        ("exchange", STATIC, "divided (Exchange)"),
    ):
        rates = [found["no_buffer"], *found[name]]
        axes.plot([0, *sizes], [rate / 1e5 for rate in rates], "o-", color=colour, label=label)
    axes.axhline(
        found["unloaded"] / 1e5, color="black", linewidth=1, linestyle=":", label="unloaded"
    )
    _mark(axes, 0, found["unloaded"] / 2e5, "paper: about half without a buffer", dy=-14)
    axes.set_xlabel("space of each producer, KB")
    _finish(axes, "Fig 3: a load that goes round", "100,000 rows/s", "lower right")


def draw_fig6(axes: Axes, found: dict[str, Any]) -> None:
    for name, colour, label in LINES:
        axes.plot([rate / 1e5 for rate in found[name]], color=colour, label=label)
    axes.axhline(
        found["best"] / 1e5, color="black", linewidth=1, linestyle=":", label="best possible"
    )
    stated = found["paper"]
    axes.axvline(stated["effect_at"], color=PAPER, linewidth=1, linestyle="--")
    axes.axvline(stated["steady_at"], color=PAPER, linewidth=1, linestyle="--")
    axes.annotate(
        "paper: effect felt at 5 s,\nsteady at 14 s",
        (stated["steady_at"] + 0.4, 0.4),
        color=PAPER,
        fontsize=8,
    )
    axes.set_xlabel("seconds; one site loaded from 1 s on")
    _finish(axes, "Fig 6: one loaded site", "100,000 rows/s", (0.62, 0.5))


def draw_fig7(axes: Axes, found: dict[str, Any]) -> None:
    for name, colour, label in LINES:
        axes.plot(
            found["loaded"], [rate / 1e5 for rate in found[name]], "o-", color=colour, label=label
        )
    axes.plot(
        found["loaded"], [rate / 1e5 for rate in found["linear"]], ":", color=PAPER,
        label="linear profile (as in the paper)", zorder=5,
    )  # fmt: skip
    axes.set_xlabel("loaded sites of 32")
    _finish(axes, "Fig 7: graceful degradation", "100,000 rows/s", "upper right")


def draw_fig8(axes: Axes, found: dict[str, Any]) -> None:
    for case, shade in (("unloaded", 1.0), ("loaded", 0.45)):
        runs, name = found[case], "8 sites loaded" if case == "loaded" else "none loaded"
        axes.plot(
            found["least_ms"], [rate / 1e4 for rate in runs["fixed_mean"]], "o-", color=FLUX,
            alpha=shade, label=f"Flux's policy, {name}",
        )  # fmt: skip
        for way, colour, label in (
            ("static", STATIC, "static"),
            ("self_tuning", OURS, "tuned by itself"),
        ):
            axes.axhline(
                runs[f"{way}_mean"] / 1e4, color=colour, alpha=shade, linewidth=1.5,
                linestyle="-" if way == "self_tuning" else "--", label=f"{label}, {name}",
            )  # fmt: skip
        stated = found["paper"][case]["crosses_static_unloaded_at_ms"]
        axes.plot(
            [stated], [found["unloaded"]["static_mean"] / 1e4], "x", color=PAPER, markersize=9, zorder=5,
            markeredgewidth=2, label="paper: crosses here (150, 250 ms)" if case == "unloaded" else None,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_xticks(found["least_ms"], [f"{least:g}" for least in found["least_ms"]], fontsize=8)
    axes.minorticks_off()
    axes.set_xlabel("δ_min, ms")
    _finish(
        axes, f"Fig 8: 80/20 rows (mean of {found['seeds']} seeds)", "10,000 rows/s", (0.46, 0.02)
    )


def draw_fig9(axes: Axes, found: dict[str, Any]) -> None:
    for name, colour, label in LINES:
        axes.plot([rate / 1e5 for rate in found[name]], color=colour, label=label)
    stated = found["paper"]
    _mark(axes, 60, stated["static_steady"] / 1e5, "paper: 1.6, static", dy=10)
    _mark(axes, stated["recovered_at"], stated["unloaded"] / 1e5, "paper: back at 37 s", dy=-14)
    axes.set_xlabel("seconds; memory of one site halved at 1 s")
    _finish(axes, "Fig 9: throughput short of memory", "100,000 rows/s", "center right")


def draw_fig10(axes: Axes, found: dict[str, Any]) -> None:
    for name, colour, label in LINES:
        points = [(second, late) for second, late in enumerate(found[name]) if late is not None]
        axes.plot(*zip(*points, strict=True), color=colour, label=label)
    stated = found["paper"]
    axes.set_yscale("log")
    _mark(axes, 60, stated["static_steady_us"], "paper: 2.4e5", dy=-24)
    _mark(axes, stated["recovered_at"], stated["unloaded_us"], "paper: back to 45 at 37 s", dy=8)
    axes.set_xlabel("seconds; memory of one site halved at 1 s")
    axes.set_title("Fig 10: mean latency short of memory", fontsize=9)
    axes.set_ylabel("µs")
    axes.legend(frameon=False, fontsize=8, loc="center right")


def _mark(axes: Axes, x: float, y: float, text: str, dy: int = 8) -> None:
    axes.plot([x], [y], "x", color=PAPER, markersize=9, markeredgewidth=2, zorder=5)
    axes.annotate(text, (x, y), xytext=(6, dy), textcoords="offset points", color=PAPER, fontsize=8)


def _finish(axes: Axes, title: str, label: str, legend: str | tuple[float, float]) -> None:
    axes.set_ylim(bottom=0)
    axes.margins(y=0.1)
    axes.set_title(title, fontsize=9)
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=7.5, loc=legend)
