"""A result folder held by one run: every epoch becomes visible by one rename, and old ones go."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anabranch.errors import RunError, StateError
from anabranch.sinks.claim import Claim
from anabranch.sinks.spans import shown_until
from anabranch.sinks.staging import Staging, hidden_epoch, recover_epochs, reveal, visible_epoch
from anabranch.state.manifest import ResultPart

BETWEEN_LOOKS = 16
"""Epochs from one look for old results to the next: a look lists the folder."""


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
        elif not waiting and shown_until(self.held.folder) >= epoch:
            return  # a run that gathered has put it into a span
        else:
            self.require_staged(staged, target, parts, epoch)
        reveal(staged, target)

    def require_staged(
        self, staged: Path, target: Path, parts: Sequence[ResultPart], epoch: int
    ) -> None:
        """Raises StateError unless all parts of an epoch are there, to be called `target` from now on."""
        if not staged.exists() and not target.exists():
            raise StateError(
                f"The results of query '{self.query}' in epoch {epoch} are committed, but the sink has them "
                f"neither waiting in '{staged}' nor in '{target}'. Start with the folder that has them, or "
                f"once with the sink that the query had; to do without them, make an empty folder '{target}'."
            )
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
