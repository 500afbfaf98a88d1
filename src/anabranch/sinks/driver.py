"""Sinks that take results in the driver process: memory, console, a function, any Spark writer.

Tasks stage Arrow files in the checkpoint, a folder or a URI; once the epoch is committed the driver reads
them, hands the rows over, notes that in the checkpoint, and removes them. After a crash the last epoch may be
handed over again, with the same epoch number: a receiver that must not see it twice remembers the number.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import polars as pl
import pyarrow as pa

from anabranch.amount import several
from anabranch.errors import AnabranchError, RunError, StateError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.staging import RESULTS, Staging
from anabranch.state.checksum import Damaged, without_checksum
from anabranch.state.manifest import ResultPart
from anabranch.state.place import Place


class Delivered:
    """The common part of such sinks: a writer that hands each epoch over to `deliver`."""

    receiver: ClassVar[str] = "The sink"
    """What to say that failed when `deliver` does."""

    def open(self, context: WriteContext) -> DriverWriter:
        return DriverWriter(self, context)

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        raise NotImplementedError

    def closed(self) -> None:
        """Called when the run that had it open lets go of it."""

    def describe(self) -> str:
        return type(self).__name__.removesuffix("Sink").lower()


@dataclass
class DriverWriter:
    """Stages as Arrow in the checkpoint, reads back in the order of the parts, hands over, clears."""

    sink: Delivered
    context: WriteContext
    _recovered: bool = False
    _spent: list[str] = field(default_factory=list)
    """Parts that were handed over and may go."""

    @property
    def repeats(self) -> bool:
        return True

    @property
    def _place(self) -> Place:
        return self.context.checkpoint

    def staging(self, epoch: int, attempt: str) -> Staging:
        fsync, private = self.context.fsync, self.context.private
        prefix = self._prefix(epoch, attempt)
        return Staging(str(self._place), prefix, "arrow", fsync, private, summed=True)

    def _prefix(self, epoch: int, attempt: str) -> str:
        return f"{RESULTS}/{self._query}/{epoch:012d}-{attempt}-"

    @property
    def _query(self) -> str:
        """What the query was called when the epoch at hand was committed."""
        return self.context.query if self._recovered else self.context.formerly

    def _names(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> list[str]:
        return sorted(f"{self._prefix(epoch, attempt)}{part.name}" for part in parts)

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        names = self._names(parts, epoch, attempt)
        rows = pl.concat([self._read(name, epoch) for name in names])
        try:
            self.sink.deliver(rows, epoch)
        except Exception as error:
            again = "it will be handed over again at the next start"
            if self.context.temporary:
                again = "without a checkpoint it will not be handed over again"
            raise RunError(
                f"{self.sink.receiver} of query '{self.context.query}' failed in epoch {epoch}: "
                f"{_told(error)}. The epoch is committed: {again}."
            ) from error
        self._spent.extend(names)

    def clear(self) -> None:
        for name in self._spent:
            self._place.remove(name)
        self._spent.clear()

    def discard(self, epoch: int, attempt: str) -> None:
        staged = self._prefix(epoch, attempt)
        # If that fails, the next start does it; the error that brought us here says more
        with contextlib.suppress(OSError):
            for name in self._place.names(f"{RESULTS}/{self._query}", ".arrow"):
                if name.startswith(staged):
                    self._place.remove(name)

    def recover(self, epoch: int) -> None:
        # What a crash left in the checkpoint is cleared away for all queries together
        self._recovered = True

    def close(self) -> None:
        self.sink.closed()

    def _read(self, name: str, epoch: int) -> pl.DataFrame:
        try:
            return pl.read_ipc(io.BytesIO(without_checksum(self._place.read(name))))
        except FileNotFoundError as error:
            raise StateError(
                f"The results of query '{self.context.query}' in epoch {epoch} are committed, but "
                f"'{self._place}/{name}', with which they are to be handed over, is not there. Start once "
                "with the sink that the query had then; if it had this one, restore the file from a copy, "
                "or start with a new checkpoint folder."
            ) from error
        except (OSError, Damaged, pl.exceptions.PolarsError) as error:
            raise StateError(
                f"Results that wait to be handed over, '{self._place}/{name}', cannot be read: {error}. "
                "Restore the file from a copy, or start with a new checkpoint folder."
            ) from error


def _told(error: Exception) -> str:
    return str(error).rstrip(".") if isinstance(error, AnabranchError) else f"{error!r:.500}"


@dataclass
class MemorySink(Delivered):
    """Results kept in this process: `rows()` gives them all, for notebooks and tests.

    It may be given again to a run that goes on from the same checkpoint, to no other.
    """

    epochs: dict[int, pl.DataFrame] = field(default_factory=dict)
    _run: str | None = None
    _open: bool = False

    def open(self, context: WriteContext) -> DriverWriter:
        if self._open:
            raise StateError(
                f"The memory sink of '{context.query}' is taking the results of run {self._run} now. Stop "
                "that run first, or give every run a MemorySink of its own."
            )
        if self._run != context.run and self.epochs:
            raise StateError(
                f"The memory sink of '{context.query}' has the results of run {self._run}, another one: "
                "give every run a MemorySink of its own."
            )
        self._run, self._open = context.run, True
        return DriverWriter(self, context)

    def closed(self) -> None:
        self._open = False

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        self.epochs[epoch] = rows

    def rows(self) -> pl.DataFrame:
        """All results so far, in the order of epochs; an empty frame if there are none."""
        frames = [self.epochs[epoch] for epoch in sorted(self.epochs)]
        return pl.concat(frames) if frames else pl.DataFrame()

    def to_arrow(self) -> pa.Table:
        return self.rows().to_arrow()


@dataclass
class ConsoleSink(Delivered):
    """Prints the first rows of every epoch."""

    limit: int = 10
    query: str = ""

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        with pl.Config(tbl_rows=self.limit, tbl_hide_dataframe_shape=True):
            shown = rows.head(self.limit)
            more = rows.height - shown.height
            after = f"\n… and {more:,} more" if more else ""
            count = several(rows.height, "row")
            print(f"epoch {epoch}, {self.query}: {count}\n{shown}{after}", flush=True)


@dataclass
class ForeachSink(Delivered):
    """Calls `function(arrow_table, epoch)` for every epoch with results."""

    receiver: ClassVar[str] = "The function of the sink"
    function: Callable[[pa.Table, int], Any]

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        self.function(rows.to_arrow(), epoch)
