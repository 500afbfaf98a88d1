"""Whether Spark's executors can run our tasks, found out by one small job before the first epoch.

Spark starts `python3` on an executor unless it is told otherwise, which seldom is the interpreter that
this package is installed in. So the driver's own is tried first, where the user has not chosen one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from anabranch.errors import RunError

if TYPE_CHECKING:
    from pyspark import SparkContext

CHOSEN_BY = ("spark.pyspark.python", "spark.executorEnv.PYSPARK_PYTHON")
_READY: set[str] = set()
"""The applications whose executors have been asked."""

Told = tuple[str, str, str]
"""Host, interpreter, and what is wrong with it, if anything is."""


def ready_workers(context: SparkContext) -> None:
    """Raises RunError in one line if tasks could not run; chooses the interpreter if the user has not."""
    application = str(context.applicationId)
    if application in _READY:
        return
    usual = context.pythonExec
    chosen = "PYSPARK_PYTHON" in os.environ or any(context.getConf().get(key) for key in CHOSEN_BY)
    reasons = []
    for interpreter in [usual] if chosen else dict.fromkeys([sys.executable, usual]):
        context.pythonExec = interpreter
        reason = _reason(context)
        if reason is None:
            _READY.add(application)
            return
        reasons.append(reason)
    context.pythonExec = usual
    raise RunError(
        f"Spark's executors cannot run Anabranch: {'; '.join(reasons)}. Set PYSPARK_PYTHON, before Spark "
        "starts, to an interpreter that every executor's machine has, with the same Python and anabranch "
        f"{_version()} as the driver's {sys.executable}."
    )


def _reason(context: SparkContext) -> str | None:
    """What is wrong with the interpreter; None if nothing is."""
    tasks = max(1, context.defaultParallelism)
    try:
        told = context.parallelize(range(tasks), tasks).mapPartitions(_look(_version())).collect()
    except Exception as error:
        return _failure(context.pythonExec, str(error))
    wrong = [f"{interpreter} on {host} {what}" for host, interpreter, what in told if what]
    return wrong[0] if wrong else None


def _look(version: str) -> Callable[[Iterable[Any]], Iterator[Told]]:
    """A task that needs nothing but Python: it is not found in this package when it is unpacked."""

    def look(_: Iterable[Any]) -> Iterator[Told]:
        import platform
        import sys

        wrong = ""
        try:
            import anabranch

            # What an epoch needs; the first one need not wait for it any more
            import anabranch.engine.site
            import anabranch.engine.split

            if anabranch.__version__ != version:
                wrong = f"has anabranch {anabranch.__version__}"
        except ImportError as error:
            wrong = f"says: {error}"
        yield platform.node(), sys.executable, wrong

    return look


def _failure(interpreter: str, message: str) -> str:
    """Why the job itself failed."""
    if "Cannot run program" in message:
        return f"there is no {interpreter} on an executor's machine"
    if "PYTHON_VERSION_MISMATCH" in message:
        ours = ".".join(map(str, sys.version_info[:2]))
        return f"{interpreter} is another Python than the driver's {ours}"
    lines = [
        line.strip() for line in message.splitlines() if "Error" in line or "Exception" in line
    ]
    return f"{interpreter} did not answer: {(lines or [message])[-1]:.300}"


def _version() -> str:
    from anabranch import __version__

    return __version__
