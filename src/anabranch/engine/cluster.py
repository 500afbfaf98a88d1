"""A Spark session on a cluster: of a master that is named, or of the `spark-submit` that has started us.

What the user or the cluster has set counts; of `engine/local.py` only that is added which is good on any
cluster.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from anabranch.engine.executors import NO_CONNECT, Executors
from anabranch.engine.local import LOG_CONFIGURATION, launch
from anabranch.errors import RunError, SettingsError

MASTERS = re.compile(r"(spark|k8s)://.+|yarn|local(-cluster)?(\[.*\])?")
LOOPBACK = re.compile(r"spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\])(:|$)")
DEFAULTS = {
    "spark.app.name": "anabranch",
    "spark.ui.showConsoleProgress": "false",
    # Java's own serialiser passes byte arrays on in pieces of a kilobyte
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    # TCP's delayed acknowledgements cost 40 ms a hop between an executor and its Python worker
    "spark.python.unix.domain.socket.enabled": "true",
    # Where a site runs is the driver's choice, not that of the largest map output
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}


def cluster_spark(
    master: str | None = None, ui: bool = False, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session on a cluster, once executors have come; without a master, that of `spark-submit`."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if master is not None:
        _refuse_master(master, submitted)
    given = dict(conf or {})
    if submitted:
        # With what spark-submit was told
        chosen = SparkConf()
        settings = {name: value for name, value in DEFAULTS.items() if not chosen.contains(name)}
    else:
        settings = {**DEFAULTS, "spark.ui.enabled": str(ui).lower(), **_addresses(master or "")}
        quiet = f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
        options = given.get("spark.driver.extraJavaOptions", "")
        if "log4j2.configurationFile" not in options:
            given["spark.driver.extraJavaOptions"] = f"{quiet} {options}".strip()
    settings |= given
    builder = SparkSession.builder if master is None else SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    if SparkContext._gateway is None and not submitted:
        whole = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        launch(whole.setMaster(master or "local[2]"))
    try:
        spark = builder.getOrCreate()
    except Exception as error:
        raise RunError(
            f"Spark could not start on {master or 'the cluster of spark-submit'}: {_reason(error)}"
        ) from error
    try:
        if not spark.sparkContext._jsc.sc().isLocal():
            Executors(spark.sparkContext).await_all()
    except BaseException:
        spark.stop()
        raise
    return spark


def _refuse_master(master: str, submitted: bool) -> None:
    if master.startswith("sc://"):
        raise SettingsError(NO_CONNECT)
    if submitted:
        raise SettingsError(
            f"spark-submit has chosen the master already: give it '--master {master}', before the program, "
            "and not to `anabranch run`."
        )
    if not MASTERS.fullmatch(master):
        raise SettingsError(
            f"There is no master '{master}'; expected spark://HOST:PORT, yarn, k8s://https://HOST:PORT or "
            "local[CORES]."
        )


def _addresses(master: str) -> dict[str, str]:
    """Where the driver listens: on loopback if the whole cluster does."""
    if LOOPBACK.match(master) or master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return {}


def _reason(error: Exception) -> str:
    """The first line of Spark's error that says something."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
    telling = [
        line for line in lines if re.match(r"(Caused by: )?[a-z][\w.]*(Exception|Error)\b", line)
    ]
    return f"{(telling[:1] or lines[:1] or [repr(error)])[0]:.400}"
