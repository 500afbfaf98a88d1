"""The documentation site: its reference has what the code has, and links that lead nowhere are found."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import anabranch
from anabranch.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_docs", ROOT / "scripts" / "build-docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_setting_is_in_the_reference(builder: ModuleType) -> None:
    page = builder.settings()
    assert re.findall(r"^\| `(\w+)`", page, re.M) == list(Settings.__struct_fields__)
    assert "| `policy` | str | `'hybrid'` |" in page


def test_every_public_name_is_in_the_reference(builder: ModuleType) -> None:
    page = builder.python()
    assert re.findall(r"^## (\w+)$", page, re.M) == [*sorted(anabranch.__all__), "Run"]
    assert "Run.pause(self, subquery: str, partition: int)" in page
    assert "\n    shape: str,\n    partition: int | None = None,\n    *,\n" in page


def test_every_page_is_on_the_site() -> None:
    text = (ROOT / "docs" / "index.md").read_text()
    listed = set(re.findall(r"^([\w./-]+)$", text, re.M))
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert pages - listed == set()


def test_links_that_lead_nowhere_are_found(builder: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<p id="here"><a href="b.html#there">b</a> <a href="#here">a</a> <a href="https://x.org/">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="there"><a href="a.html">a</a>')
    assert builder.wrong_links(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="c.html">c</a> <a href="a.html#nowhere">a</a> <script src="https://x.org/x.js"></script>'
    )
    assert sorted(builder.wrong_links(tmp_path)) == [
        "a.html links to b.html#there: there is no such place",
        "b.html links to a.html#nowhere: there is no such place",
        "b.html links to c.html",
        "b.html loads https://x.org/x.js",
    ]
