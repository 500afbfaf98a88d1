"""What a sink is to the engine: a description that a run opens to stage parts and make epochs visible.

What is given for a query never changes. A run opens it and gets a writer of its own, and with it the place
where the results lie: it belongs to that run, and another one is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from anabranch.sinks.staging import Staging


@dataclass(frozen=True)
class WriteContext:
    """The run that opens a sink."""

    run: str
    """Its id, the same for every start from its checkpoint."""
    query: str
    schema: pl.Schema
    """The columns of the results."""
    checkpoint: Path
    """A local folder that belongs to the run, for what waits to be handed over."""
    name: str
    """What to call the checkpoint in messages."""
    fsync: bool
    private: bool
    """Whether what is made is for its owner alone."""


class Writer(Protocol):
    """A sink opened by one run: where the results of one query go."""

    def staging(self, epoch: int, attempt: str) -> Staging:
        """Where the tasks of this epoch put their parts; another place for every attempt."""

    def publish(self, staged: Path, epoch: int) -> None:
        """Makes a committed epoch's parts visible. Called again after a crash: must be idempotent,
        or say that it may repeat an epoch."""

    def discard(self, staged: Path) -> None:
        """Removes the parts of an epoch that was not committed."""

    def recover(self, epoch: int) -> None:
        """Called at the start, when `epoch`, the last one committed, is visible: removes whatever a
        crash left staged, and refuses a place where there is more than the checkpoint knows."""

    def close(self) -> None:
        """Lets go of the place."""


class Sink(Protocol):
    """Where the results of one query may go. Runs open it; it does not change by that."""

    def open(self, context: WriteContext) -> Writer:
        """A writer for one run; raises if the place cannot be written or belongs to another run."""

    def describe(self) -> str:
        """Where the results lie, for people."""
