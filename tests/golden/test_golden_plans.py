"""What each rule does to a draft, and what becomes of the papers' examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_file import FOLDER, read
from outline import outline
from plans import drafts

from anabranch.plan.compile import RULES

RULE_FILES = sorted((FOLDER / "rules").glob("*.sql"))
PAPER_FILES = sorted((FOLDER / "papers").glob("*.sql"))


def name_of(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("path", RULE_FILES, ids=name_of)
def test_rule(path: Path, tmp_path: Path) -> None:
    golden = read(path)
    assert golden.about, "the first lines of the file say what it shows"
    before, after = drafts(golden.planned(tmp_path), path.stem)
    assert golden.before == outline(before)
    assert golden.after == outline(after)
    assert golden.before != golden.after


def test_every_rule_has_a_file() -> None:
    assert {path.stem for path in RULE_FILES} == {rule.__name__ for rule in RULES}


@pytest.mark.parametrize("path", PAPER_FILES, ids=name_of)
def test_paper(path: Path, tmp_path: Path) -> None:
    golden = read(path)
    assert golden.about, "the first lines of the file say what it shows"
    session = golden.planned(tmp_path)
    assert str(session.partitioning().partitioning) == golden.partitioning
    assert outline(session.plan()) == golden.plan
