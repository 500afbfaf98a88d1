"""Small epochs of a result folder gathered into few files, each row visible once at any moment.

    out/flows/_waiting=000000000014/part-…                                 committed, not yet to be seen
    out/flows/epoch=000000000000/part-000000000000-000000000013-1.parquet  a span: files of several epochs

What waits becomes one file, which is renamed into the newest *span*; a span has the name of its first epoch,
a file those of the first and last epoch in it, and how often it was merged. Files of a span are merged in a
folder beside it, which is exchanged with it at one moment: whoever lists a span sees it as it was before or
after. No row ever goes from one span to another. All that is done here follows from what lies in the folder,
under a lock, so that it may be stopped anywhere, and repeated by anyone. When to do it: `gathering.py`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from anabranch.errors import SettingsError, StateError
from anabranch.sinks.staging import SUFFIX, WRITERS, visible_epoch
from anabranch.state.folders import exchange, make_file, make_folder, sync

WAITING, MAKING, LOCK = "_waiting=", "_making=", "_gather"
FAN = 16
"""Files of one rank in a span that are merged into one of the next."""
_FILE = re.compile(r"part-(\d{12})-(\d{12})-(\d+)\.\w+")


@dataclass(frozen=True)
class SpanFile:
    """A file of a span."""

    path: Path
    first: int
    last: int
    rank: int

    @classmethod
    def of(cls, path: Path) -> SpanFile | None:
        found = _FILE.fullmatch(path.name)
        return cls(path, *map(int, found.groups())) if found else None


@dataclass(frozen=True)
class Spans:
    """The spans of a result folder, and what waits to become part of them."""

    folder: Path
    format: str
    fsync: bool
    private: bool
    target_bytes: int
    """A span that has as many is left alone, and the next one begun."""
    oldest_seconds: float | None = None
    """So is one whose first file is as old."""

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the folder, among threads and drivers."""
        if not (self.folder / LOCK).exists():
            make_file(self.folder / LOCK, self.private)
        with open(self.folder / LOCK, "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def waiting(self) -> list[tuple[int, Path]]:
        """What is committed and not visible, by epoch."""
        found = self.folder.glob(f"{WAITING}*")
        return sorted((int(path.name.removeprefix(WAITING)), path) for path in found)

    def recover(self) -> None:
        """Removes what was being made, and what waits although it is visible."""
        for path in self.folder.glob(f"{MAKING}*"):
            shutil.rmtree(path, ignore_errors=True)
        shown = shown_until(self.folder)
        for epoch, path in self.waiting():
            if epoch <= shown:
                shutil.rmtree(path, ignore_errors=True)

    def reveal(self) -> None:
        """Makes what a run that gathered has left visible, each epoch for itself: the next one does not."""
        if (self.folder / LOCK).exists():
            with self.locked():
                self.recover()
                for epoch, path in self.waiting():
                    os.replace(path, self.folder / visible_epoch(epoch))

    def gather(self, now: float) -> None:
        """Makes all that waits visible at one moment, as one file."""
        self.recover()
        if waiting := self.waiting():
            first, last = waiting[0][0], waiting[-1][0]
            parts = [part for _, path in waiting for part in sorted(path.iterdir())]
            large = sum(part.stat().st_size for part in parts) >= self.target_bytes
            if first == last and large:
                os.replace(waiting[0][1], self.folder / visible_epoch(first))
                self._sync(self.folder)
                return self._tidy()
            span = self._open_span(now)
            made = self._make(f"{MAKING}{last:012d}")
            name = f"part-{first:012d}-{last:012d}-0.{SUFFIX[self.format]}"
            self._merge(parts, made / name)
            if span is None:
                os.replace(made, self.folder / visible_epoch(first))
            else:
                os.replace(made / name, span / name)
                self._sync(span)
            self._sync(self.folder)
            self.recover()
        self._tidy()

    def _open_span(self, now: float) -> Path | None:
        """The newest span, if more goes into it."""
        span = max(self.folder.glob("epoch=*"), default=None)
        files = _files(span) if span is not None else []
        if span is None or not files:
            return None
        told = [file.path.stat() for file in files]
        full = sum(one.st_size for one in told) >= self.target_bytes
        limit = self.oldest_seconds
        old = limit is not None and min(one.st_mtime for one in told) < now - limit
        return None if full or old else span

    def _tidy(self) -> None:
        """Merges files of the newest span and, once it is full, of the last one before into one."""
        spans = sorted(self.folder.glob("epoch=*"))
        for span in spans[-2:-1]:
            for merged in _alike(_files(span)):
                if len(merged) > 1:
                    self._replace(span, merged)
        for span in spans[-1:]:
            while len(files := _files(span)) >= FAN:
                # The newest are of the least rank
                same = [file for file in files if file.rank == files[-1].rank]
                alike = _alike(same) if len(same) >= FAN else []
                many = next((some for some in alike if len(some) >= FAN), None)
                if many is None:
                    break
                self._replace(span, many)

    def _replace(self, span: Path, merged: Sequence[SpanFile]) -> None:
        """Puts one file in the place of several, for whoever lists the span at one moment."""
        made = self._make(f"{MAKING}{span.name.removeprefix('epoch=')}")
        first, last = merged[0].first, max(file.last for file in merged)
        rank = max(file.rank for file in merged) + 1
        name = f"part-{first:012d}-{last:012d}-{rank}.{SUFFIX[self.format]}"
        gone = {file.path for file in merged}
        for path in span.iterdir():
            if path not in gone:
                os.link(path, made / path.name)
        oldest = min(file.path.stat().st_mtime for file in merged)
        self._merge([file.path for file in merged], made / name)
        # So that it is told how long the rows have been there
        os.utime(made / name, (oldest, oldest))
        self._sync(made)
        exchange(made, span)
        self._sync(self.folder)
        shutil.rmtree(made, ignore_errors=True)

    def _make(self, name: str) -> Path:
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        make_folder(path, self.private)
        return path

    def _merge(self, parts: Sequence[Path], target: Path) -> None:
        WRITERS[self.format](pl.concat([_read(part) for part in parts]), target)
        os.chmod(target, parts[0].stat().st_mode & 0o777)
        self._sync(target)

    def _sync(self, path: Path) -> None:
        if self.fsync:
            sync(path)


def shown_until(folder: Path) -> int:
    """The last epoch that is visible in a result folder; -1 if none is."""
    newest = max(folder.glob("epoch=*"), default=None)
    if newest is None:
        return -1
    return max([int(newest.name.removeprefix("epoch=")), *(file.last for file in _files(newest))])


def refuse_later(folder: Path, epoch: int) -> None:
    """Refuses a folder that has more than the checkpoint, which has come to this epoch, knows."""
    there = [int(path.name.removeprefix(WAITING)) for path in folder.glob(f"{WAITING}*")]
    if max([shown_until(folder), *there]) > epoch:
        reached = f"has come to epoch {epoch}" if epoch >= 0 else "is new"
        raise StateError(
            f"The folder '{folder}' has results of epoch {max([shown_until(folder), *there])}, but the "
            f"checkpoint {reached}: it is an older copy. Use the checkpoint that wrote them, or another "
            "folder."
        )


def require_exchange(folder: Path) -> None:
    """Raises SettingsError if the file system cannot exchange two folders at one moment."""
    two = [folder / f"{MAKING}{name}" for name in ("a", "b")]
    try:
        for path in two:
            path.mkdir(exist_ok=True)
        exchange(*two)
    except OSError as error:
        raise SettingsError(
            f"The file system of '{folder}' cannot exchange two folders at one moment ({error.strerror}), "
            "which gathered results need: do without gather, or use another file system."
        ) from error
    finally:
        for path in two:
            shutil.rmtree(path, ignore_errors=True)


def _files(span: Path) -> list[SpanFile]:
    """The files of a span, oldest first; none if it is an epoch that was never gathered."""
    try:
        found = [SpanFile.of(path) for path in span.iterdir()]
    except FileNotFoundError:
        return []
    return sorted((file for file in found if file is not None), key=lambda file: file.first)


def _alike(files: Sequence[SpanFile]) -> list[list[SpanFile]]:
    """Those of the same columns together, for a query may have been changed: only these are merged."""
    if len(files) < 2:
        return [[*files]]
    by_columns: dict[object, list[SpanFile]] = {}
    for file in files:
        by_columns.setdefault(_columns(file.path), []).append(file)
    return [*by_columns.values()]


def _columns(path: Path) -> object:
    if path.suffix == ".arrow":
        return tuple(pl.read_ipc_schema(path).items())
    return tuple((field.name, field.type) for field in pq.read_schema(path))


def _read(path: Path) -> pl.DataFrame:
    if path.suffix == ".arrow":
        return pl.read_ipc(path)
    # As it was written: with the types of Arrow, and nothing told by the names of folders
    read = pl.from_arrow(pq.ParquetFile(path).read())
    assert isinstance(read, pl.DataFrame)
    return read
