"""Where the milliseconds of an epoch go: W1, W2 and 1,000 rows, by the clocks of driver and tasks."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from anabranch.bench.data import Events, w1
from anabranch.bench.jobs import JobOutcome, Ours, run_job
from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.observe.steps import Steps

LEFT_OUT = 3
"""Epochs at the start that do not count: the JVM compiles, workers start."""
SMALL, SMALL_FILES = 1000, 40
STREAMS = ("a", "b")
CORES = 2
NOTES = (
    "Milliseconds, medians over the epochs that count. Steps of splits and sites are those of the task that "
    "took longest.",
    "waiting: to_splits is from the beginning of the epoch to that of its first split, negative if the split "
    "was prepared before; to_sites from the end of its last split to the first site; to_end from the end of "
    "the last site until the reports are with the driver.",
    "busy_share: the time of all tasks against that of all cores. The JVM's part is not in it.",
)


def run_timeline(quick: bool, steps: Steps) -> Result:
    """Runs the three workloads with overlap and without; with `quick`, a tenth of the rows."""
    share = 10 if quick else 1
    before = load()
    steps.expect(9)
    figures: dict[str, Any] = {"quick": quick}
    with TemporaryDirectory(prefix="anabranch-bench-") as scratch:
        for name, streams in (("w1", ()), ("w2", STREAMS), ("small", ())):
            steps.begin(f"Writing the files of {name}")
            data = Path(scratch) / name
            if streams:
                Events(streams, 200_000 // share, 10, 400_000 // share).write(data)
            else:
                rows, files = (1_000_000 // share, 10) if name == "w1" else (SMALL, SMALL_FILES)
                for _ in w1(rows, files).write(data):
                    pass
            figures[name] = {}
            for overlap in (True, False):
                steps.begin(f"{name} with{'' if overlap else 'out'} overlap")
                place = f"{scratch}/run-{name}-{overlap}"
                outcome = run_job(
                    Ours(data=str(data), scratch=place, streams=streams, overlap=overlap)
                )
                figures[name]["overlapped" if overlap else "apart"] = _where(outcome)
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("timeline", figures, (), NOTES, circumstances=circumstances)


def _where(outcome: JobOutcome) -> dict[str, Any]:
    """The epochs of a run that count, step by step."""
    counted = [epoch for epoch in outcome.answer.epochs if epoch.rows][LEFT_OUT:]
    lines = [epoch.timeline for epoch in counted]
    times = [epoch.ms for epoch in counted]
    shares = [
        sum(_length(task) for task in [*line["splits"], *line["sites"]]) / (CORES * ms)
        for line, ms in zip(lines, times, strict=True)
    ]
    return {
        "epoch_ms": median(times),
        "driver": _medians([line["driver"]["steps"] for line in lines]),
        "job": _medians([line["job"] for line in lines]),
        "splits": _medians([_longest(line["splits"]) for line in lines]),
        "sites": _medians([_longest(line["sites"]) for line in lines]),
        "waiting": _medians([_waiting(line) for line in lines]),
        "busy_share": round(median(shares), 3),
        "cpu_seconds": outcome.peak.cpu_seconds,
        "epochs": lines[-4:],
    }


def _length(task: dict[str, Any]) -> float:
    return float(sum(task["steps"].values()))


def _longest(tasks: list[dict[str, Any]]) -> dict[str, float]:
    return dict(max(tasks, key=_length)["steps"]) if tasks else {}


def _waiting(line: dict[str, Any]) -> dict[str, float]:
    splits, sites, driver = line["splits"], line["sites"], line["driver"]["steps"]
    read = max(task["at"] + _length(task) for task in splits)
    worked = max(task["at"] + _length(task) for task in sites)
    ran = driver["poll"] + driver["orders"] + driver["tasks"]
    return {
        "to_splits": min(task["at"] for task in splits),
        "to_sites": min(task["at"] for task in sites) - read,
        "to_end": ran - worked,
    }


def _medians(parts: list[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: round(median(part.get(name, 0.0) for part in parts), 2) for name in names}
