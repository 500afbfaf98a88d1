"""The writer of a table: what tasks stage, and how the driver hands it over so that it counts once.

Where tasks can write into the table's own folder, they stage files there that the table only has to take in
(`adopt`). Otherwise, and always where rows replace earlier ones, they stage files in the checkpoint, and the
driver hands the rows over.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from anabranch.errors import AnabranchError, RunError, StateError
from anabranch.language.updates import GONE
from anabranch.sinks.base import WriteContext
from anabranch.sinks.staging import RESULTS, Staging, hidden_epoch
from anabranch.sinks.tables.parts import TableStaging
from anabranch.sinks.tables.table import Conflict, NewFile, SinkTable, TableShape, Taking
from anabranch.state.checksum import Damaged, without_checksum
from anabranch.state.folders import make_file, make_folder, sync
from anabranch.state.manifest import ResultPart

TRIES = 12
"""How often an epoch is offered to a table that others change at the same time."""
FIRST_WAIT = 0.02
"""Seconds before the second try; each wait is twice the one before, up to a second."""
STAGED = "_anabranch"
"""The folder in a table's own where files wait; tables pass over names that begin like this."""


@dataclass
class TableWriter:
    """A table that one run writes to."""

    table: SinkTable
    shape: TableShape
    context: WriteContext
    _recovered: bool = False
    _spent: list[str] = field(default_factory=list)
    """What was staged in the checkpoint and may go."""
    _warned: bool = False
    """Whether it was told that the care for the table fails."""

    @property
    def repeats(self) -> bool:
        return False

    def staging(self, epoch: int, attempt: str) -> Staging:
        shape, fsync, private = self.shape, self.context.fsync, self.context.private
        marked = {GONE: pl.Boolean()} if self.context.marked else {}
        types = {**shape.types, **marked}
        if self._adopting is None:
            root, prefix = str(self.context.checkpoint), self._prefix(epoch, attempt)
            return TableStaging(
                root, prefix, "arrow", fsync, private, summed=True, types=types, zeros=shape.zeros
            )
        root, prefix = str(self._adopting), f"{hidden_epoch(epoch, attempt)}/"
        return TableStaging(
            root, prefix, "parquet", fsync, private, types=types,
            partition_by=shape.partition_by, bare=shape.bare,
        )  # fmt: skip

    @property
    def _adopting(self) -> Path | None:
        """Where files of this query wait that the table will have for its own."""
        if self.shape.folder is None or self.shape.keys is not None:
            return None
        return self.shape.folder / STAGED / f"{self.context.run}-{self._query}"

    @property
    def _query(self) -> str:
        """What the query was called when the epoch at hand was committed."""
        return self.context.query if self._recovered else self.context.formerly

    def _prefix(self, epoch: int, attempt: str) -> str:
        return f"{RESULTS}/{self._query}/{epoch:012d}-{attempt}-"

    def publish(self, parts: Sequence[ResultPart], epoch: int, attempt: str) -> None:
        taking = Taking(self.context.run, self._query, epoch)
        staged = [f"{self._prefix(epoch, attempt)}{part.name}" for part in parts]
        take = (
            self._rows_taker(staged, taking)
            if self._adopting is None
            else self._files_taker(parts, taking, attempt)
        )
        before = self._persist(take, taking)
        if self._adopting is None:
            self._spent.extend(staged)
        else:
            shutil.rmtree(self._adopting / hidden_epoch(epoch, attempt), ignore_errors=True)
        every = self.shape.tend_every
        if every and epoch // every > max(before, 0) // every:
            self._tend()

    def _tend(self) -> None:
        """Cares for the table. The epoch is in it whatever comes of that, so no run ends by it."""
        try:
            self.table.tend()
        except Conflict:
            pass  # another time, then: whoever has changed the table may have done the same
        except Exception as error:  # the libraries of tables have errors of all kinds
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self.shape.what}: its small files could not be brought together, or old ones not "
                    f"deleted: {error!r:.500}. The results are in the table, and the run goes on; this is "
                    f"tried again every {self.shape.tend_every} epochs, and not told again.",
                    stacklevel=2,
                )

    def _persist(self, take: Callable[[], None], taking: Taking) -> int:
        """Has the table take the epoch in unless it has it; gives the last one that it had, or -1."""
        failed = (
            f"{self.shape.what} could not take in epoch {taking.epoch} of query '{taking.query}'"
        )
        again = "it will be handed over again at the next start"
        if self.context.temporary:
            again = "without a checkpoint it will not be handed over again"
        wait = FIRST_WAIT
        for _ in range(TRIES):
            try:
                reached = self.table.reached(taking.app)
                if reached is None or reached < taking.epoch:
                    take()
                return -1 if reached is None else reached
            except Conflict:
                time.sleep(wait)
                wait = min(2 * wait, 1.0)
            except AnabranchError:
                raise
            except Exception as error:
                raise RunError(
                    f"{failed}: {error!r:.500}. The epoch is committed: {again}."
                ) from error
        raise RunError(
            f"{failed}: others changed the table each of {TRIES} times. The epoch is committed: {again}."
        )

    def _rows_taker(self, staged: Sequence[str], taking: Taking) -> Callable[[], None]:
        def take() -> None:
            rows = pl.concat([self._read(name, taking.epoch) for name in sorted(staged)])
            if self.shape.keys is None:
                return self.table.append(rows, taking)
            gone = rows.clear()
            if self.context.marked:
                rows, gone = rows.filter(~pl.col(GONE)), rows.filter(GONE)
                rows, gone = rows.drop(GONE), gone.drop(GONE)
            return self.table.merge(rows, gone, self.shape.keys, taking)

        return take

    def _files_taker(
        self, parts: Sequence[ResultPart], taking: Taking, attempt: str
    ) -> Callable[[], None]:
        assert self._adopting is not None
        assert self.shape.folder is not None
        waiting = self._adopting / hidden_epoch(taking.epoch, attempt)
        folder = self.shape.folder

        def take() -> None:
            files = []
            for part in parts:
                folders, slash, own = part.name.rpartition("/")
                name = f"{folders}{slash}{self.context.run[:8]}-{taking.epoch}-{attempt}-{own}"
                self._place(waiting / part.name, folder / name, part, taking)
                files.append(NewFile(folder / name, name, part))
            if self.context.fsync:
                for above in {file.path.parent for file in files}:
                    sync(above)
            self.table.adopt(files, taking)

        return take

    def _place(self, staged: Path, target: Path, part: ResultPart, taking: Taking) -> None:
        """Puts a file where the table wants it; what is there already stays, and so does what was staged:
        until the table names it, a vacuum may take the file away."""
        make_folder(target.parent, self.context.private)
        # Without what was staged, the other of two runs was here
        if not target.exists():
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                os.utime(staged)  # as old as its time a vacuum would take it for
                try:
                    os.link(staged, target)
                except (FileNotFoundError, FileExistsError):
                    raise
                except OSError:  # not every file system has links
                    copy = staged.with_name(f"{staged.name}.{uuid.uuid4().hex}")
                    make_file(copy, self.context.private)
                    shutil.copyfile(staged, copy)
                    if self.context.fsync:
                        sync(copy)
                    os.replace(copy, target)
        size = target.stat().st_size if target.exists() else None
        if size != part.bytes:
            state = "is not there" if size is None else f"has {size} bytes, not {part.bytes}"
            raise StateError(
                f"The results of query '{taking.query}' in epoch {taking.epoch} are committed, but the file "
                f"'{target}' with which {self.shape.what} is to get them {state}. Restore it from a copy, "
                "start with the sink that the query had, or start with a new checkpoint folder."
            )

    def _read(self, name: str, epoch: int) -> pl.DataFrame:
        try:
            return pl.read_ipc(io.BytesIO(without_checksum(self.context.checkpoint.read(name))))
        except (OSError, Damaged, pl.exceptions.PolarsError) as error:
            raise StateError(
                f"The results of query '{self._query}' in epoch {epoch} are committed, but "
                f"'{self.context.checkpoint}/{name}', with which {self.shape.what} is to get them, cannot be "
                f"read: {error}. Restore it from a copy, start once with the sink that the query had, or "
                "start with a new checkpoint folder."
            ) from error

    def clear(self) -> None:
        for name in self._spent:
            self.context.checkpoint.remove(name)
        self._spent.clear()

    def discard(self, epoch: int, attempt: str) -> None:
        if self._adopting is not None:
            shutil.rmtree(self._adopting / hidden_epoch(epoch, attempt), ignore_errors=True)
            return
        staged = self._prefix(epoch, attempt)
        # If that fails, the next start does it; the error that brought us here says more
        with contextlib.suppress(OSError):
            for name in self.context.checkpoint.names(f"{RESULTS}/{self._query}", ".arrow"):
                if name.startswith(staged):
                    self.context.checkpoint.remove(name)

    def recover(self, epoch: int) -> None:
        reached = self.table.reached(Taking(self.context.run, self._query, epoch).app)
        if reached is not None and reached > epoch:
            raise StateError(
                f"{self.shape.what} has epoch {reached} of run {self.context.run}, query '{self._query}', "
                f"but the checkpoint has come to epoch {epoch}: it is an older copy. Use the newer one, or "
                "a new checkpoint folder and another table."
            )
        if self._adopting is not None:
            for waiting in self._adopting.glob("_epoch=*"):
                shutil.rmtree(waiting, ignore_errors=True)
        self._recovered = True

    def close(self) -> None:
        self.table.close()
