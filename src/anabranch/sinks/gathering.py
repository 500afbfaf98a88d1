"""When small epochs of a result folder are gathered (`spans.py`): by size, by age, at the end of a run."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from anabranch.errors import AnabranchError, RunError
from anabranch.sinks.file_writer import FileWriter
from anabranch.sinks.spans import (
    WAITING,
    Spans,
    refuse_later,
    shown_until,
)
from anabranch.sinks.staging import Staging, hidden_epoch, recover_epochs
from anabranch.state.folders import sync
from anabranch.state.manifest import ResultPart

OF_A_SPAN = 1 / 4
"""Of `retain`: as long a span takes files, so that it can go as a whole."""


@dataclass
class GatheringWriter:
    """A result folder held by one run, whose epochs wait until there is enough of them."""

    plain: FileWriter
    age: float
    """Seconds that results wait at most."""
    spans: Spans
    _bytes: int = 0
    """Of what waits."""
    _hidden: bool = False
    """Whether something may wait, also while it is being gathered and after that has failed."""
    _timer: threading.Timer | None = None
    _failure: AnabranchError | None = None
    _closed: threading.Event = field(default_factory=threading.Event)

    @property
    def repeats(self) -> bool:
        return False

    def staging(self, epoch: int, attempt: str) -> Staging:
        return self.plain.staging(epoch, attempt)

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        """From here on the epoch waits; it is as safe as a visible one."""
        folder = self.spans.folder
        staged = folder / hidden_epoch(epoch, attempt)
        waiting = folder / f"{WAITING}{epoch:012d}"
        with self.spans.locked():
            if shown_until(folder) >= epoch or waiting.exists():
                shutil.rmtree(staged, ignore_errors=True)
            else:
                self.plain.require_staged(staged, waiting, parts, epoch)
                for leftover in staged.glob(".*.tmp"):
                    leftover.unlink(missing_ok=True)
                os.replace(staged, waiting)
                sync(folder)
            self._hidden = True
        self._bytes += sum(part.bytes for part in parts)
        if self._timer is None:
            self._timer = threading.Timer(self.age, self._due)
            self._timer.daemon = True
            self._timer.start()

    def clear(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._bytes >= self.spans.target_bytes:
            self._gather()
        with self.spans.locked():
            self.plain.clear()

    def _due(self) -> None:
        try:
            self._gather(beside=True)
        except AnabranchError as error:
            # Told with the next epoch
            self._failure = error

    def _gather(self, beside: bool = False) -> None:
        """Makes all that waits visible; beside the run only as long as that has the folder."""
        timer, self._timer, self._bytes = self._timer, None, 0
        if timer is not None:
            timer.cancel()
        try:
            with self.spans.locked():
                if not (beside and self._closed.is_set()):
                    self.spans.gather(time.time())
                    self._hidden = False
        except (OSError, pa.ArrowException, pl.exceptions.PolarsError) as error:
            reason = getattr(error, "strerror", None) or error
            raise RunError(
                f"The results of query '{self.plain.query}' are committed and wait in '{self.spans.folder}', "
                f"but cannot be gathered: {reason}. Mend the folder and start again."
            ) from error

    def discard(self, epoch: int, attempt: str) -> None:
        self.plain.discard(epoch, attempt)

    def recover(self, epoch: int) -> None:
        with self.spans.locked():
            refuse_later(self.spans.folder, epoch)
            recover_epochs(self.spans.folder, epoch)
            self.spans.recover()
        self._gather()

    def close(self) -> None:
        """Makes all that waits visible, and lets go of the folder."""
        self._closed.set()
        with contextlib.closing(self.plain):
            if self._hidden or self._timer is not None:
                self._gather()
