"""Any Spark writer as a sink: each epoch's results become a DataFrame, in the driver's session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
from pyspark.sql import DataFrame, SparkSession

from anabranch.errors import RunError
from anabranch.sinks.driver import Delivered


@dataclass
class SparkSink(Delivered):
    """Calls `write(dataframe, epoch)`, e.g. `lambda df, epoch: df.write.mode("append").saveAsTable("t")`."""

    spark: SparkSession
    write: Callable[[DataFrame, int], Any]

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        table = rows.to_arrow(compat_level=pl.CompatLevel.oldest())
        try:
            self.write(self.spark.createDataFrame(table), epoch)
        except Exception as error:
            raise RunError(
                f"The Spark writer of a sink failed in epoch {epoch}: {error!r:.500}. The epoch is "
                "committed: it will be handed over again at the next start."
            ) from error
