"""A Spark session on this machine, set up for Anabranch: loopback, quiet, fast Python hops.

Quiet means: errors only. The log's configuration is given to the JVM when it starts, because later
Spark has already spoken; what no option turns off is left out as it passes through this process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from anabranch.engine.class_archive import archive_options
from anabranch.errors import RunError

LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
DEFAULTS = {
    "spark.app.name": "anabranch",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.ui.showConsoleProgress": "false",
    # Parcels are packed Arrow: compressing them again costs more than it saves on one host
    "spark.shuffle.compress": "false",
    # Java's own serialiser passes byte arrays on in pieces of a kilobyte
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    # TCP's delayed acknowledgements cost 40 ms a hop, sockets of the file system do not
    "spark.python.unix.domain.socket.enabled": "true",
    # Where a site runs is the driver's choice, not that of the largest map output
    "spark.shuffle.reduceLocality.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
# The JVM mostly schedules and passes bytes on, on cores that it shares with the workers. Its best compiler
# is for code ten times as hot as usual: the loops of a streaming DataFrame, not the rest of Spark. And its
# heap is small: a collector with threads of its own would only take cores from the workers
JAVA_OPTIONS = (
    "-XX:+UseSerialGC -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
NOISE = ("WARNING: Using incubator modules:",)
"""How lines begin that say nothing to the user."""
FAREWELLS = ("BrokenPipeError", "ConnectionResetError")
"""What a Python worker dies of when Spark is stopped: of no interest with PySpark's daemon in the trace."""


def local_spark(
    master: str = "local[2]", ui: bool = False, conf: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session with these settings; `conf` overrides them.

    To see more of Spark's log, give `conf` a "spark.log.level".
    """
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {**DEFAULTS, "spark.ui.enabled": str(ui).lower(), **(conf or {})}
    options = settings.get("spark.driver.extraJavaOptions", "")
    if "log4j2.configurationFile" not in options:
        quiet = f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}"
        ours = f"{JAVA_OPTIONS} {archive_options(options)} {quiet} {options}"
        settings["spark.driver.extraJavaOptions"] = " ".join(ours.split())
    builder = SparkSession.builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        launch(SparkConf(loadDefaults=False).setMaster(master).setAll(list(settings.items())))
    return builder.getOrCreate()


def launch(conf: SparkConf) -> None:
    """Starts the JVM for this process, its standard error passed on without the noise."""
    incoming, outgoing = os.pipe()
    threading.Thread(target=_pass_on, args=(incoming,), name="spark-stderr", daemon=True).start()
    # A process group of its own: Ctrl-C is for this process, which ends its epoch first, and not
    # for the Python workers, which would die in the middle of it
    options = {"stderr": outgoing, "process_group": 0}
    try:
        gateway = launch_gateway(conf, options)
    except PySparkRuntimeError as error:
        raise RunError(
            "Spark did not start. It needs Java 17 or newer: install it (on Debian "
            "openjdk-17-jre-headless) or point JAVA_HOME to it; JAVA_HOME is now "
            f"{os.environ.get('JAVA_HOME') or 'not set'}."
        ) from error
    finally:
        os.close(outgoing)
    SparkContext._ensure_initialized(gateway=gateway)


def end_java() -> None:
    """Ends the JVM of this process, and waits until it has."""
    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    # It ends when its standard input does
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None


def _pass_on(incoming: int) -> None:
    with os.fdopen(incoming, encoding="utf-8", errors="replace") as lines:
        for line in without_noise(lines):
            # Whoever closed standard error does not want these lines
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(line)
                sys.stderr.flush()


def without_noise(lines: Iterable[str]) -> Iterator[str]:
    """The lines that a user should see, each as soon as it is clear that it is one."""
    trace: list[str] = []
    for line in lines:
        if trace and line.startswith(" "):
            trace.append(line)
            continue
        farewell = line.startswith(FAREWELLS) and any("pyspark/daemon.py" in part for part in trace)
        if not farewell:
            yield from trace
        trace = []
        if line.startswith("Traceback"):
            trace.append(line)
        elif not farewell and not line.startswith(NOISE):
            yield line
    yield from trace
