"""The page of all modules: each is there once, with what it says of itself."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

SCRIPT = Path(__file__).parents[2] / "scripts" / "module-index.py"


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("module_index", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_module_is_on_the_page_of_modules_as_it_is_now() -> None:
    index = script()
    assert index.INDEX.read_text() == index.index(), "run scripts/module-index.py"


def test_every_module_says_what_it_is_about() -> None:
    index = script()
    silent = [path for path in index.SOURCE.rglob("*.py") if not index.subject(path)]
    assert [path.name for path in silent if path.name != "__init__.py"] == []
