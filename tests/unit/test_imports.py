"""The folder tree is the architecture: who may import whom, and where Spark may be met."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "anabranch"
ORDER = (
    "processor", "errors", "settings", "amount", "language", "partitioning", "routing", "state", "operators",
    "plan", "explain", "sources", "sinks", "adapt", "control", "events", "simulate", "engine", "choosing",
    "planning", "evolving", "dataframes", "registry", "session", "accelerating",
)  # fmt: skip
SPARK = (
    "engine/spark.py", "engine/spark_splits.py", "engine/spark_tasks.py", "engine/rdds.py", "engine/local.py",
    "engine/workers.py", "engine/cluster.py", "engine/executors.py", "sources/spark.py", "sinks/spark.py",
    "accelerating.py",
    "dataframes.py",
    "registry.py",
    "session.py",
)  # fmt: skip


def imports(path: Path) -> list[str]:
    """The modules a file imports, those for type checkers too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_rooms_import_only_rooms_before_them() -> None:
    for path in SOURCE.rglob("*.py"):
        if room(path) not in ORDER:
            continue
        allowed = {*ORDER[: ORDER.index(room(path)) + 1]}
        if room(path) == "simulate":
            allowed.add("observe")  # it ends in figures and bars that people look at
        for module in imports(path):
            if module.startswith("anabranch."):
                assert module.split(".")[1] in allowed, f"{path.relative_to(SOURCE)}: {module}"


def test_spark_is_met_in_few_places() -> None:
    for path in SOURCE.rglob("*.py"):
        if room(path) in ORDER:
            names = [name for name in imports(path) if name.split(".")[0] in ("pyspark", "py4j")]
            assert not names or str(path.relative_to(SOURCE)) in SPARK, path


def test_no_two_modules_of_tests_have_one_name() -> None:
    """They are found by name alone, so one would hide the other, in the processes that tests start too."""
    folder = Path(__file__).parents[1]
    names = [
        path.name
        for path in folder.rglob("*.py")
        if path.name not in ("conftest.py", "__init__.py", "__main__.py")
    ]
    assert sorted(names) == sorted(set(names))
