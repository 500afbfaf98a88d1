"""A Spark session on this machine, set up for Anabranch: loopback, quiet, fast Python hops."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

DEFAULTS = {
    "spark.app.name": "anabranch",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.showConsoleProgress": "false",
    # Parcels are packed Arrow: compressing them again costs more than it saves on one host
    "spark.shuffle.compress": "false",
    # TCP's delayed acknowledgements cost 40 ms a hop, sockets of the file system do not
    "spark.python.unix.domain.socket.enabled": "true",
    # Where a site runs is the driver's choice, not that of the largest map output
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


def local_spark(
    master: str = "local[2]", ui: bool = False, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session with these settings; `conf` overrides them."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master)
    settings = {**DEFAULTS, "spark.ui.enabled": str(ui).lower(), **(conf or {})}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(settings["spark.log.level"])
    return spark
