"""Result folders: Parquet, Arrow, CSV or JSON lines, one sub-folder per epoch, whole or not at all.

    out/flows/epoch=000000000012/part-site-0001-flows@1-0.parquet

The sub-folder is renamed into place at once, so a reader sees whole epochs only; tools that know
Hive-style partitions show the epoch as a column. Epochs without results leave no folder.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import SettingsError
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

    def staging(
        self, checkpoint: Path, query: str, epoch: int, attempt: str, fsync: bool
    ) -> Staging:
        return Staging(str(self.folder / hidden_epoch(epoch, attempt)), self.format, fsync)

    def publish(self, staged: Path, epoch: int) -> None:
        if staged.exists():
            reveal(staged, self.folder / visible_epoch(epoch))

    def discard(self, staged: Path) -> None:
        shutil.rmtree(staged, ignore_errors=True)

    def recover(self, checkpoint: Path, query: str, epoch: int) -> None:
        recover_epochs(self.folder, epoch)

    def describe(self) -> str:
        return f"{self.folder} ({self.format})"
