"""Spark's classes as the JVM has them in memory, kept in a file that the next JVM only maps.

Most of what a JVM does until the first epoch is to read, check and link some twenty thousand classes. Java
can keep the outcome (class-data sharing); `anabranch warm` has it made, once for each Java and PySpark. A
file that does not fit, or has been damaged, is passed over by the JVM.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from pathlib import Path

CACHE = "ANABRANCH_CACHE"
"""The folder for what can be made again; ~/.cache/anabranch without it."""
DUMPED, MAPPED = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="
QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
"""Java says nothing about a file that does not fit, nor of each class that cannot be kept."""


def archive_path() -> Path | None:
    """Where the classes of this Java and this PySpark are kept; None if there is no place for them."""
    java, spark = _java(), importlib.util.find_spec("pyspark")
    if java is None or spark is None or spark.origin is None:
        return None
    told = hashlib.sha256()
    for path in (java, Path(spark.origin).parent / "jars"):
        try:
            known = path.stat()
        except OSError:
            return None
        told.update(f"{path} {known.st_size} {known.st_mtime_ns}\n".encode())
    folder = os.environ.get(CACHE) or Path("~").expanduser() / ".cache" / "anabranch"
    found = Path(folder).absolute() / f"classes-{told.hexdigest()[:16]}.jsa"
    # Options of the JVM are parted at spaces
    return None if any(letter.isspace() for letter in str(found)) else found


def archive_options(others: str = "") -> str:
    """What a JVM with these other options is told to map; nothing if there is no file, or it makes one."""
    path = archive_path()
    taken = DUMPED in others or MAPPED in others or "-Xshare" in others
    return "" if taken or path is None or not path.is_file() else f"{MAPPED}{path} {QUIET}"


def _java() -> Path | None:
    """The Java that Spark starts."""
    java_home = os.environ.get("JAVA_HOME")
    found = f"{java_home}/bin/java" if java_home else shutil.which("java")
    return Path(os.path.realpath(found)) if found else None
