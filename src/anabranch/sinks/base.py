"""What a sink is to the engine: a description that a run opens to stage parts and make epochs visible.

What is given for a query never changes. A run opens it and gets a writer of its own, and with it the place
where the results lie: it belongs to that run, and another one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import polars as pl

from anabranch.sinks.staging import Staging
from anabranch.state.manifest import ResultPart
from anabranch.state.place import Place


@dataclass(frozen=True)
class WriteContext:
    """The run that opens a sink."""

    run: str
    """Its id, the same for every start from its checkpoint."""
    query: str
    schema: pl.Schema
    """The columns of the results."""
    replaces: bool
    """Whether a row stands in the place of earlier ones of its group."""
    keys: tuple[str, ...] | None
    """The columns that tell such groups apart; None if the results lack one of them."""
    marked: bool
    """Whether groups can leave the results: `gone` marks the rows of those that have."""
    formerly: str
    """What the query was called when its last epoch was committed."""
    checkpoint: Place
    """Where the run keeps what must outlive it, for what waits to be handed over too."""
    fsync: bool
    private: bool
    """Whether what is made is for its owner alone."""
    temporary: bool = False
    """Whether the checkpoint goes away with the run."""


class Writer(Protocol):
    """A sink opened by one run: where the results of one query go."""

    def staging(self, epoch: int, attempt: str) -> Staging:
        """Where the tasks of this epoch put their parts; another place for every attempt."""

    @property
    def repeats(self) -> bool:
        """Whether a reader sees an epoch twice that is published twice."""

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        """Makes the parts of a committed epoch visible, which were staged by this attempt.

        After a crash it is asked again: what is visible already stays. Raises StateError if the parts
        are neither staged nor visible."""

    def clear(self) -> None:
        """Removes what was staged for epochs that are visible, and known to be so."""

    def discard(self, epoch: int, attempt: str) -> None:
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
