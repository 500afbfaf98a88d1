"""Whether Spark's executors can run our tasks, found out by one small job before the first epoch.

Spark starts `python3` on an executor unless it is told otherwise, which seldom is the interpreter that
this package is installed in. So the driver's own is tried first, where the user has not chosen one. Executors
that have our libraries but not this package, or another edition of it, are sent the driver's. Workers that
start later, on executors that come while a run lasts, look for themselves (`require_alike`).
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anabranch.engine.executors import Executors
from anabranch.engine.rdds import PLAIN, Rdds
from anabranch.engine.shipping import LIBRARIES, package_digest, write_package
from anabranch.errors import RunError

if TYPE_CHECKING:
    from pyspark import SparkContext

CHOSEN_BY = ("spark.pyspark.python", "spark.executorEnv.PYSPARK_PYTHON")
SHIPPED = "ANABRANCH_SHIPPED"
"""A variable of workers that have our package from the driver: Spark starts others for another value."""
ALIKE = ("msgspec", "numpy", "polars", "pyarrow", "pyspark")
"""Libraries whose objects travel between driver and workers, or lie in state: of one version everywhere."""
_READY: set[str] = set()
"""The applications whose executors have been asked."""

Told = tuple[str, str, str, bool]
"""Host, interpreter, what is wrong with it, if anything is, and whether that is about our package alone."""


def ready_workers(context: SparkContext) -> None:
    """Raises RunError in one line if tasks could not run; chooses the interpreter if the user has not."""
    application = str(context.applicationId)
    if application in _READY:
        return
    _use_libraries(context)
    usual = context.pythonExec
    chosen = "PYSPARK_PYTHON" in os.environ or any(context.getConf().get(key) for key in CHOSEN_BY)
    reasons = []
    for interpreter in [usual] if chosen else dict.fromkeys([sys.executable, usual]):
        context.pythonExec = interpreter
        reason, ours = _reason(context)
        if ours:
            _ship(context)
            reason, _ = _reason(context)
        if reason is None:
            _READY.add(application)
            return
        reasons.append(reason)
    context.pythonExec = usual
    raise RunError(f"Spark's executors cannot run Anabranch: {'; '.join(reasons)}. {advice()}")


def advice() -> str:
    """What to set where executors cannot run our tasks."""
    from anabranch import __version__

    return (
        "Set PYSPARK_PYTHON, before Spark starts, to an interpreter that every executor's machine has, with "
        f"the same Python and libraries as the driver's {sys.executable} (anabranch {__version__}); or send "
        "them the libraries: `anabranch package FILE.tar.gz`, then "
        f"--conf spark.archives=FILE.tar.gz#{LIBRARIES}."
    )


def versions() -> dict[str, str]:
    """What must be the same wherever tasks run."""
    found = {name: str(import_module(name).__version__) for name in ALIKE}
    return {"Python": ".".join(map(str, sys.version_info[:2])), **found}


def require_alike(expected: Mapping[str, str]) -> None:
    """Raises RunError in a worker whose libraries are not the driver's."""
    here = versions()
    for name, version in expected.items():
        if here.get(name) != version:
            raise RunError(
                f"{sys.executable} on {platform.node()} has {name} {here.get(name)}, the driver {version}. "
                "Install the same version on all machines."
            )


def _use_libraries(context: SparkContext) -> None:
    """Puts an archive of libraries that was given to Spark onto the path of the workers."""
    archives = context.getConf().get("spark.archives") or ""
    archives += "," + (context.getConf().get("spark.yarn.dist.archives") or "")
    if any(archive.strip().endswith(f"#{LIBRARIES}") for archive in archives.split(",")):
        # Workers begin in the folder of their executor, where archives are unpacked
        before = context.environment.get("PYTHONPATH")
        context.environment["PYTHONPATH"] = f"./{LIBRARIES}" + (f":{before}" if before else "")


def _ship(context: SparkContext) -> None:
    """Sends executors this package, those that come later too."""
    if SHIPPED not in context.environment:
        folder = Path(tempfile.mkdtemp(prefix="anabranch-package-", dir=context._temp_dir))
        context.addPyFile(str(write_package(folder)))
        context.environment[SHIPPED] = package_digest()


def _reason(context: SparkContext) -> tuple[str | None, bool]:
    """What is wrong with the interpreter, None if nothing is; and whether only our package is."""
    from pyspark import RDD

    executors = Executors(context).living()
    if executors:
        asked = RDD[Any](Rdds(context).pinned(list(executors)), context, PLAIN)
    else:
        tasks = max(1, context.defaultParallelism)
        asked = context.parallelize(range(tasks), tasks)
    try:
        told = asked.mapPartitions(_look(package_digest(), versions())).collect()
    except Exception as error:
        return _failure(context.pythonExec, str(error)), False
    wrong = [
        (f"{interpreter} on {host} {what}", ours) for host, interpreter, what, ours in told if what
    ]
    # What our package cannot mend is told first
    return min(wrong, key=lambda one: one[1]) if wrong else (None, False)


def _look(digest: str, expected: Mapping[str, str]) -> Callable[[Iterable[Any]], Iterator[Told]]:
    """A task that needs nothing but Python: it is not found in this package when it is unpacked."""

    def look(rows: Iterable[Any]) -> Iterator[Told]:
        import platform
        import sys
        from importlib import import_module

        for _ in rows:
            pass
        wrong, ours = "", False
        try:
            for name, version in expected.items():
                here = name != "Python" and str(import_module(name).__version__)
                if here and here != version:
                    wrong = f"has {name} {here}, the driver {version}"
            if not wrong:
                ours = True
                # What an epoch needs; the first one need not wait for it any more
                for name in ("site", "split"):
                    import_module(f"anabranch.engine.{name}")
                if import_module("anabranch.engine.shipping").package_digest() != digest:
                    wrong = "has another anabranch than the driver"
        except ImportError as error:
            ours = ours and "'anabranch" in str(error)
            wrong = f"says: {error}"
        yield platform.node(), sys.executable, wrong, bool(wrong) and ours

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
