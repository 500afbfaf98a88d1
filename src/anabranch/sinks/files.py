"""Result folders: Parquet, Arrow, CSV or JSON lines, one sub-folder per epoch, whole or not at all.

    out/flows/_run=…
    out/flows/epoch=000000000012/part-site-0001-flows@1-0.parquet

The sub-folder is renamed into place at once, so a reader sees whole epochs only; tools that know
Hive-style partitions show the epoch as a column. Epochs without results leave no folder. A folder belongs
to one run (`claim.py`).
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from anabranch.errors import RunError, SettingsError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.claim import Claim, claim
from anabranch.sinks.staging import (
    SUFFIX,
    Staging,
    hidden_epoch,
    recover_epochs,
    reveal,
    visible_epoch,
)


@dataclass(frozen=True)
class FileSink:
    """A folder of result files."""

    folder: Path
    format: str = "parquet"

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", Path(self.folder))
        if self.format not in SUFFIX:
            raise SettingsError(
                f"There is no result format '{self.format}'. Existing: {', '.join(SUFFIX)}."
            )

    def open(self, context: WriteContext) -> FileWriter:
        what = f"The sink of '{context.query}'"
        self._refuse_types(what, context.schema)
        # The real folder, so that what waits in it is found again however the folder is spelt
        real = Path(os.path.realpath(self.folder))
        held = claim(real, what, context.run, context.name, "epoch=*", context.private)
        return FileWriter(held, self.format, context.fsync, context.private)

    def _refuse_types(self, what: str, schema: pl.Schema) -> None:
        if self.format not in ("csv", "json"):
            return
        for name, kind in schema.items():
            if isinstance(kind, pl.Duration):
                raise SettingsError(
                    f"{what} cannot be written as {self.format}: column '{name}' is {kind}, which has no "
                    "text of its own. Use parquet or arrow, or take its EPOCH."
                )

    def describe(self) -> str:
        return f"{self.folder} ({self.format})"


@dataclass(frozen=True)
class FileWriter:
    """A result folder held by one run."""

    held: Claim
    format: str
    fsync: bool
    private: bool

    def staging(self, epoch: int, attempt: str) -> Staging:
        folder = self.held.folder / hidden_epoch(epoch, attempt)
        return Staging(str(folder), self.format, self.fsync, self.private)

    def publish(self, staged: Path, epoch: int) -> None:
        if not staged.exists():
            return
        target = self.held.folder / visible_epoch(epoch)
        # A task that ran twice may come late and stage its part again; anything else is not ours
        strange = _parts(staged) - _parts(target)
        if target.exists() and strange:
            raise RunError(
                f"The results of epoch {epoch} wait in '{staged}', but there already is '{target}' without "
                f"'{min(strange)}': who wrote it? Move it away and start again."
            )
        reveal(staged, target)

    def discard(self, staged: Path) -> None:
        shutil.rmtree(staged, ignore_errors=True)

    def recover(self, epoch: int) -> None:
        recover_epochs(self.held.folder, epoch)

    def close(self) -> None:
        self.held.release()


def _parts(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("part-*")}
