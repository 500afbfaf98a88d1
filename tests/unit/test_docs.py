"""What the documents name must exist: files, folders, commands, settings, public names."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import anabranch
from anabranch.language import aggregate
from anabranch.language.sql.function import NAMED_FUNCTIONS
from anabranch.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCE = ROOT / "src" / "anabranch"


def texts() -> list[pytest.ParameterSet]:
    return [pytest.param(path.read_text(), path, id=path.name) for path in DOCUMENTS]


def code_spans(text: str) -> list[str]:
    without_blocks = re.sub(r"```.*?```", "", text, flags=re.S)
    return re.findall(r"`([^`\n]+)`", without_blocks)


@pytest.mark.parametrize(("text", "path"), texts())
def test_links_lead_somewhere(text: str, path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize(("text", "path"), texts())
def test_modules_and_folders_exist(text: str, path: Path) -> None:
    for span in code_spans(text):
        name = span.split(" ")[0].rstrip("/")
        if re.fullmatch(r"[\w./-]+\.(py|sql|yml|txt|toml|sh)", name) or re.fullmatch(r"\w+/", span):
            assert found(name, path), f"{path.name} names {span}"


def found(name: str, document: Path) -> Path | None:
    """The file or folder that a document means; a name without a folder may be anywhere in the package."""
    places = [ROOT / name, SOURCE / name, document.parent / name]
    places += [] if "/" in name else SOURCE.rglob(name)
    return next((place for place in places if place.exists()), None)


@pytest.mark.parametrize(("text", "path"), texts())
def test_names_beside_a_module_stand_in_it(text: str, path: Path) -> None:
    for module, names in re.findall(
        r"`([\w/]+\.py)` \(((?:`[A-Z]\w*[a-z][\w.]*`(?:, | and )?)+)\)", text
    ):
        file = found(module, path)
        assert file is not None, f"{path.name} names {module}"
        for part in re.findall(r"\w+", names.replace(" and ", " ")):
            assert re.search(rf"\b{part}\b", file.read_text()), f"{path.name}: {part} of {module}"


@pytest.mark.parametrize(("text", "path"), texts())
def test_commands_exist(text: str, path: Path) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    for target in re.findall(r"\bmake ([a-z-]+)\b(?=`|\s{2,}|\s*$|\s+#)", text, flags=re.M):
        assert target in targets, f"{path.name} says make {target}"


def test_a_module_is_drawn_once() -> None:
    """Of the ways of a row, of a decision and of a query each has steps of its own."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    drawings = [block for block in re.findall(r"```\n(.*?)```", text, re.S) if "──►" in block]
    drawn = re.findall(r"[\w/]+\.py", " ".join(drawings))
    assert len(drawings) == 3
    assert sorted(drawn) == sorted({*drawn})
    assert [name for name in drawn if not found(name, ROOT / "docs")] == []


def test_subcommands_exist() -> None:
    def commands(*group: str) -> set[str]:
        whole = [sys.executable, "-m", "anabranch", *group, "--help"]
        shown = subprocess.run(whole, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^\W{2}([a-z-]+)", shown, flags=re.M))

    known = commands()
    groups = {group: commands(group) for group in ("bench", "simulate")}
    for path in DOCUMENTS:
        for command, sub in re.findall(r"`anabranch (\w+)(?: ([a-z-]+))?", path.read_text()):
            assert command in known, f"{path.name} says anabranch {command}"
            if command in groups and sub:
                assert sub in groups[command], f"{path.name} says anabranch {command} {sub}"


def test_settings_named_in_documents_exist() -> None:
    known = set(Settings.__struct_fields__)
    for path in DOCUMENTS:
        for name in re.findall(
            r"setting[s]? `(\w+)`|`((?!anabranch_)\w+_(?:seconds|per_epoch|state|fan))`",
            path.read_text(),
        ):
            found = name[0] or name[1]
            assert found in known, f"{path.name} names the setting {found}"


def test_the_guide_has_all_functions_and_aggregates() -> None:
    pages = (ROOT / "docs" / "guide.md", ROOT / "docs" / "sql.md")
    words = set(re.findall(r"\w+", " ".join(page.read_text().lower() for page in pages)))
    assert {*NAMED_FUNCTIONS, *aggregate.FUNCTIONS} - words == set()


def test_names_imported_in_the_readme_exist() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S)
    assert blocks
    for block in blocks:
        compile(block, "README.md", "exec")
        for names in re.findall(r"from anabranch import ([\w, ]+)", block):
            for name in names.split(","):
                assert hasattr(anabranch, name.strip()), name
