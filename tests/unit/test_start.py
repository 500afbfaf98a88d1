"""docs/start.md and docs/operations.md, from top to bottom: what is pasted works, and says what they show."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from anabranch.cli import app

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = r"[\d.]+ s\b|[\d,]+ rows/s|[^\s']*/(?=out|trips)|[\d,.]+ k?B\b"
"""What is another number, or another folder, in every run."""


BLOCK = re.compile(r"```(\w+)\n(.*?)```\n(?:\n```\n(.*?)```\n)?", flags=re.S)
"""Language and text of what can be run, and the output that is shown below."""


def output_of(language: str, text: str) -> str:
    if language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(text, {})
        return printed.getvalue()
    *before, last = text.strip().splitlines()
    command = shlex.split(last) if last.startswith("anabranch ") else None
    script = "\n".join(before) if command else text
    subprocess.run(["sh", "-ec", script], check=True)
    return CliRunner().invoke(app, command[1:]).output if command else ""


def plain(text: str) -> list[str]:
    """The words: where lines are cut depends on how long the folder's name is."""
    return re.sub(MEASURED, "#", text).split()


@pytest.mark.parametrize(("page", "outputs"), [("start.md", 6), ("operations.md", 4)])
def test_the_page_shows_what_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, outputs: int
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = 0
    for language, text, output in BLOCK.findall((DOCS / page).read_text()):
        found = output_of(language, text)
        if output:
            assert plain(found) == plain(output), text
            shown += 1
    assert shown == outputs
