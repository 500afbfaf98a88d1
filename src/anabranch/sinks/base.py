"""What a sink is to the engine: a place to stage parts, and a way to make a committed epoch visible."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from anabranch.sinks.staging import Staging


class Sink(Protocol):
    """Where the results of one query go."""

    def staging(
        self, checkpoint: Path, query: str, epoch: int, attempt: str, fsync: bool
    ) -> Staging:
        """Where the tasks of this epoch put their parts; another place for every attempt."""

    def publish(self, staged: Path, epoch: int) -> None:
        """Makes a committed epoch's parts visible. Called again after a crash: must be idempotent,
        or say that it may repeat an epoch."""

    def discard(self, staged: Path) -> None:
        """Removes the parts of an epoch that was not committed."""

    def recover(self, checkpoint: Path, query: str, epoch: int) -> None:
        """Called at the start, when `epoch`, the last one committed, is visible: removes whatever a
        crash left staged, and refuses a place where there is more than the checkpoint knows."""

    def describe(self) -> str:
        """Where the results lie, for people."""
