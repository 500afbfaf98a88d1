"""Writes docs/modules.md: every module of the package once, with what it is about, room by room."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, INDEX = ROOT / "src" / "anabranch", ROOT / "docs" / "modules.md"
HEAD = """# Every module

What each module is about, in its own words. The rooms and how they work together are in the
[architecture](architecture.md). `scripts/module-index.py` writes this page.
"""


def subject(path: Path) -> str:
    """The first sentence of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(docstring.split("\n\n")[0].split())


def index() -> str:
    rooms: dict[str, list[Path]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name != "__init__.py":
            rooms.setdefault(str(path.parent.relative_to(SOURCE)), []).append(path)
    text = HEAD
    for room, paths in rooms.items():
        title = "The package itself" if room == "." else f"`{room}/`"
        text += f"\n## {title}\n\n| module | about |\n|---|---|\n"
        for path in paths:
            about = subject(path).replace("|", "\\|")
            text += f"| `{path.relative_to(SOURCE)}` | {about} |\n"
    return text


if __name__ == "__main__":
    INDEX.write_text(index())
