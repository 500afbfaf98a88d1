"""Where the milliseconds of an epoch went: the steps of the driver, and those of its tasks, side by side.

Tasks tell the time of day at which they began, so on one machine all of it can be laid on one line.
"""

from __future__ import annotations

from typing import Any

from anabranch.engine.laps import Laps
from anabranch.engine.report import EpochReport, SiteReport, SplitReport

MOST_TASKS = 16
"""Tasks of each kind that are told of one by one; those that began first."""


def timeline(laps: Laps, report: EpochReport) -> dict[str, Any]:
    """The steps of driver, splits and sites in milliseconds, each with when it began after the epoch did.

    What is prepared for an epoch while another is under way begins before it.
    """

    def told(part: SplitReport | SiteReport) -> dict[str, Any]:
        return {"at": _ms(part.started - laps.started), "steps": _steps(part.steps)}

    splits = sorted(report.splits, key=lambda part: part.started)[:MOST_TASKS]
    sites = sorted(report.sites, key=lambda part: part.started)[:MOST_TASKS]
    return {
        "driver": {"at": 0.0, "steps": _steps(laps.seconds)},
        "job": _steps(report.steps),
        "splits": [told(part) for part in splits],
        "sites": [told(part) | {"level": part.level} for part in sites],
    }


def _steps(seconds: dict[str, float]) -> dict[str, float]:
    return {name: _ms(value) for name, value in seconds.items()}


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 2)
