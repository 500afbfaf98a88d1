"""A benchmark's result for people: its figures, the bars they are held against, how far to trust them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from anabranch.bench.driver import CASES
from anabranch.bench.kafka import kafka_lines
from anabranch.bench.nexmark import nexmark_lines
from anabranch.bench.plans import plans_lines
from anabranch.bench.reorder import reorder_lines
from anabranch.bench.result import Result
from anabranch.bench.scale import scale_lines
from anabranch.bench.scaleout import scaleout_lines
from anabranch.bench.speed_report import SPEED_LINES
from anabranch.bench.store import store_lines


def show(result: Result, console: Console) -> None:
    """Prints the result as tables."""
    figures = result.figures
    size = ", quick: a tenth of the data, figures mean little" if figures["quick"] else ""
    console.print(f"[bold]bench {result.benchmark}[/]{size}", highlight=False, soft_wrap=True)
    table = Table()
    for heading in ("bar", "value", "wanted", ""):
        table.add_column(heading, justify="left" if heading == "bar" else "right")
    for bar in result.bars:
        said = "[green]met[/]" if bar.met else "[red]not met[/]"
        table.add_row(bar.name, f"{bar.value:,g}", f"{bar.relation} {bar.limit:g}", said)
    if "equal" in figures:
        table.add_row(
            "equal", str(figures["equal"]).lower(), "true",
            "[green]met[/]" if figures["equal"] else "[red]not met[/]",
        )  # fmt: skip
    console.print(table)
    for line in LINES[result.benchmark](figures):
        console.print("  " + line, highlight=False, soft_wrap=True)
    load = result.circumstances["loadavg"]
    console.print(
        f"  load of the machine ({result.circumstances['cores']} cores): "
        f"{load['before'][0]} before, {load['after'][0]} after",
        highlight=False,
    )
    if not result.sound:
        console.print("  [red]The results are wrong: the figures mean nothing.[/]")


def _aggregate(figures: dict[str, Any]) -> Iterator[str]:
    yield from _sides(figures)
    yield f"Anabranch from a DataFrame: {_rate(figures['spread']['dataframe'])}"
    yield from _ratios(figures, ("ratio", "best_ratio", "dataframe_ratio"))
    windows = figures["comparison"]["windows"]
    yield (
        f"compared row for row: windows {windows[0]} to {windows[-1]}, "
        f"{figures['comparison']['rows']:,} result rows against DuckDB's"
        if windows
        else "no window was closed on both sides: nothing was compared"
    )
    yield (
        f"{_memory(figures)}; with ten times the groups "
        f"{figures['ten_times_groups']['peak_rss_mb']:,.0f} MB"
    )


def _join(figures: dict[str, Any]) -> Iterator[str]:
    yield from _sides(figures)
    yield from _ratios(figures, ("ratio", "best_ratio"))
    compared = figures["comparison"]
    yield (
        f"compared with DuckDB by number and checksum: {compared['rows']:,} result rows in "
        f"{compared['runs_against_duckdb']} runs, {compared['different']} of them different"
    )
    yield _memory(figures)
    growth = figures.get("state_growth", {})
    for stage in growth.get("stages", ()):
        yield (
            f"rows kept for {stage['bound_seconds']} s, {stage['state_rows']:,} of them: "
            f"{growth['rows_per_epoch']:,} rows take {stage['median_ms']:,.0f} ms "
            f"({stage['least_ms']:,.0f} to {stage['most_ms']:,.0f})"
        )


def _hotjoin(figures: dict[str, Any]) -> Iterator[str]:
    for rows, found in figures["epochs"].items():
        seconds = found["seconds"]
        yield (
            f"epochs of {int(rows):,} rows: {found['ns_per_row']:,} ns a row, {seconds['median']:.1f} s "
            f"({seconds['least']:.1f} to {seconds['most']:.1f}), {found['pairs']:,} pairs looked at"
        )
    yield (
        f"{figures['results']:,} results, equal to DuckDB's by number and checksum: "
        f"{str(figures['equal']).lower()}; DuckDB takes {figures['duckdb_seconds']:.1f} s"
    )


def _sides(figures: dict[str, Any]) -> Iterator[str]:
    for side, name in (("ours", "Anabranch"), ("spark", "Spark    ")):
        for each, values in figures["spread"][side].items():
            files = "1 file " if each == 1 else f"{each} files"
            yield f"{name} {files} an epoch: {_rate(values)}"


def _ratios(figures: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        ends = figures["spread"][name]
        yield (
            f"{name} by single runs: {ends['least']:g} to {ends['most']:g}, "
            f"{ends['best_runs']:g} between the best of each side"
        )
    chosen = figures["spark_configuration"]
    yield f"Spark's best: {chosen['store']} state store, {chosen['partitions']} shuffle partitions"


def _memory(figures: dict[str, Any]) -> str:
    return (
        f"peak memory of all processes: {figures['peak_rss_mb']:,.0f} MB, "
        f"Spark {figures['spark_peak_rss_mb']:,.0f} MB"
    )


def _state_growth(figures: dict[str, Any]) -> Iterator[str]:
    for stage in figures["stages"]:
        yield (
            f"{stage['state_rows']:>12,} open groups: {figures['delta_rows']:,} rows take "
            f"{stage['median_ms']:,.0f} ms (mean {stage['mean_ms']:,.0f}, p90 {stage['p90_ms']:,.0f}, "
            f"{stage['least_ms']:,.0f} to {stage['most_ms']:,.0f})"
        )
    yield f"growth of the fastest epochs, least hurt by other work: {figures['fastest_growth']:g}"
    yield f"peak memory of all processes: {figures['peak_rss_mb']:,.0f} MB"


def _partitioning(figures: dict[str, Any]) -> Iterator[str]:
    found = figures["analysis"]
    yield (
        f"{found['queries']} queries: read, sampled, {found['candidates']} sets compared and compiled in "
        f"{found['seconds']:.2f} s"
    )
    for name in ("simple", "conflict", "complex"):
        for way, points in figures[name].items():
            if isinstance(points, list):
                rows = ", ".join(f"{point['rows']:,}" for point in points)
                busy = ", ".join(f"{point['busy_ms']:,.0f}" for point in points)
                yield f"{name:8} {way:10} rows received {rows}; busy ms {busy}"


def _strategies(figures: dict[str, Any]) -> Iterator[str]:
    for name in ("subquery", "operator", "query"):
        found = figures[name]
        yield (
            f"{name:8} {_rate(found['spread'])}; work {found['work_share']:.0%}, exchange "
            f"{found['exchange_share']:.0%}, idle {found['idle_share']:.0%}; {found['levels']:g} "
            f"exchanges deep, {found['rows_received']:,.0f} rows received an epoch"
        )


def _sharing(figures: dict[str, Any]) -> Iterator[str]:
    for count, found in figures["queries"].items():
        yield f"{count:>2} queries: {_rate(found['spread'])}; {found['bytes'] / 1e6:,.1f} MB an epoch"


def _driver(figures: dict[str, Any]) -> Iterator[str]:
    for sites, found in figures["sites"].items():
        yield (
            f"{sites:>5} sites: {1000 * found['seconds']:,.0f} ms of the driver an epoch, at most "
            f"{1000 * found['seconds_most']:,.0f}; {found['manifest_bytes'] / 1e3:,.0f} kB of manifest, "
            f"{found['orders_bytes'] / 1e3:,.0f} kB of orders"
        )
    # Results of before have none of these
    for name in (name for name in CASES if name in figures):
        told = (f"{n} sites {1000 * one['cpu_seconds']:,.0f}" for n, one in figures[name].items())
        yield f"{name}: {', '.join(told)} ms of the driver's thread an epoch"
    long = figures["long"]
    early, late = (1000 * seconds for seconds in long["cpu_seconds"])
    yield (
        f"over {long['epochs']:,} epochs: {early:.1f} ms at first, {late:.1f} at the end; files "
        f"{long['files'][0]:,} and {long['files'][1]:,}"
    )


def _theta(figures: dict[str, Any]) -> Iterator[str]:
    for window in ("time", "rows"):
        for sites, found in figures[window].items():
            yield (
                f"window of {window}, {sites} sites: {found['pairs_per_s'] / 1e6:,.0f} M pairs/s "
                f"({found['spread']['least'] / 1e6:,.0f} to {found['spread']['most'] / 1e6:,.0f}), "
                f"{found['rows_per_s']:,} rows/s; busiest site {found['most_over_even']:.1%} of an even "
                f"share, {found['pairs_per_row']:,.0f} pairs for each row it receives"
            )


def _balance(figures: dict[str, Any]) -> Iterator[str]:
    for name in ("one_slow", "two_slow", "four_slow", "skew_80_20", "drift"):
        found = figures[name]
        rates = ", ".join(
            f"{mode} {found[mode]['rows_per_s']:,}" for mode in ("static", "adaptive", "ideal")
        )
        yield (
            f"{name:10} rows/s: {rates}; adaptive {found['adaptive_over_static']:.2f} times static (at "
            f"most {found['most_by_moving']:.2f}), {found['adaptive_over_ideal']:.1%} of ideal"
        )
    pairs = ", ".join(f"{cost:+.1%}" for cost in figures["idle"]["by_pairs"])
    yield f"nothing wrong, adaptive against static by pairs of runs: {pairs}"
    moves = figures["moves"]
    moving, steady = moves["moving"], moves["steady"]
    yield (
        f"{moves['partitions']:,} moves in turn: epochs with moves {moving['p50_ms']} ms, p99 "
        f"{moving['p99_ms']}; those between them {steady['p50_ms']}, p99 {steady['p99_ms']}"
    )


def _skew(figures: dict[str, Any]) -> Iterator[str]:
    for work in ("w4", "w4_raw", "join"):
        for sites, found in figures[work].items():
            static, adaptive = found["static"], found["adaptive"]
            yield (
                f"{work:6} {sites} sites: ratio {found['ratio']:.2f}; static {_rate(static['rows_per_s'])}, "
                f"adaptive {_rate(adaptive['rows_per_s'])}; busiest site's time "
                f"{static['busiest_busy']:.2f} of the mean before, {adaptive['busiest_busy']:.2f} after"
            )


def _rate(values: dict[str, Any]) -> str:
    runs = "once" if values["runs"] == 1 else f"{values['runs']} runs"
    return (
        f"{values['median'] / 1e6:.2f} M rows/s "
        f"({runs}, {values['least'] / 1e6:.2f} to {values['most'] / 1e6:.2f})"
    )


def _spill(figures: dict[str, Any]) -> Iterator[str]:
    for name in (key for key in figures if key.startswith("fig")):
        found = figures[name]
        plain = {key: value for key, value in found.items() if isinstance(value, int | float)}
        told = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in plain.items())
        yield f"{name}: {told}. The paper: {found['paper']}"
    rows, seconds = figures["cleanup"]["rows"], figures["cleanup"]["seconds"]
    told = " and ".join(
        f"{rows[first]:,} rows in {seconds[first]:g} s ({first} first)" for first in rows
    )
    yield f"clean-up of fig11: {told}. The paper: {figures['cleanup']['paper']}"


def _overflow(figures: dict[str, Any]) -> Iterator[str]:
    if "skipped" in figures:
        yield figures["skipped"]
        return
    for join in ("two_way", "three_way"):
        for side in ("spilling", "no_spill", "spark"):
            run = figures[join][side]
            yield (
                f"{join}, {side}: {run['exit']} after {run['seconds']:,.0f} s, {run['rows_per_s']:,} rows/s, "
                f"{run['results_early']:,} results early, clean-up {run['cleanup_seconds']:,.0f} s, peak "
                f"{run['peak_bytes'] / 1e9:.2f} GB, {run['major_faults']:,} major faults"
            )


def _idle(figures: dict[str, Any]) -> Iterator[str]:
    for name in ("w1", "w2", "w3"):
        found = figures[name]
        pairs = ", ".join(f"{cost:+.1%}" for cost in found["by_pairs"])
        yield f"{name}: {found['cost']:+.1%} by the fastest epochs; run by run {pairs}"


def _topn(figures: dict[str, Any]) -> Iterator[str]:
    yield (
        f"the largest packet of each source and minute: {figures['rows_per_s']:,} rows/s, Spark "
        f"{figures['spark_rows_per_s']:,}"
    )
    yield (
        f"ten best of each destination: {figures['top_rows_per_s']:,} rows/s, at most "
        f"{figures['kept_rows']:,} of {figures['rows']:,} rows kept"
    )
    yield f"LAG by source: {figures['before_rows_per_s']:,} rows/s"
    yield f"equal to DuckDB's: {figures['equal']}"


def _observe(figures: dict[str, Any]) -> Iterator[str]:
    pairs = ", ".join(f"{cost:+.1%}" for cost in figures["by_pairs"])
    yield f"w1: {figures['cost']:+.1%} by the fastest epochs; run by run {pairs}"


LINES = {
    **SPEED_LINES,
    "aggregate": _aggregate, "state-growth": _state_growth, "join": _join,
    "multijoin": _join, "hotjoin": _hotjoin, "reorder": reorder_lines, "plans": plans_lines,
    "partitioning": _partitioning,
    "strategies": _strategies, "sharing": _sharing, "driver": _driver, "theta": _theta,
    "balance": _balance, "skew": _skew, "spill": _spill, "overflow": _overflow, "idle": _idle,
    "topn": _topn, "observe": _observe, "kafka": kafka_lines, "store": store_lines,
    "scaleout": scaleout_lines, "nexmark": nexmark_lines, "scale": scale_lines,
}  # fmt: skip
"""What each benchmark says beside its bars."""
