"""What is said of the benchmarks of speed beside their bars, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def _latency(figures: dict[str, Any]) -> Iterator[str]:
    for side, name in (("ours", "Anabranch"), ("spark", "Spark    ")):
        times = figures[side]
        spread = times["spread"]
        yield (
            f"{name} median {times['median_ms']:,.0f} ms, p90 {times['p90_ms']:,.0f} ms "
            f"(medians of {spread['runs']} runs: {spread['least']:,.0f} to {spread['most']:,.0f})"
        )
    for side, times in figures.get("appearance", {}).items():
        if isinstance(times, dict):
            yield (
                f"from the arrival of a file to its results, {side}: p50 {times['p50_ms']:,.0f} ms, p99 "
                f"{times['p99_ms']:,.0f} ms"
            )
    yield f"ratio between the best run of each side: {figures['ratio_of_best_runs']:g}"
    chosen = figures["spark_configuration"]
    yield f"Spark's best: {chosen['store']} state store, {chosen['partitions']} shuffle partitions"


def _timeline(figures: dict[str, Any]) -> Iterator[str]:
    for name in ("w1", "w2", "small"):
        for way in ("overlapped", "apart"):
            found = figures[name][way]
            yield (
                f"{name} {way}: {found['epoch_ms']:,.0f} ms an epoch, cores busy with tasks "
                f"{found['busy_share']:.0%}"
            )
            for part in ("waiting", "splits", "sites", "driver"):
                steps = ", ".join(f"{step} {ms:,.1f}" for step, ms in found[part].items())
                yield f"  {part}: {steps}"


def _zipf(figures: dict[str, Any]) -> Iterator[str]:
    for side, name in (("ours", "Anabranch"), ("spark", "Spark    ")):
        values = figures["spread"][side]
        yield (
            f"{name} {values['median']:,.0f} rows/s ({values['least']:,.0f} to {values['most']:,.0f} in "
            f"{values['runs']} runs)"
        )
    yield (
        f"DuckDB as one batch: {figures['duckdb_rows_per_s']:,} rows/s, of which ours is "
        f"{figures['over_duckdb']:.0%}"
    )
    yield f"{figures['comparison']['rows']:,} result rows compared with DuckDB's"


def _start(figures: dict[str, Any]) -> Iterator[str]:
    for side, name in (("ours", "Anabranch"), ("spark", "Spark    ")):
        values = figures[side]
        yield (
            f"{name} {values['median']:.2f} s from the command to the first result "
            f"({values['least']:.2f} to {values['most']:.2f} in {values['runs']} runs)"
        )
    yield f"our first epoch: {figures['first_epoch_seconds']:.2f} s"


def _dataframe(figures: dict[str, Any]) -> Iterator[str]:
    yield "our input is a plain spark.readStream.parquet"
    yield from _zipf(figures)


SPEED_LINES: dict[str, Callable[[dict[str, Any]], Iterator[str]]] = {
    "latency": _latency,
    "timeline": _timeline,
    "zipf": _zipf,
    "start": _start,
    "dataframe": _dataframe,
}
