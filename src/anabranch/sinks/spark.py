"""Any Spark writer as a sink: each epoch's results become a DataFrame, in the driver's session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from anabranch.sinks.driver import Delivered


@dataclass
class SparkSink(Delivered):
    """Calls `write(dataframe, epoch)`, e.g. `lambda df, epoch: df.write.mode("append").saveAsTable("t")`."""

    receiver: ClassVar[str] = "The Spark writer of the sink"
    spark: SparkSession
    write: Callable[[DataFrame, int], Any]

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        self.write(self.spark.createDataFrame(table), epoch)
