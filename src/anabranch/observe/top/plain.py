"""`anabranch top` for scripts and where there is no terminal: the same tables once, as text or as JSON."""

from __future__ import annotations

import textwrap
import time
from typing import Any

from anabranch.amount import table
from anabranch.observe.story import Story
from anabranch.observe.top.rows import VIEWS, Sheet, headline, shown

WIDTH = 80
MOST_LINES = 20
"""Rows of each table in text; JSON has them all."""


def described(story: Story) -> dict[str, Any]:
    """How the run stands, and every table as a list of rows by name."""
    tables = {name: view(story, None) for name, view in VIEWS.items()}
    name = None if story.started is None else story.started.name
    epoch = None if story.newest is None else story.newest.epoch
    return {"name": name, "epoch": epoch, "status": story.status()} | {
        name: [dict(zip(_names(found), row, strict=True)) for row in found.rows]
        for name, found in tables.items()
    }


def _names(found: Sheet) -> list[str]:
    """The columns as JSON has names: rowsIn for "rows in"."""
    words = [name.split() for name in found.columns]
    return [first + "".join(map(str.title, rest)) for first, *rest in words]


def as_text(story: Story) -> str:
    """The headline and the tables, the longest cut."""
    parts = [headline(story, time.time())]
    for name, view in VIEWS.items():
        found = view(story, None).first(MOST_LINES)
        if found.rows:
            lines = _sentences(found) if name == "decisions" else _lines(found)
            parts.append("\n".join([name, *lines]))
    return "\n\n".join(parts)


def _lines(found: Sheet) -> list[str]:
    cells = [[shown(*one) for one in zip(found.columns, row, strict=True)] for row in found.rows]
    side = "".join(
        "<" if any(isinstance(row[at], str) for row in found.rows) else ">"
        for at in range(len(found.columns))
    )
    return _cut([f"  {line}" for line in table([list(found.columns), *cells], side)], found)


def _sentences(found: Sheet) -> list[str]:
    """Decisions and their reasons, one below the other: side by side they are wider than a terminal."""
    lines: list[str] = []
    for epoch, what, action, why, effect in found.rows:
        for first, text in (
            ("  ", f"epoch {epoch} {what}: {action}"),
            ("    ", f"{why} ({effect})"),
        ):
            lines += textwrap.wrap(
                text,
                WIDTH,
                initial_indent=first,
                subsequent_indent="      ",
                break_long_words=False,
            )
    return _cut(lines, found)


def _cut(lines: list[str], found: Sheet) -> list[str]:
    return [*lines, f"  and {found.left_out:,} more"] if found.left_out else lines
