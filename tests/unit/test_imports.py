"""The folder tree is the architecture: who may import whom, and where Spark may be met."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import anabranch

SOURCE = Path(__file__).parents[2] / "src" / "anabranch"
ORDER = (
    "processor", "errors", "settings", "amount", "language", "partitioning", "routing", "state", "operators",
    "plan", "explain", "sources", "sinks", "adapt", "control", "events", "simulate", "engine", "choosing",
    "planning", "evolving", "dataframes", "registry", "session", "accelerating", "spec", "observe", "demo",
    "testing", "bench", "cli",
)  # fmt: skip
LATE = re.compile(r"anabranch(\.\w+)+")
FACE = ("__init__", "__main__")
"""They load what is asked for, wherever it is."""
UPWARD = {
    # It ends in figures and bars that people look at
    "simulate": {"observe", "bench"},
    # A run opens the page of itself when it is asked for
    "engine/run.py": {"observe"},
}
"""Who meets rooms after its own, and which."""
BELOW_PEOPLE = ORDER[: ORDER.index("spec")]
SPARK = (
    "engine/spark.py", "engine/spark_splits.py", "engine/spark_tasks.py", "engine/rdds.py", "engine/local.py",
    "engine/workers.py", "engine/cluster.py", "engine/executors.py", "sources/spark.py", "sinks/spark.py",
    "accelerating.py",
    "dataframes.py",
    "registry.py",
    "session.py",
)  # fmt: skip


def imports(path: Path) -> list[str]:
    """The modules a file imports: those for type checkers, and those told by a text, too."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names):
                found += [alias.name for alias in names]
            case ast.ImportFrom("anabranch", names, 0):
                found += [elsewhere(alias.name) for alias in names]
            case ast.ImportFrom(module, names, level):
                near = path.relative_to(SOURCE.parent).parts[:-level] if level else ()
                base = [*near, module] if module else near
                found += [".".join([*base, alias.name]) for alias in names] if level else [module]
            case ast.Constant(str(text)) if is_module(text):
                found.append(text)
            case ast.JoinedStr([ast.Constant(str(text)), *_]) if is_module(text.removesuffix(".")):
                found.append(text.removesuffix("."))
    return [name for name in found if name]


def elsewhere(name: str) -> str:
    """The module that a name of the package itself comes from."""
    return f"anabranch.{anabranch._MODULES.get(name, name)}"


def is_module(text: str) -> bool:
    if not LATE.fullmatch(text):
        return False
    place = SOURCE.parent.joinpath(*text.split("."))
    return place.is_dir() or place.with_suffix(".py").is_file()


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_room_has_its_place() -> None:
    rooms = {room(path) for path in SOURCE.rglob("*.py")}
    assert rooms - {*FACE} == {*ORDER}


def test_rooms_import_only_rooms_before_them() -> None:
    met = []
    for path in SOURCE.rglob("*.py"):
        if room(path) in FACE:
            continue
        here = str(path.relative_to(SOURCE))
        allowed = {*ORDER[: ORDER.index(room(path)) + 1]}
        allowed |= UPWARD.get(room(path), set()) | UPWARD.get(here, set())
        met += [
            f"{here}: {module}"
            for module in imports(path)
            if module.startswith("anabranch.")
            and module.split(".")[1] not in {*allowed, "__version__"}
        ]
    assert met == []


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("from anabranch import Session", "anabranch.session"),
        ("from anabranch import bench", "anabranch.bench"),
        ("from ..observe import page", "anabranch.observe.page"),
        ("from . import run", "anabranch.engine.run"),
        ("load('anabranch.observe.page.opening')", "anabranch.observe.page.opening"),
        ("load(f'anabranch.engine.{name}')", "anabranch.engine"),
    ],
)
def test_imports_are_seen_in_every_form(
    text: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda self: text)
    assert imports(SOURCE / "engine" / "made_up.py") == [module]


def test_the_nodes_with_state_are_listed_once() -> None:
    listed = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Tuple | ast.BinOp):
                names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
                if names >= {"Aggregate", "History", "Join", "Ranked", "Timeline"}:
                    listed.append(str(path.relative_to(SOURCE)))
    assert {*listed} == {"language/stateful.py"}


def test_spark_is_met_in_few_places() -> None:
    for path in SOURCE.rglob("*.py"):
        if room(path) in BELOW_PEOPLE:
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
