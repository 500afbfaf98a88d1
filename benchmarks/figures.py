"""Draws the figures of the documents from the results of the benchmarks.

Reads `benchmarks/results/<benchmark>.json`; a benchmark without a result is run first, which takes
minutes. `make figures` calls this.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from flux_figures import draw_flux
from plan_figures import draw_plans
from scaleout_figures import draw_scaleout
from spill_figures import draw_spill

HERE = Path(__file__).parent
RESULTS = HERE / "results"
FIGURES = HERE.parent / "docs" / "figures"
OURS, SPARK = "#1f6f8b", "#c8702a"


def result(benchmark: str) -> dict[str, Any]:
    """The stored result of a benchmark; measured now if there is none."""
    path = RESULTS / f"{benchmark}.json"
    if not path.exists():
        print(f"{path} is missing: running the benchmark, this takes minutes", file=sys.stderr)
        room = ["anabranch", "simulate"] if benchmark == "flux" else ["anabranch.bench"]
        command = [sys.executable, "-m", *room, benchmark, "--save", str(RESULTS)]
        subprocess.run(command, check=True)
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


TITLES = {
    "aggregate": "Windowed aggregate, 200,000 × 8 groups, 60 s windows",
    "join": "Two streams joined, 400,000 keys, at most 60 s apart",
    "multijoin": "Three streams joined, 2,000,000 keys, at most 60 s apart",
}


def draw_rates(found: dict[str, Any]) -> plt.Figure:
    """Rates of both sides at each number of files an epoch; the whiskers are the extremes."""
    figure, axes = plt.subplots(figsize=(6, 3.4))
    for shift, side, name, colour in (
        (-0.2, "ours", "Anabranch", OURS),
        (0.2, "spark", "Spark", SPARK),
    ):
        for place, values in enumerate(found["spread"][side].values()):
            middle = values["median"]
            reach = [[middle - values["least"]], [values["most"] - middle]]
            label = name if place == 0 else None
            axes.bar(place + shift, middle / 1e6, 0.38, color=colour, label=label)
            axes.errorbar(
                place + shift, middle / 1e6, [[x / 1e6 for x in end] for end in reach],
                color="black", linewidth=1, capsize=3,
            )  # fmt: skip
            axes.annotate(
                f"{middle / 1e6:.2f}", (place + shift, max(values["most"], middle) / 1e6),
                xytext=(0, 4), textcoords="offset points", ha="center", fontsize=8,
            )  # fmt: skip
    axes.margins(y=0.12)
    steps = list(found["spread"]["ours"])
    rows = found.get("rows_per_epoch", 1_000_000) / 1e6
    axes.set_xticks(range(len(steps)), [f"{each} × {rows:g}M rows" for each in steps])
    axes.set_xlabel("files of each stream an epoch")
    axes.set_ylabel("million rows/s")
    axes.set_title(TITLES[found["benchmark"]], fontsize=10)
    axes.legend(frameon=False)
    return figure


def draw_growth(found: dict[str, Any]) -> plt.Figure:
    """Epoch time at a fixed delta over the size of the state."""
    figure, axes = plt.subplots(figsize=(6, 3.4))
    run, stages = found["run"], found["stages"]
    size = 0
    delta: list[tuple[float, float]] = []
    for rows, milliseconds in zip(run["epoch_rows"], run["epoch_ms"], strict=True):
        if rows == found["delta_rows"] and size >= stages[0]["state_rows"]:
            delta.append((size / 1e6, milliseconds))
        size += rows
    sizes = [stage["state_rows"] / 1e6 for stage in stages]
    axes.scatter(*zip(*delta, strict=True), s=8, color=OURS, alpha=0.4, label="one epoch")
    axes.plot(
        sizes,
        [stage["median_ms"] for stage in stages],
        "o-", color=OURS, label="median",
    )  # fmt: skip
    limit = 2 * stages[0]["median_ms"]
    axes.axhline(limit, color="grey", linewidth=1, linestyle="--")
    axes.annotate("twice the first", (1, limit), xytext=(0, 3), textcoords="offset points")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.2 * max(limit, *(milliseconds for _, milliseconds in delta)))
    axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
    axes.set_xlabel("open groups, millions")
    axes.set_ylabel("epoch time, ms")
    axes.set_title(f"Epochs of {found['delta_rows']:,} rows while the state grows", fontsize=10)
    axes.legend(frameon=False, loc="lower right")
    return figure


def draw_latency(found: dict[str, Any]) -> plt.Figure:
    """The share of small epochs that are done within a time."""
    figure, axes = plt.subplots(figsize=(6, 3.4))
    for side, name, colour in (("ours", "Anabranch", OURS), ("spark", "Spark", SPARK)):
        times = sorted(found[side]["epoch_ms"])
        shares = [(place + 1) / len(times) for place in range(len(times))]
        axes.step(times, shares, where="post", color=colour, label=name)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1)
    axes.set_xlabel("epoch time, ms")
    axes.set_ylabel("share of epochs done")
    axes.set_title(f"Epochs of {found['rows_per_epoch']:,} rows", fontsize=10)
    axes.legend(frameon=False)
    return figure


WAYS = {
    "naive": ("#c8702a", "naive"),
    "partial": ("#d9a441", "partial aggregation"),
    "suboptimal": ("#6c8ebf", "suboptimal set"),
    "optimal": ("#1f6f8b", "optimal set"),
}
EXPERIMENTS = {
    "simple": ("Suspicious flows", 8, 9),
    "conflict": ("Subnet statistics and jitter", 10, 11),
    "complex": ("flows, heavy_flows, flow_pairs", 13, 14),
}


def draw_partitioning(found: dict[str, Any]) -> plt.Figure:
    """Time and rows at the busiest site over the number of hosts, an experiment in each row."""
    figure, grid = plt.subplots(3, 2, figsize=(8, 8.4))
    for line, (name, (title, cpu, network)) in zip(grid, EXPERIMENTS.items(), strict=True):
        for axes, key, scale, label, number in (
            (line[0], "busy_ms", 1, "busy, ms an epoch", cpu),
            (line[1], "bytes", 1e6, "received, MB an epoch", network),
        ):
            for way, (colour, shown) in WAYS.items():
                points = found[name].get(way)
                if points:
                    axes.plot(
                        [point["hosts"] for point in points],
                        [point[key] / scale for point in points],
                        "o-", color=colour, label=shown,
                    )  # fmt: skip
            axes.set_ylim(bottom=0)
            axes.set_xticks([1, 2, 3, 4])
            axes.set_ylabel(label)
            axes.set_title(f"{title} (as the paper's Fig {number})", fontsize=9)
        line[1].legend(frameon=False, fontsize=8)
    for axes in grid[-1]:
        axes.set_xlabel("hosts of two partitions")
    return figure


def draw_strategies(found: dict[str, Any]) -> plt.Figure:
    """Rates of the three strategies, and where the time of the cores goes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
    names = ["subquery", "query", "operator"]
    for place, name in enumerate(names):
        values = found[name]["spread"]
        middle = values["median"]
        reach = [[(middle - values["least"]) / 1e6], [(values["most"] - middle) / 1e6]]
        left.bar(place, middle / 1e6, 0.6, color=OURS)
        left.errorbar(place, middle / 1e6, reach, color="black", linewidth=1, capsize=3)
        below = 0.0
        for share, colour in (
            ("work_share", OURS),
            ("exchange_share", SPARK),
            ("idle_share", "#cccccc"),
        ):
            label = share.removesuffix("_share") if place == 0 else None
            right.bar(place, found[name][share], 0.6, bottom=below, color=colour, label=label)
            below += found[name][share]
    left.set_ylabel("million rows/s")
    right.set_ylabel("share of the cores' time")
    for axes in (left, right):
        axes.set_xticks(range(len(names)), names)
    right.set_ylim(0, 1.2)
    right.legend(frameon=False, fontsize=8, ncols=3, loc="upper center")
    left.set_title("Rate (as StreamCloud's Fig 7f)", fontsize=9)
    right.set_title("Costs (as its Fig 9)", fontsize=9)
    return figure


