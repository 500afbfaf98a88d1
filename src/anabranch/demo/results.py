"""What `anabranch demo` says of its results: rows, where they lie, how to read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
from rich.console import Console

from anabranch.amount import several, table
from anabranch.demo.scenario import QUERIES, Demo
from anabranch.observe.totals import Totals

TOP_ROWS = 1
TOP_BY = {
    "flows": "bytes", "heavy_flows": "max_cnt", "flow_pairs": "max_cnt", "suspicious": "cnt",
    "names": "cnt", "incidents": "tries",
}  # fmt: skip


def summary(demo: Demo, totals: Totals) -> dict[str, Any]:
    """The demonstration as one JSON object."""
    return {
        **totals.summary(),
        "generator": demo.generator(),
        "out": str(demo.out.absolute()),
        "queries": {
            query: {
                "rows": totals.results.get(query, 0),
                "path": str((demo.out / query).absolute()),
            }
            for query in QUERIES
        },
    }


def show_results(demo: Demo, console: Console) -> None:
    """The top rows of each query."""
    for query, by in TOP_BY.items():
        rows = demo.results(query)
        if rows.height:
            count = several(rows.height, "row")
            console.print(f"\n[bold]{query}[/]  {count}, top by {by}", highlight=False)
            head, *lines = top_rows(rows, by)
            console.print(head, style="dim", highlight=False, soft_wrap=True)
            for line in lines:
                console.print(line, highlight=False, soft_wrap=True)


def top_rows(rows: pl.DataFrame, by: str) -> list[str]:
    """The rows with the greatest values below their names; addresses as people write them."""
    shown: list[Callable[[int], str]] = []
    for name in rows.columns:
        plain = name in ("tb", "srcPort", "destPort", "name")
        shown.append(address if name.endswith("IP") else str if plain else "{:,}".format)
    # Every column takes part, so that equal values do not change places from run to run
    best = rows.sort([by, *rows.columns], descending=True).head(TOP_ROWS)
    cells = [[show(value) for show, value in zip(shown, row, strict=True)] for row in best.rows()]
    return table([rows.columns, *cells], ">" * rows.width)


def address(number: int) -> str:
    """An IPv4 address in its usual form.

    >>> address(0x0A000001)
    '10.0.0.1'
    """
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
