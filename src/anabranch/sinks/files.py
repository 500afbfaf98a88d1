"""Result folders: Parquet, Arrow, CSV or JSON lines, one sub-folder per epoch, whole or not at all.

    out/flows/_run=…
    out/flows/epoch=000000000012/part-site-0001-flows@1-0.parquet

The sub-folder is renamed into place at once, so a reader sees whole epochs only; tools that know
Hive-style partitions show the epoch as a column. Epochs without results leave no folder. A folder belongs
to one run (`claim.py`).
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl

from anabranch.errors import RunError, SettingsError, StateError, shorten
from anabranch.language.window import duration
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
from anabranch.state.manifest import ResultPart

BETWEEN_LOOKS = 16
"""Epochs from one look for old results to the next: a look lists the folder."""


@dataclass(frozen=True)
class FileSink:
    """A folder of result files."""

    folder: Path
    format: str = "parquet"
    retain: str | None = None
    """A length of time: epochs that have been visible for longer are taken away, but for the newest."""

    def __post_init__(self) -> None:
        # Whatever a user may give
        folder, format = cast(Any, self.folder), cast(Any, self.format)
        require_folder("The folder of a sink", folder)
        object.__setattr__(self, "folder", Path(folder))
        refuse_format(format)
        if self.retain is not None:
            duration(self.retain, True, "retain")

    def open(self, context: WriteContext) -> FileWriter:
        what = f"The sink of '{context.query}'"
        refuse_types(what, self.format, context.schema)
        # The real folder, so that what waits in it is found again however the folder is spelt
        real = Path(os.path.realpath(self.folder))
        held = claim(
            real,
            what,
            context.run,
            context.checkpoint,
            "epoch=*",
            context.private,
            context.temporary,
        )
        kept = None if self.retain is None else duration(self.retain, True, "retain") / 1e6
        return FileWriter(held, context.query, self.format, context.fsync, context.private, kept)

    def describe(self) -> str:
        return f"{self.folder} ({self.format})"


@dataclass(frozen=True)
class FileWriter:
    """A result folder held by one run."""

    held: Claim
    query: str
    format: str
    fsync: bool
    private: bool
    kept_seconds: float | None = None
    """How long epochs stay; None: for ever."""
    _clears: Iterator[int] = field(default_factory=itertools.count)

    @property
    def repeats(self) -> bool:
        return False

    def staging(self, epoch: int, attempt: str) -> Staging:
        root, prefix = str(self.held.folder), f"{hidden_epoch(epoch, attempt)}/"
        return Staging(root, prefix, self.format, self.fsync, self.private)

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        staged = self.held.folder / hidden_epoch(epoch, attempt)
        target = self.held.folder / visible_epoch(epoch)
        # In this order: a run that has taken over, or been taken over, may rename it just now
        waiting = staged.exists()
        if target.exists():
            missing = [part.name for part in parts if not (target / part.name).exists()]
            # Without anything staged it is what readers have left of the epoch
            if missing and waiting:
                raise RunError(
                    f"The results of epoch {epoch} wait in '{staged}', but there already is '{target}' "
                    f"without '{min(missing)}': who wrote it? Move it away and start again."
                )
        elif waiting:
            self._require_whole(staged, target, parts, epoch)
        else:
            raise StateError(
                f"The results of query '{self.query}' in epoch {epoch} are committed, but the sink has them "
                f"neither waiting in '{staged}' nor in '{target}'. Start with the folder that has them, or "
                f"once with the sink that the query had; to do without them, make an empty folder '{target}'."
            )
        reveal(staged, target)

    def _require_whole(
        self, staged: Path, target: Path, parts: Sequence[ResultPart], epoch: int
    ) -> None:
        for part in parts:
            path = staged / part.name
            try:
                size = path.stat().st_size
                reason = f"has {size} bytes instead of {part.bytes}"
            except OSError as error:
                if target.exists():
                    return
                size, reason = -1, f"cannot be read: {error.strerror}"
            if size != part.bytes:
                raise StateError(
                    f"The results of query '{self.query}' in epoch {epoch} are committed, but '{path}' "
                    f"{reason}. Restore the file from a copy; to do without these results, remove "
                    f"'{staged}' and make an empty folder '{target}'."
                )

    def clear(self) -> None:
        """Nothing is left of an epoch once it was renamed; now and then, old ones are taken away."""
        if self.kept_seconds is None or next(self._clears) % BETWEEN_LOOKS:
            return
        epochs = sorted(self.held.folder.glob("epoch=*"))
        oldest = time.time() - self.kept_seconds
        # The newest is what a start after a crash may ask for
        for path in epochs[:-1]:
            try:
                if path.stat().st_mtime >= oldest:
                    continue
                # Gone at once for whoever lists the folder; if this stops here the next start goes on
                gone = path.with_name(f"_{path.name}-gone")
                os.replace(path, gone)
            except FileNotFoundError:
                continue
            shutil.rmtree(gone, ignore_errors=True)

    def discard(self, epoch: int, attempt: str) -> None:
        shutil.rmtree(self.held.folder / hidden_epoch(epoch, attempt), ignore_errors=True)

    def recover(self, epoch: int) -> None:
        recover_epochs(self.held.folder, epoch)

    def close(self) -> None:
        self.held.close()


def refuse_format(format: Any) -> None:
    """Refuses what is no format of results."""
    if not isinstance(format, str) or format not in SUFFIX:
        raise SettingsError(
            f"There is no result format {format!r:.100}. Existing: {', '.join(SUFFIX)}."
        )


def refuse_types(what: str, format: str, schema: pl.Schema) -> None:
    """Refuses columns that a format has no values for."""
    if format not in ("csv", "json"):
        return
    for name, kind in schema.items():
        if isinstance(kind, pl.Duration):
            raise SettingsError(
                f"{what} cannot be written as {format}: column '{name}' is {kind}, which has no "
                "text of its own. Use parquet or arrow, or take its EPOCH."
            )


def require_folder(what: str, path: Any) -> None:
    """Refuses anything where a folder of this machine is wanted that is the name of none."""
    if not isinstance(path, (str, Path)):
        raise SettingsError(f"{what} is {shorten(repr(path), 100)}; expected a folder.")
    if "://" in str(path):
        raise SettingsError(
            f"{what} is '{path}'; expected a local folder, or for results one of s3://, gs:// "
            "or abfs://. For other places write with Spark: anabranch.sinks.spark.SparkSink."
        )
    try:
        possible = str(path) != "" and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise SettingsError(
            f"{what} is {str(path)!r}; expected the name of a folder. Was a variable not set?"
        )
