"""The newest results of a query, a few rows of them, from wherever its sink has put them.

Pages ask often, and a run may have gone on for months: a folder is listed again only when it has changed, an
epoch is read once, and of a file only the beginning.
"""

from __future__ import annotations

import heapq
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from anabranch.sinks.base import Sink
from anabranch.sinks.driver import MemorySink
from anabranch.sinks.staging import SUFFIX

SAMPLE_ROWS, SAMPLE_COLUMNS, LONGEST_TEXT = 12, 40, 120
MOST_EMPTY = 8
"""Epochs that are looked into, from the newest back, until one has a file."""
SETTLED_NS = 1_000_000_000
"""A folder that changed less than this before it was listed may have changed since at the same tick."""
SCANS: dict[str, Callable[..., pl.LazyFrame]] = {
    "parquet": pl.scan_parquet, "arrow": pl.scan_ipc, "csv": pl.scan_csv, "json": pl.scan_ndjson,
}  # fmt: skip
_FOLDER = re.compile(r"(.*) \((parquet|arrow|csv|json)\)", re.DOTALL)


@dataclass(frozen=True)
class _Seen:
    """What a folder had when it was last looked at."""

    changed_ns: int
    settled: bool
    file: Path
    sample: dict[str, Any]


class Samples:
    """Samples of results, remembered until there are newer ones."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def newest(self, sink: Sink | str) -> dict[str, Any] | None:
        """Columns and rows as text; None where a sink does not keep them. A folder may be told in words."""
        if isinstance(sink, MemorySink):
            # A copy of the keys, for the run goes on
            epochs = (sink.epochs[epoch] for epoch in reversed(list(sink.epochs)))
            found = next((rows for rows in epochs if rows.height), None)
            return None if found is None else _plain(found)
        told = sink if isinstance(sink, str) else sink.describe()
        folder = _FOLDER.fullmatch(told)
        if folder is None:
            return None
        try:
            seen = self._look(Path(folder[1]), folder[2], self._seen.get(told))
        except (OSError, pl.exceptions.PolarsError):
            return None  # it is being replaced, or is gone
        if seen is None:
            return None
        self._seen[told] = seen
        return seen.sample

    def _look(self, folder: Path, form: str, before: _Seen | None) -> _Seen | None:
        changed = folder.stat().st_mtime_ns
        if before is not None and before.settled and before.changed_ns == changed:
            return before
        settled = time.time_ns() - changed > SETTLED_NS
        file = _newest_file(folder, SUFFIX[form])
        if file is None:
            return None
        if before is not None and before.file == file:
            sample = before.sample
        else:
            sample = _plain(SCANS[form](file, n_rows=SAMPLE_ROWS).collect())
        return _Seen(changed, settled, file, sample)


def _newest_file(folder: Path, suffix: str) -> Path | None:
    """A file of the newest epoch that has one: names of epochs are in their order."""
    with os.scandir(folder) as entries:
        epochs = heapq.nlargest(
            MOST_EMPTY, (one.name for one in entries if one.name.startswith("epoch="))
        )
    for epoch in epochs:
        with os.scandir(folder / epoch) as entries:
            name = max((one.name for one in entries if one.name.endswith(f".{suffix}")), default="")
        if name:
            return folder / epoch / name
    return None


def _plain(rows: pl.DataFrame) -> dict[str, Any]:
    shown = rows.head(SAMPLE_ROWS)[:, :SAMPLE_COLUMNS]
    return {
        "columns": shown.columns,
        "rows": [[_text(value) for value in row] for row in shown.iter_rows()],
    }


def _text(value: Any) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
