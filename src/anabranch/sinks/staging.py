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

from anabranch.errors import RunError, StateError
from anabranch.state.place import sync

SUFFIX = {"parquet": "parquet", "arrow": "arrow", "csv": "csv", "json": "jsonl"}

_WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": lambda rows, path: rows.write_parquet(path, compression="snappy"),
    "arrow": lambda rows, path: rows.write_ipc(path),
    "csv": lambda rows, path: rows.write_csv(path),
    "json": lambda rows, path: rows.write_ndjson(path),
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
        except (OSError, pl.exceptions.PolarsError) as error:
            # Polars says it in its own words when the disk is full while it writes Parquet
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"Cannot write results to '{path}': {reason}. The epoch is not counted; free space or "
                "mend the folder and start again."
            ) from error
