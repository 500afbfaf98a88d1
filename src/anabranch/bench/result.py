"""What a benchmark returns: its figures as plain values, and the bars they are held against."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec

from anabranch.bench.jobs import JobOutcome
from anabranch.bench.measure import Repeated, spread
from anabranch.observe.bars import Bar


@dataclass(frozen=True)
class Result:
    """The figures of one benchmark."""

    benchmark: str
    figures: dict[str, Any]
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know, in sentences."""
    sound: bool = True
    """False when results were wrong: then the figures mean nothing."""
    circumstances: dict[str, Any] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The result as JSON has it; the figures stand at the top."""
        return {
            "benchmark": self.benchmark,
            **self.figures,
            "bars": [bar.plain() for bar in self.bars],
            "notes": list(self.notes),
            **self.circumstances,
        }


def describe(outcome: JobOutcome) -> dict[str, Any]:
    """One run as plain values."""
    job = msgspec.to_builtins(outcome.job)
    for place in ("data", "scratch"):
        del job[place]
    if job.get("source"):
        # Where it lies is of no use on another machine
        job["source"] = "another version"
    answer = outcome.answer
    batches = [epoch for epoch in answer.epochs[1:] if not epoch.rows]
    with_empty = answer.steady_seconds + sum(epoch.ms for epoch in batches) / 1000
    return {
        **job,
        "rows_per_s": round(outcome.rate),
        "steady_rows": answer.steady_rows,
        "steady_seconds": round(answer.steady_seconds, 3),
        "rows_per_s_with_empty_batches": round(answer.steady_rows / with_empty),
        "total_rows": sum(epoch.rows for epoch in answer.epochs),
        "total_seconds": round(answer.seconds, 3),
        "process_seconds": round(outcome.process_seconds, 3),
        "epoch_ms": [epoch.ms for epoch in answer.epochs],
        "epoch_rows": [epoch.rows for epoch in answer.epochs],
        "state_rows_most": max(epoch.state_rows for epoch in answer.epochs),
        "peak": dataclasses.asdict(outcome.peak),
        "loadavg_before": outcome.load_before,
        "loadavg_after": outcome.load_after,
    }


def rates(outcomes: list[JobOutcome]) -> Repeated:
    """The rates of repeated runs."""
    return spread([round(outcome.rate) for outcome in outcomes])


def describe_spread(values: Repeated) -> dict[str, Any]:
    """A spread as plain values."""
    return {
        "median": values.median,
        "least": values.least,
        "most": values.most,
        "relative": round(values.relative, 3),
        "runs": len(values.values),
    }
