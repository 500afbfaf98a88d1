"""The dead-letter folder: what could not be read, and rows that came too late, with the reason.

    bad/<stream>/epoch=…/    a reason for each broken file, its copy or its bad lines
    late/<stream>/epoch=…/   late rows as Parquet

Tasks write into a hidden folder of the epoch; the commit makes it visible.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from anabranch.errors import RunError
from anabranch.sinks.staging import Staging, hidden_epoch, recover_epochs, reveal, visible_epoch
from anabranch.sources.base import Bad
from anabranch.sources.paths import shown
from anabranch.state.folders import make_file, make_folder, sync
from anabranch.state.uris import bucket_of, is_object

KINDS = ("bad", "late")
LONGEST_NAME = 150
"""Bytes of a file's own name in that of its copy: file systems take 255 in all."""


@dataclass(frozen=True)
class Letters:
    """The dead letters of a stream in an epoch; without a folder nothing is kept."""

    folder: str | None
    stream: str
    epoch: int
    attempt: str
    fsync: bool
    private: bool

    def keep_rows(self, kind: str, rows: pl.DataFrame, part: str) -> None:
        """Keeps rows aside as Parquet, as bad or as late ones."""
        if self.folder:
            kept = rows.drop([name for name in rows.columns if name.startswith("__")])
            prefix = f"{kind}/{self.stream}/{hidden_epoch(self.epoch, self.attempt)}/"
            Staging(self.folder, prefix, "parquet", self.fsync, self.private).write(kept, part)

    def keep_bad(self, bad: Bad) -> None:
        """Keeps a broken file, or the bad lines of one, with the reason."""
        if not self.folder:
            return
        waiting = hidden_epoch(self.epoch, self.attempt)
        place = Path(self.folder) / "bad" / self.stream / waiting
        # Several pieces of one file may meet the same fault: the name makes its copies one
        tag = hashlib.sha256(os.fsencode(bad.file)).hexdigest()[:12]
        name = f"{tag}-{_short(os.path.basename(shown(bad.file)))}"
        record = {
            "stream": self.stream,
            "file": shown(bad.file),
            "reason": bad.reason,
            "lines": bad.rows,
        }
        if bad.part:
            record["part"] = f"{bad.part} of the file; the rest of it was read"
        note = f"{name}.{bad.part.replace(' ', '-')}" if bad.part else name
        try:
            make_folder(place, self.private, self.fsync)
            written = [self._write(place / f"{note}.reason.json", json.dumps(record))]
            if bad.lines:
                written.append(self._write(place / f"{name}.lines.jsonl", "\n".join(bad.lines)))
            # What is no regular file cannot be copied, or has no end
            if not bad.rows == len(bad.lines) > 0 and os.path.isfile(bad.file):
                written.append(place / name)
                make_file(written[-1], self.private)
                shutil.copyfile(bad.file, written[-1])
            elif not bad.rows == len(bad.lines) > 0 and is_object(bad.file):
                written += _copied(bad.file, place / name, self.private)
            if self.fsync:
                # The epoch counts them as told: they must outlive a loss of power as its state does
                for path in (*written, place):
                    sync(path)
        except OSError as error:
            raise RunError(
                f"Cannot write to the dead-letter folder '{place}': {error.strerror or error}. The epoch "
                "is not counted; free space or mend the folder and start again."
            ) from error

    def _write(self, path: Path, text: str) -> Path:
        make_file(path, self.private)
        path.write_text(f"{text}\n")
        return path


def _copied(uri: str, target: Path, private: bool) -> list[Path]:
    """A copy of an object; none if the object is gone."""
    bucket, key = bucket_of(uri)
    make_file(target, private)
    try:
        with open(target, "wb") as copy:
            bucket.fetch(key, copy)
    except FileNotFoundError:
        target.unlink()
        return []
    return [target]


def _short(name: str) -> str:
    """A name that leaves room for what stands around it; the reason has the whole of it."""
    if len(name.encode()) <= LONGEST_NAME:
        return name
    ending = Path(name).suffix[-8:]
    return name.encode()[:LONGEST_NAME].decode("utf-8", "ignore") + ending


def publish(dead_letter: str | None, streams: Iterable[str], epoch: int, attempt: str) -> None:
    """Makes the dead letters of a committed epoch visible; safe to repeat."""
    for folder in _folders(dead_letter, streams):
        waiting = folder / hidden_epoch(epoch, attempt)
        if waiting.exists():
            reveal(waiting, folder / visible_epoch(epoch))


def discard(dead_letter: str | None, streams: Iterable[str], epoch: int, attempt: str) -> None:
    """Removes the dead letters of an epoch that was not committed."""
    for folder in _folders(dead_letter, streams):
        shutil.rmtree(folder / hidden_epoch(epoch, attempt), ignore_errors=True)


def recover(dead_letter: str | None, streams: Iterable[str], epoch: int) -> None:
    """Removes what a crash left waiting; refuses a folder with letters of another run."""
    for folder in _folders(dead_letter, streams):
        recover_epochs(folder, epoch)


def _folders(dead_letter: str | None, streams: Iterable[str]) -> list[Path]:
    if dead_letter is None:
        return []
    return [Path(dead_letter) / kind / stream for kind in KINDS for stream in streams]
