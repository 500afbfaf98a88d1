"""`anabranch top` for scripts and where there is no terminal: the same tables once, as text or as JSON."""

from __future__ import annotations

import time
from typing import Any

from anabranch.amount import table
from anabranch.observe.story import Story
from anabranch.observe.top.rows import VIEWS, Sheet, headline, shown

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
            parts.append("\n".join([name, *_lines(found)]))
    return "\n\n".join(parts)


def _lines(found: Sheet) -> list[str]:
    cells = [[shown(*one) for one in zip(found.columns, row, strict=True)] for row in found.rows]
    side = "".join(
        "<" if any(isinstance(row[at], str) for row in found.rows) else ">"
        for at in range(len(found.columns))
    )
    lines = [f"  {line}" for line in table([list(found.columns), *cells], side)]
    return [*lines, f"  and {found.left_out:,} more"] if found.left_out else lines
