"""Results on their way out: tasks write parts into a staging folder, the commit makes it visible.

A part has a fixed name and is written whole, so that a task run twice leaves one part. Every attempt at
an epoch has a folder of its own: a task of an earlier one that is still running somewhere (its driver
was killed, its job was cancelled) cannot write into it. Nothing that is staged counts until the manifest of
its epoch names it. The manifest has the names of the parts alone, so that the place may be moved.
"""

from __future__ import annotations

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
from anabranch.state.folders import sync
from anabranch.state.manifest import ResultPart
from anabranch.state.place import Place, place

RESULTS = "results"
"""The folder of a checkpoint for what waits to be handed over."""
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


WRITERS: dict[str, Callable[[pl.DataFrame, Path], None]] = {
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
            "from another run, or the checkpoint is an older copy. Use another folder or the checkpoint that "
            f"wrote it, or remove '{later[0]}' and those after it."
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

    root: str
    """A folder, or the URI of a checkpoint."""
    prefix: str
    """What the names of parts begin with, from the root on; folders among it."""
    format: str
    fsync: bool
    private: bool = True
    """Whether what is made is for its owner alone."""
    summed: bool = False
    """Whether a part ends with the checksum of the rest: for parts that only this package reads."""

    @property
    def place(self) -> Place:
        return place(self.root, self.private)

    def where(self, name: str) -> str:
        """What to call a part in messages."""
        return f"{self.place}/{self.prefix}{name}"

    def write_all(self, rows: pl.DataFrame, part: str) -> list[ResultPart]:
        """Writes the rows of a task, as one part or as several whose names begin alike."""
        return [self.write(rows, part)]

    def write(self, rows: pl.DataFrame, part: str, folders: str = "") -> ResultPart:
        """Writes the rows as one part; `folders`, which end with a slash, come before its name."""
        name = f"{folders}part-{part}.{SUFFIX[self.format]}"
        try:
            with self.place.writing(f"{self.prefix}{name}", self.fsync) as path:
                WRITERS[self.format](rows, path)
                if self.summed:
                    append_checksum(path)
                size = path.stat().st_size
            # A copy in the cache of a URI is of no use to the machine of the task
            self.place.renew(f"{self.prefix}{name}")
        except (OSError, ValueError, pa.ArrowException, pl.exceptions.PolarsError) as error:
            # Polars and Arrow have words of their own for a disk that is full
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"Cannot write results to '{self.where(name)}': {reason}. The epoch is not counted; free "
                "space or mend the folder and start again."
            ) from error
        return ResultPart(name=name, rows=rows.height, bytes=size)
