"""Results on their way out: tasks write parts into a staging folder, the commit makes it visible.

A part has a fixed name and is written whole, so that a task run twice leaves one part. Every attempt at
an epoch has a folder of its own: a task of an earlier one that is still running somewhere (its driver
was killed, its job was cancelled) cannot write into it. Nothing in a staging folder counts until the
manifest of its epoch names the folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.errors import RunError, StateError
from anabranch.sinks.text import write_csv, write_json
from anabranch.state.checksum import append_checksum
from anabranch.state.folders import make_file, make_folder, sync

SUFFIX = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "json": "jsonl"}


def _write_parquet(rows: pl.DataFrame, path: Path) -> None:
    # Differences packed into bits suit the numbers of results: two thirds of the time and of the size
    # of dictionaries
    numbers = [n for n, kind in rows.schema.items() if kind.is_integer() or kind.is_temporal()]
    pq.write_table(
        rows.to_arrow(), path, compression="snappy",
        use_dictionary=[name for name in rows.columns if name not in numbers],
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )  # fmt: skip


_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": _write_parquet,
    "arrow": lambda rows, path: rows.write_ipc(path),
    "csv": write_csv,
    "json": write_json,
}


def hidden_epoch(epoch: int, attempt: str) -> str:
    """The name of a folder that waits for the commit of its epoch."""
    return f"_{visible_epoch(epoch)}-{attempt}"


def visible_epoch(epoch: int) -> str:
    return f"epoch={epoch:012d}"


def recover_epochs(folder: Path, epoch: int) -> None:
    """Refuses a folder that has epochs after this, the last one; removes what waits for a commit."""
    later = sorted(path.name for path in folder.glob("epoch=*") if path.name > visible_epoch(epoch))
    if later:
        reached = f"has come to epoch {epoch}" if epoch >= 0 else "is new"
        raise StateError(
            f"The folder '{folder}' already has '{later[0]}', but the checkpoint {reached}: that is "
            "from another run. Use another folder, or the checkpoint of that run."
        )
    for waiting in folder.glob("_epoch=*"):
        shutil.rmtree(waiting, ignore_errors=True)


def reveal(waiting: Path, target: Path) -> None:
    """Makes a folder that waited for the commit visible; safe to repeat."""
    for leftover in waiting.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)
    if target.exists():
        shutil.rmtree(waiting, ignore_errors=True)
        return
    try:
        os.replace(waiting, target)
    except FileNotFoundError:
        # A run that has taken over, or been taken over, does the same at the same time
        if not target.exists():
            raise
    sync(target.parent)


@dataclass(frozen=True)
class Staging:
    """Where the tasks of one epoch put the rows of one query."""

    folder: str
    format: str
    fsync: bool
    private: bool = True
    """Whether what is made is for its owner alone."""
    summed: bool = False
    """Whether a part ends with the checksum of the rest: for parts that only this package reads."""

    def write(self, rows: pl.DataFrame, part: str) -> str:
        """Writes the rows as one part; the name of its file."""
        folder = Path(self.folder)
        path = folder / f"part-{part}.{SUFFIX[self.format]}"
        temporary = folder / f".{path.name}.{os.getpid()}.tmp"
        try:
            make_folder(folder, self.private, self.fsync)
            make_file(temporary, self.private)
            _WRITERS[self.format](rows, temporary)
            if self.summed:
                append_checksum(temporary)
            if self.fsync:
                sync(temporary)
            os.replace(temporary, path)
            if self.fsync:
                sync(folder)
            return path.name
        except (OSError, ValueError, pa.ArrowException, pl.exceptions.PolarsError) as error:
            # Polars and Arrow have words of their own for a disk that is full
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"Cannot write results to '{path}': {reason}. The epoch is not counted; free space or "
                "mend the folder and start again."
            ) from error