def draw_theta(found: dict[str, Any]) -> plt.Figure:
    """Rates of joins in grids, and what each site has to do."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4))
    for window, colour in (("time", OURS), ("rows", SPARK)):
        sites = [int(number) for number in found[window]]
        points = list(found[window].values())
        label = f"window of {window}"
        rates = [point["pairs_per_s"] / 1e6 for point in points]
        left.plot(sites, rates, "o-", color=colour, label=label)
        share = [point["pairs_per_row"] / points[0]["pairs_per_row"] for point in points]
        right.plot(sites, share, "o-", color=colour, label=label)
    work = [point["work_per_site"] for point in found["rows"].values()]
    right.plot(sites, work, "o--", color="#888888", label="work of the busiest site")
    left.set_ylabel("million pairs compared/s")
    right.set_ylabel("against a single site")
    left.set_title("Rate (as StreamCloud's Fig 7d)", fontsize=9)
    right.set_title("Pairs for each row a site receives (as its Fig 7e)", fontsize=9)
    for axes in (left, right):
        axes.set_xlabel("sites")
        axes.set_ylim(bottom=0)
        axes.set_xticks(sites)
    right.legend(frameon=False, fontsize=8)
    return figure


MODES = {"static": SPARK, "adaptive": OURS, "ideal": "#9fb8ad"}
TROUBLES = {
    "one_slow": "one slow",
    "two_slow": "two slow",
    "four_slow": "four slow",
    "skew_80_20": "80/20",
    "drift": "drifting\nZipf",
}


def _quick(found: dict[str, Any]) -> str:
    return " (quick run: not results)" if found["quick"] else ""


def draw_balance(found: dict[str, Any]) -> plt.Figure:
    """Rates of static, adaptive and ideal maps, and the rate by epoch when one site becomes slow."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for shift, (mode, colour) in zip((-0.27, 0, 0.27), MODES.items(), strict=True):
        rates = [found[name][mode]["rows_per_s"] / 1e3 for name in TROUBLES]
        places = [place + shift for place in range(len(rates))]
        left.bar(places, rates, 0.25, color=colour, label=mode)
        times = found["one_slow"][mode]["epoch_ms"][1:]
        line = [found["rows_per_epoch"] / milliseconds for milliseconds in times]
        right.plot(range(1, len(line) + 1), line, "o-", markersize=3, color=colour, label=mode)
    right.axvline(found["slow_from"] - 0.5, color="grey", linewidth=1, linestyle="--")
    left.set_xticks(range(len(TROUBLES)), TROUBLES.values(), fontsize=8)
    left.set_ylabel("thousand rows/s")
    right.set_ylabel("thousand rows/s")
    right.set_xlabel("epoch; one site is slow from the dashed line on")
    right.set_ylim(bottom=0)
    left.set_ylim(
        top=1.25 * max(found[name][m]["rows_per_s"] / 1e3 for name in TROUBLES for m in MODES)
    )
    left.legend(frameon=False, fontsize=8, ncols=3, loc="upper center")
    left.set_title(
        f"{found['sites']} sites, 45 µs a row, {found['rows_per_epoch']:,} rows an epoch",
        fontsize=9,
    )
    right.set_title(f"One of them slowed 2.3 times{_quick(found)}", fontsize=9)
    return figure


