"""Skewed keys as the cores of this machine feel them, nothing emulated: adaptive beside static.

W4 is W1 with the sources by Zipf's law, with sub-aggregates before the exchange and without: with them a
popular key is a few rows by the time it is sent. The join has one key with 30% of the rows of one input:
15% of all rows, less than what one of four sites should have, so that a good placement exists.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from anabranch.bench.data import Events, Packets
from anabranch.bench.hot_keys import EVEN_ENOUGH, SOON, run_hot_keys
from anabranch.bench.hot_keys import WORK as HOT_WORK
from anabranch.bench.join_oracle import Digest, digest_of_join, digest_of_results, join_text
from anabranch.bench.measure import load, machine, spread
from anabranch.bench.oracle import BenchOracle
from anabranch.bench.result import Result, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
SITES = (2, 4)
POLICIES = {"static": {"policy": "none", "skew_buffer": "none"}, "adaptive": {}}
FILES = 10
"""Files of each stream, of which an epoch takes one."""
SETTLING = 3
"""Epochs that do not count: workers start, and partitions move."""
REPEATS = 3
PACKETS, EVENTS = 1_000_000, 200_000
"""Rows of a file."""
EXPONENT, POPULAR = 1.1, 0.3
WINDOW = 60
STREAMS = ("a", "b")
W4_QUERY = f"""SELECT tb, srcIP, destIP, COUNT(*) AS cnt, SUM(len) AS bytes
    FROM tcp GROUP BY time/{WINDOW} AS tb, srcIP, destIP"""
NOTES = (
    f"{CORES} cores, {SITES[0]} and {SITES[1]} sites, one file an epoch, static and adaptive in turn. ratio: "
    f"adaptive over static, medians of the rates without the first {SETTLING} epochs. With more sites than "
    "cores a core that is done with one site takes the next, so an uneven load hurts less there.",
    "busiest_rows and busiest_busy: rows and time of the busiest site against the mean of all, medians of "
    "the epochs that count: before (static) and after (adaptive).",
    f"w4: W1 with 200,000 sources by Zipf {EXPONENT}; groups are sources x 8 destinations, so the most "
    "popular group has about 1.6% of the rows. w4_raw: the same without sub-aggregation. join: equal keys "
    f"at most {WINDOW} s apart, key 0 has {POPULAR:.0%} of a's rows.",
    "hot: joins of which one key has 90% of all rows from the fifth epoch on, on 8 sites in this process, "
    "with emulated service. busiest_over_mean: that of the busiest site against the mean, median from "
    f"{SOON} epochs after the key appeared on; settled_after: the most epochs in a row since it appeared in "
    f"which that was over {EVEN_ENOUGH}. drift: another key slowly takes its place; one_of_eight: the inputs "
    "of one of four joins have it.",
)


@dataclass(frozen=True)
class Aggregated:
    """The input of W4, which knows what results are right."""

    folder: Path
    oracle: BenchOracle

    def right(self, results: Path) -> bool:
        return self.oracle.check(results).equal


@dataclass(frozen=True)
class Joined:
    """The input of the join, which does too."""

    folder: Path
    expected: Digest

    def right(self, results: Path) -> bool:
        return digest_of_results(results, STREAMS) == self.expected


WORK: dict[str, dict[str, Any]] = {"w4": {}, "w4_raw": {"combine_reduction": 1e9}, "join": {}}
"""Each kind of work with its settings."""


def run_skew(quick: bool, steps: Steps) -> Result:
    """All work on all numbers of sites, both ways in turn; with `quick`, a tenth of the rows, once."""
    from anabranch.engine.local import local_spark

    part, repeats = (10, 1) if quick else (1, REPEATS)
    steps.expect(1 + len(WORK) * len(SITES) * len(POLICIES) * repeats + len(HOT_WORK))
    before, equal = load(), True
    runs: dict[tuple[str, int, str], list[dict[str, float]]] = {}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        steps.begin("Writing the files")
        inputs = _write(Path(scratch), part)
        spark = local_spark(f"local[{CORES}]")
        try:
            for repeat in range(repeats):
                for work in WORK:
                    for sites in SITES:
                        for policy in POLICIES:
                            steps.begin(f"{work}, {sites} sites, {policy}, run {repeat + 1}")
                            data = inputs["join" if work == "join" else "w4"]
                            results = Path(scratch) / "results"
                            found = _run(spark, work, sites, policy, data.folder, results)
                            runs.setdefault((work, sites, policy), []).append(found)
                            equal &= data.right(results)
                            shutil.rmtree(results)
        finally:
            spark.stop()
        hot: dict[str, Any] = {}
        for work in HOT_WORK:
            steps.begin(f"one key with 90% of the rows: {work}")
            hot[work] = run_hot_keys(work, 4 if quick else 1, Path(scratch) / work).figures()
            equal &= hot[work]["equal"]
    figures: dict[str, Any] = {
        "quick": quick, "equal": equal, "hot": hot,
        "rows_per_epoch": {"w4": PACKETS // part, "join": 2 * EVENTS // part},
    }  # fmt: skip
    for work in WORK:
        figures[work] = {
            str(sites): _figures({policy: runs[work, sites, policy] for policy in POLICIES})
            for sites in SITES
        }
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    most = max(found["busiest_over_mean"] for found in hot.values())
    latest = max(found["settled_after"] for found in hot.values())
    figures["busiest_over_mean"], figures["settled_after"] = most, latest
    bars = (
        Bar("busiest_over_mean", most, "<=", EVEN_ENOUGH),
        Bar("settled_after", latest, "<=", SOON),
    )
    return Result("skew", figures, bars, NOTES, equal, circumstances)


def _write(folder: Path, part: int) -> dict[str, Aggregated | Joined]:
    packets = Packets((PACKETS // part,) * FILES, exponent=EXPONENT)
    for _ in packets.write(folder / "w4"):
        pass
    Events(STREAMS, EVENTS // part, FILES, 400_000 // part, popular=POPULAR).write(folder / "join")
    return {
        "w4": Aggregated(folder / "w4", BenchOracle(str(folder / "w4"), WINDOW)),
        "join": Joined(folder / "join", digest_of_join(str(folder / "join"), STREAMS, WINDOW)),
    }


def _run(
    spark: SparkSession, work: str, sites: int, policy: str, data: Path, results: Path
) -> dict[str, float]:
    session = Session(spark, sites, {"max_files_per_epoch": 1, **WORK[work], **POLICIES[policy]})
    if work == "join":
        for name in STREAMS:
            session.stream(name, path=data / name, ordered="time")
        session.query("results", join_text(STREAMS, WINDOW))
    else:
        session.stream("tcp", path=data, ordered="time")
        session.query("results", W4_QUERY)
    run = session.start(sinks={"results": results})
    run.await_termination()
    told = [epoch for epoch in run.recent_progress[SETTLING:] if epoch["numInputRows"]]
    seconds = sum(epoch["durationMs"]["triggerExecution"] for epoch in told) / 1000
    loads = [epoch["customMetrics"]["sites"] for epoch in told]
    return {
        "rows_per_s": sum(epoch["numInputRows"] for epoch in told) / seconds,
        "busiest_rows": median(_busiest(some, "rowsIn") for some in loads),
        "busiest_busy": median(_busiest(some, "busySeconds") for some in loads),
        "moved": sum(one["accepted"] and one["kind"] == "move" for one in run.history()),
    }


def _busiest(sites: list[dict[str, Any]], what: str) -> float:
    values = [site[what] for site in sites]
    return float(max(values) * len(values) / sum(values))


def _figures(runs: dict[str, list[dict[str, float]]]) -> dict[str, Any]:
    rates = {
        policy: spread([round(run["rows_per_s"]) for run in some]) for policy, some in runs.items()
    }
    return {
        "ratio": round(rates["adaptive"].median / rates["static"].median, 3),
        "ratio_by_pairs": [
            round(a["rows_per_s"] / s["rows_per_s"], 3)
            for s, a in zip(runs["static"], runs["adaptive"], strict=True)
        ],
        **{
            policy: {
                "rows_per_s": describe_spread(rates[policy]),
                **{
                    key: round(median(run[key] for run in some), 3)
                    for key in ("busiest_rows", "busiest_busy", "moved")
                },
            }
            for policy, some in runs.items()
        },
    }
