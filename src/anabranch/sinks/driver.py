"""Sinks that take results in the driver process: memory, console, a function, any Spark writer.

Tasks stage Arrow files in the checkpoint; once the epoch is committed the driver reads them and hands
the rows over, then removes them. After a crash the last epoch may be handed over again, with the same
epoch number: a receiver that must not see it twice remembers the number.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from anabranch.amount import several
from anabranch.errors import RunError, StateError
from anabranch.sinks.base import WriteContext
from anabranch.sinks.staging import Staging, hidden_epoch
from anabranch.state.checksum import Damaged, without_checksum


class Delivered:
    """The common part of such sinks: a writer that hands each epoch over to `deliver`."""

    def open(self, context: WriteContext) -> DriverWriter:
        return DriverWriter(self, context)

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        raise NotImplementedError

    def closed(self) -> None:
        """Called when the run that had it open lets go of it."""

    def describe(self) -> str:
        return type(self).__name__.removesuffix("Sink").lower()


@dataclass(frozen=True)
class DriverWriter:
    """Stages as Arrow in the checkpoint, reads back in the order of the parts, hands over, clears."""

    sink: Delivered
    context: WriteContext

    @property
    def _folder(self) -> Path:
        return self.context.checkpoint / "results" / self.context.query

    def staging(self, epoch: int, attempt: str) -> Staging:
        folder = self._folder / hidden_epoch(epoch, attempt)
        known = self.context
        return Staging(str(folder), "arrow", known.fsync, known.private, summed=True)

    def publish(self, staged: Path, epoch: int) -> None:
        delivered = staged.with_name(f"delivered{staged.name}")
        if delivered.exists() or not staged.exists():
            return
        parts = sorted(staged.glob("part-*.arrow"))
        if parts:
            self.sink.deliver(pl.concat([_read(part) for part in parts]), epoch)
        # Away at once: a crash amid deleting would hand over the rest as if it were the epoch. The
        # empty folder stays, for a task that ran twice may come late and stage its part again.
        os.replace(staged, delivered)
        self._clear(delivered.name)

    def discard(self, staged: Path) -> None:
        shutil.rmtree(staged, ignore_errors=True)

    def recover(self, epoch: int) -> None:
        self._clear(f"delivered{hidden_epoch(epoch, '')}")

    def close(self) -> None:
        self.sink.closed()

    def _clear(self, kept: str) -> None:
        """Removes everything but the mark of the last epoch that was handed over."""
        for path in self._folder.glob("*"):
            if path.name.startswith(kept):
                for part in path.iterdir():
                    part.unlink(missing_ok=True)
            else:
                shutil.rmtree(path, ignore_errors=True)


def _read(part: Path) -> pl.DataFrame:
    try:
        return pl.read_ipc(io.BytesIO(without_checksum(part.read_bytes())))
    except (OSError, Damaged, pl.exceptions.PolarsError) as error:
        raise StateError(
            f"Results that wait to be handed over, '{part}', cannot be read: {error}. Restore the file "
            "from a copy, or remove its folder to do without these results."
        ) from error


@dataclass
class MemorySink(Delivered):
    """Results kept in this process: `rows()` gives them all, for notebooks and tests.

    It may be given again to a run that goes on from the same checkpoint, to no other.
    """

    epochs: dict[int, pl.DataFrame] = field(default_factory=dict)
    _run: str | None = None
    _open: bool = False

    def open(self, context: WriteContext) -> DriverWriter:
        # Of two drivers of one run, the ledger says which may go on
        if self._run != context.run and (self._open or self.epochs):
            state = "is taking" if self._open else "has"
            raise StateError(
                f"The memory sink of '{context.query}' {state} the results of run {self._run}, another one: "
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

    function: Callable[[pa.Table, int], Any]

    def deliver(self, rows: pl.DataFrame, epoch: int) -> None:
        try:
            self.function(rows.to_arrow(), epoch)
        except Exception as error:
            raise RunError(
                f"The function of a foreach sink failed in epoch {epoch}: {error!r}. The epoch is "
                "committed: it will be handed over again at the next start."
            ) from error
