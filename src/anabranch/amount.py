"""Amounts as people read them, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence


def in_bytes(count: float) -> str:
    """A size that people read: 3.4 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return ""


def in_rows(count: float) -> str:
    """A number of rows; means of few rows keep a digit.

    >>> in_rows(500_000.0), in_rows(1), in_rows(0.25), in_rows(5.01)
    ('500,000 rows', '1 row', '0.2 rows', '5 rows')
    """
    few = count < 10 and f"{count:.1f}"[-1] != "0"
    shown = f"{count:,.1f}" if few else f"{count:,.0f}"
    return f"{shown} row{'' if shown == '1' else 's'}"


def several(count: int, noun: str) -> str:
    """A number of things: 1 site, 2 sites."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def table(rows: Sequence[Sequence[str]], right: str) -> list[str]:
    """Lines with aligned columns; `right` has `>` for columns that end at the right, else `<`."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(right))]
    return [
        "  ".join(
            f"{cell:{side}{width}}" for cell, side, width in zip(row, right, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
