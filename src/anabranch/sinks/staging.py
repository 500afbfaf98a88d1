"""Results on their way out: tasks write parts into a staging folder, the commit makes it visible.

A part has a fixed name and is written whole, so that a task run twice leaves one part. Nothing in a
staging folder counts until the manifest of its epoch names the folder.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from anabranch.errors import RunError
from anabranch.state.place import sync

SUFFIX = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "json": "jsonl"}

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": lambda rows, path: rows.write_parquet(path, compression="snappy"),
    "arrow": lambda rows, path: rows.write_ipc(path),
    "csv": lambda rows, path: rows.write_csv(path),
    "json": lambda rows, path: rows.write_ndjson(path),
}


@dataclass(frozen=True)
class Staging:
    """Where the tasks of one epoch put the rows of one query."""

    folder: str
    format: str
    fsync: bool

    def write(self, rows: pl.DataFrame, part: str) -> int:
        """Writes the rows as one part; the number of bytes."""
        folder = Path(self.folder)
        path = folder / f"part-{part}.{SUFFIX[self.format]}"
        temporary = folder / f".{path.name}.{os.getpid()}.tmp"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _WRITERS[self.format](rows, temporary)
            if self.fsync:
                sync(temporary)
            os.replace(temporary, path)
            return path.stat().st_size
        except OSError as error:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise RunError(
                f"Cannot write results to '{path}': {error.strerror or error}. The epoch is not "
                "counted; free space or mend the folder and start again."
            ) from error
