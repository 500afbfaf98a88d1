"""The newest results of a query, a few rows of them, from wherever its sink has put them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.sinks.base import Sink
from anabranch.sinks.driver import MemorySink

SAMPLE_ROWS, SAMPLE_COLUMNS, LONGEST_TEXT = 12, 40, 120
READERS: dict[str, Any] = {
    "parquet": pl.read_parquet, "arrow": pl.read_ipc, "csv": pl.read_csv, "json": pl.read_ndjson,
}  # fmt: skip
SUFFIXES = {"parquet": ".parquet", "arrow": ".arrow", "csv": ".csv", "json": ".jsonl"}
_FOLDER = re.compile(r"(.*) \((parquet|arrow|csv|json)\)")


def newest_rows(sink: Sink | str) -> dict[str, Any] | None:
    """Columns and rows as text; None where a sink does not keep them. A folder may be told in words."""
    if isinstance(sink, MemorySink):
        found = next((rows for _, rows in sorted(sink.epochs.items())[::-1] if rows.height), None)
        return None if found is None else _plain(found)
    folder = _FOLDER.fullmatch(sink if isinstance(sink, str) else sink.describe())
    return None if folder is None else _of_folder(Path(folder[1]), folder[2])


def _of_folder(folder: Path, form: str) -> dict[str, Any] | None:
    try:
        files = [
            path
            for path in folder.rglob(f"*{SUFFIXES[form]}")
            if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        ]
        newest = max(files, key=lambda path: path.stat().st_mtime_ns, default=None)
        return None if newest is None else _plain(READERS[form](newest))
    except (OSError, pl.exceptions.PolarsError):
        return None  # it is being replaced, or is gone


def _plain(rows: pl.DataFrame) -> dict[str, Any]:
    shown = rows.tail(SAMPLE_ROWS)[:, :SAMPLE_COLUMNS]
    return {
        "columns": shown.columns,
        "rows": [[_text(value) for value in row] for row in shown.iter_rows()],
    }


def _text(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
