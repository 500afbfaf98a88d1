"""The splits of one epoch as a stage of Spark's: begun ahead of the sites that ask for them, or by these.

A stage that has been run by itself is not run again by the job that needs it: Spark finds its output where
a shuffle leaves it. If an executor is lost with some of it, Spark makes that part again.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from typing import Any

import msgspec
from py4j.protocol import Py4JError
from pyspark import Accumulator
from pyspark.accumulators import AccumulatorParam

from anabranch.engine.orders import Orders
from anabranch.engine.rdds import Rdds, Shuffled
from anabranch.engine.report import SplitReport
from anabranch.engine.spark_tasks import TaskWords


class _Merged(AccumulatorParam[dict[str, bytes]]):
    """Reports by attempt and task: one that comes twice, from a task that was run again, counts once."""

    def zero(self, value: dict[str, bytes]) -> dict[str, bytes]:
        return {}

    def addInPlace(self, value1: dict[str, bytes], value2: dict[str, bytes]) -> dict[str, bytes]:
        return {**value1, **value2}


MERGED = _Merged()


@dataclass
class SparkSplits:
    """What the splits of these orders make, or will make when it is asked for."""

    orders: Orders
    words: TaskWords
    handover: str
    parcels: Any
    """The RDD of all parcels with their addresses."""
    rdds: Rdds
    reports: Accumulator[dict[str, bytes]]
    _shuffled: Shuffled | None = None
    _stage: Any = None
    """The stage, if it was begun ahead."""

    def begin(self) -> None:
        """Has Spark run the splits now."""
        self._stage = self.rdds.begin(self.shuffled(self.orders.sites))

    def shuffled(self, sites: int) -> Shuffled:
        """The parcels by site."""
        if self._shuffled is None:
            self._shuffled = self.rdds.shuffled(self.parcels, sites)
        return self._shuffled

    def heard(self) -> list[SplitReport] | None:
        """Waits until they have ended: what they report of their streams; None if that is not known."""
        if self._stage is None:
            return None
        # Why it failed is told by the job that needs it
        with contextlib.suppress(Py4JError):
            self._stage.get()
        reports, tasks = self.reports.value, range(len(self.orders.pieces))
        names = [f"{self.orders.attempt}-{task}" for task in tasks]
        told = [reports.pop(name) for name in names if name in reports]
        if len(told) < len(names):
            return None
        return [msgspec.msgpack.decode(one, type=SplitReport) for one in told]

    def close(self) -> None:
        """Lets go of what was told and left for others."""
        self.words.close()
        if self.handover:
            shutil.rmtree(self.handover, ignore_errors=True)
