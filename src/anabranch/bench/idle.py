"""What a limit of memory costs that is never reached: W1 to W3 with it, and without any, in turn.

Both do the same work in the same session, epoch for epoch; so of each epoch the fastest time counts, for what
else the machine does only adds to it.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from anabranch.bench.data import Events, w1
from anabranch.bench.jobs import Ours
from anabranch.bench.join import W2, W3
from anabranch.bench.join_oracle import digest_of_join, digest_of_results
from anabranch.bench.join_series import ROWS
from anabranch.bench.measure import cpu_seconds, load, machine, spread
from anabranch.bench.oracle import BenchOracle
from anabranch.bench.ours import UNLIMITED, register_files, start_ours
from anabranch.bench.result import Result, describe_spread
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.session import Session
from anabranch.settings import AUTO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES, REPEATS = 10, 6
WINDOW = 60
MODES = {"limited": AUTO, "unlimited": None}
WORK = {"w1": None, "w2": W2, "w3": W3}
BAR = 0.02
NOTES = (
    "limited: site_memory_bytes as it is by default, far above what state there is; unlimited: none. One "
    f"file of each stream an epoch, {FILES} epochs, the first left out; {REPEATS} runs of each, in turn, in "
    "one session.",
    "cost is that of the fastest time of each epoch over all runs, summed up; by_pairs has the runs one by "
    "one. cpu_cost is that of the CPU time of all processes over a whole run, the least of all runs: what "
    "else the machine does matters less to it, and what the JVM does for itself more.",
)


def run_idle(quick: bool, steps: Steps) -> Result:
    """All three workloads both ways."""
    from anabranch.engine.local import local_spark

    before = load()
    # The first run of a session makes the JVM warm: the least of two leaves that out
    repeats = 2 if quick else REPEATS
    steps.expect(len(WORK) * (1 + repeats * len(MODES)))
    figures: dict[str, Any] = {"quick": quick, "equal": True}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        spark = local_spark()
        try:
            for name in WORK:
                found = _workload(spark, name, Path(scratch) / name, repeats, quick, steps)
                figures["equal"] &= found["equal"]
                figures[name] = found
        finally:
            spark.stop()
    for key in ("cost", "cpu_cost"):
        figures[key] = max(figures[name][key] for name in WORK)
    bars = tuple(Bar(f"{name}.cost", figures[name]["cost"], "<=", BAR) for name in WORK)
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("idle", figures, bars, NOTES, figures["equal"], circumstances)


def _workload(
    spark: SparkSession, name: str, folder: Path, repeats: int, quick: bool, steps: Steps
) -> dict[str, Any]:
    steps.begin(f"{name}: writing")
    work, data, part = WORK[name], folder / "data", 10 if quick else 1
    if work is None:
        packets = w1(1_000_000 // part, FILES, 200_000 // part)
        for _ in packets.write(data):
            pass
    else:
        Events(work.streams, ROWS // part, FILES, work.keys // part).write(data)
    times: dict[str, list[list[float]]] = {mode: [] for mode in MODES}
    computing: dict[str, list[float]] = {mode: [] for mode in MODES}
    equal, number = True, 0
    for repeat in range(repeats):
        for mode, limit in MODES.items():
            steps.begin(f"{name}: {mode}, run {repeat + 1}")
            number += 1
            job = Ours(
                data=str(data), scratch=str(folder / f"run-{number}"), window=WINDOW,
                streams=work.streams if work else (),
            )  # fmt: skip
            Path(job.scratch).mkdir()
            session = Session(spark, settings={
                "max_files_per_epoch": 1, "max_bytes_per_epoch": UNLIMITED,
                "max_rows_per_epoch": UNLIMITED, "recent_progress": 1000, "site_memory_bytes": limit,
            })  # fmt: skip
            register_files(session, job)
            before = cpu_seconds()
            run = start_ours(session, job, "available-now")
            run.await_termination()
            computing[mode].append(cpu_seconds() - before)
            times[mode].append(
                [one["durationMs"]["triggerExecution"] for one in run.recent_progress[1:FILES]]
            )
            equal &= _right(job, work is None)
    fastest = {mode: sum(map(min, zip(*some, strict=True))) for mode, some in times.items()}
    sums = {mode: [sum(run) for run in some] for mode, some in times.items()}
    least = {mode: min(some) for mode, some in computing.items()}
    pairs = zip(sums["limited"], sums["unlimited"], strict=True)
    return {
        "cost": round(fastest["limited"] / fastest["unlimited"] - 1, 4),
        "cpu_cost": round(least["limited"] / least["unlimited"] - 1, 4),
        "by_pairs": [round(limited / unlimited - 1, 4) for limited, unlimited in pairs],
        "fastest_ms": {mode: round(ms, 1) for mode, ms in fastest.items()},
        "cpu_seconds": {mode: [round(one, 2) for one in some] for mode, some in computing.items()},
        "spread": {mode: describe_spread(spread(some)) for mode, some in sums.items()},
        "equal": equal,
    }


def _right(job: Ours, aggregate: bool) -> bool:
    results = Path(job.scratch) / "results"
    if aggregate:
        return BenchOracle(job.data, WINDOW).check(results).equal
    expected = digest_of_join(job.data, job.streams, job.window)
    return digest_of_results(results, job.streams) == expected