def draw_skew(found: dict[str, Any]) -> plt.Figure:
    """Rates with skewed keys on real cores, and how uneven the sites were; whiskers are the extremes."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    names = {"w4": "W4", "w4_raw": "W4 raw", "join": "join"}
    cases = [(work, sites) for work in names for sites in found[work]]
    for shift, mode in ((-0.2, "static"), (0.2, "adaptive")):
        for place, (work, sites) in enumerate(cases):
            seen, label = found[work][sites][mode], mode if place == 0 else None
            rate = seen["rows_per_s"]
            reach = [[rate["median"] - rate["least"]], [rate["most"] - rate["median"]]]
            left.bar(place + shift, rate["median"] / 1e6, 0.38, color=MODES[mode], label=label)
            left.errorbar(
                place + shift, rate["median"] / 1e6, [[x / 1e6 for x in end] for end in reach],
                color="black", linewidth=1, capsize=3,
            )  # fmt: skip
            right.bar(place + shift, seen["busiest_busy"], 0.38, color=MODES[mode], label=label)
    right.axhline(1, color="grey", linewidth=1, linestyle="--")
    left.set_ylabel("million rows/s")
    right.set_ylabel("busiest site's time / mean")
    for axes in (left, right):
        ticks = [f"{names[work]}\n{sites} sites" for work, sites in cases]
        axes.set_xticks(range(len(cases)), ticks, fontsize=7)
    left.margins(y=0.15)
    left.legend(frameon=False, fontsize=8)
    left.set_title("Skewed keys, two cores; raw: without sub-aggregates", fontsize=9)
    right.set_title(f"How uneven the sites are{_quick(found)}", fontsize=9)
    return figure


def main() -> None:
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, benchmark, draw in (
        ("aggregate-rates", "aggregate", draw_rates),
        ("state-growth", "state-growth", draw_growth),
        ("latency", "latency", draw_latency),
        ("join-rates", "join", draw_rates),
        ("multijoin-rates", "multijoin", draw_rates),
        ("partitioning", "partitioning", draw_partitioning),
        ("strategies", "strategies", draw_strategies),
        ("theta", "theta", draw_theta),
        ("flux", "flux", draw_flux),
        ("balance", "balance", draw_balance),
        ("skew", "skew", draw_skew),
        ("spill", "spill", draw_spill),
        ("plans", "plans", draw_plans),
        ("scaleout", "scaleout", draw_scaleout),
    ):
        figure = draw(result(benchmark))
        figure.tight_layout()
        # Without the date and the version of matplotlib, so that equal results give equal files
        figure.savefig(FIGURES / f"{name}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)
        print(FIGURES / f"{name}.png")


if __name__ == "__main__":
    main()
