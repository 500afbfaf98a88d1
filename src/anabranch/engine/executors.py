"""Spark's executors: those that live now, where Spark would have tasks sent to them, and the wait for them.

A client of Spark Connect has none of it, and is refused.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunError, SettingsError

if TYPE_CHECKING:
    from pyspark import SparkContext

LOOK = 0.1
"""Seconds between two looks while executors are waited for."""
CALM = 1.0
"""Seconds without another executor after which those that are there are taken for all."""
LONGEST = 60.0
"""Seconds to wait for the first executor of a cluster."""

NO_CONNECT = (
    "Anabranch cannot run through Spark Connect: it sends tasks to executors of its choice and passes Arrow "
    "through Spark's shuffle, which needs the SparkContext of a driver, and Connect has DataFrames only. "
    "Start the program where the driver is: `anabranch run FILE --master spark://…`, spark-submit, or on "
    "Databricks a cluster of one user (access mode 'Dedicated')."
)


def refuse_connect(spark: Any) -> None:
    """Raises SettingsError for the session of a Spark Connect client."""
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise SettingsError(NO_CONNECT)


class Executors:
    """The executors of an application; there are none in local mode, where the driver works itself."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._listed: tuple[set[str], dict[str, int]] = set(), {}
        """Those that were asked about last, and what was told."""

    def numbers(self) -> set[str]:
        """The ids of those that live."""
        return {*self._context._jsc.sc().getExecutorIds().mkString(" ").split()}

    def living(self) -> dict[str, int]:
        """The living executors as Spark's location strings, in order, with their cores."""
        # All about them is asked only when others are there: that takes several calls for each
        if self._listed[0] != self.numbers():
            listed = self._context._jsc.sc().statusStore().executorList(True)
            entries = [listed.apply(number) for number in range(listed.size())]
            found = [
                (entry.id(), entry.hostPort().rsplit(":", 1)[0], int(entry.totalCores()))
                for entry in entries
                if entry.id() != "driver"
            ]
            found.sort(key=lambda entry: (len(entry[0]), entry[0]))
            known = {f"executor_{host}_{number}": cores for number, host, cores in found}
            # Spark's list may come a moment after
            self._listed = {number for number, _, _ in found}, known
        return self._listed[1]

    def cores(self) -> int:
        """The cores of all that live."""
        return sum(self.living().values())

    def await_all(self, longest: float = LONGEST) -> None:
        """Waits until executors have come and no more come; RunError if there is none after so many seconds.

        A cluster gives an application executors one by one after it has started: who counts its cores too
        early takes it for a small one.
        """
        begun = calm = time.monotonic()
        there: set[str] = set()
        while not there or time.monotonic() - calm < CALM:
            now = self.numbers()
            if now != there:
                there, calm = now, time.monotonic()
            if not there and time.monotonic() - begun > longest:
                conf = self._context.getConf()
                raise RunError(
                    f"The cluster {self._context.master} gave no executor in {longest:.0f} s. Does it have a "
                    "free core and the memory of an executor (spark.executor.memory, "
                    f"{conf.get('spark.executor.memory', '1g')}), and can its machines reach the driver at "
                    f"{conf.get('spark.driver.host')} (spark.driver.host)? The page of the cluster tells "
                    "what it waits for."
                )
            time.sleep(LOOK)
