"""Whose a result folder is: the id of its run stands in it, and a lock is held while that run goes on.

    out/flows/_lock
    out/flows/_run=1c0e…, at=9b04d2f1, checkpoint=%2Fdata%2Fckpt

Both files are empty, for there are tools that read every file of a folder with anything in it. The lock is on
a file in the folder, so it holds however the folder is spelt: through links, with `..`, mounted twice. A
folder without results may change hands, for its run has nothing in it to lose. A checkpoint that was moved
or restored elsewhere keeps its folders; two copies of one cannot have them at the same time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

from anabranch.errors import SettingsError, StateError
from anabranch.sources.paths import HIDDEN
from anabranch.state.folders import make_file, make_folder
from anabranch.state.place import Place

LOCK, OWNER = "_lock", "_run="
MOST_LOOKED_INTO = 200
"""Folders below one that are looked into for another run's: a result folder has few but its epochs."""
LONGEST = 150
"""Bytes of a checkpoint's name, the last ones, that are kept in the name of a file."""


@dataclass(frozen=True)
class Claim:
    """A folder that a run holds."""

    folder: Path
    lock: IO[str]

    def close(self) -> None:
        self.lock.close()


@dataclass(frozen=True)
class Owner:
    """Who a folder says it belongs to."""

    run: str
    tag: str
    """Tells checkpoints apart, however long their names are."""
    checkpoint: str
    """What is kept of its name; empty if the run had none to go on from."""

    @classmethod
    def of(cls, run: str, checkpoint: Place, temporary: bool) -> Owner:
        address = os.fsencode(checkpoint.address)
        tag = hashlib.sha256(address).hexdigest()[:8]
        return cls(run, tag, "" if temporary else _tail(address))

    @classmethod
    def recorded(cls, folder: Path) -> list[Owner]:
        owners = []
        for path in sorted(folder.glob(f"{OWNER}*")):
            run, _, rest = path.name.removeprefix(OWNER).partition(", at=")
            tag, _, checkpoint = rest.partition(", checkpoint=")
            owners.append(cls(run, tag, checkpoint))
        return owners

    @property
    def file(self) -> str:
        checkpoint = f", checkpoint={self.checkpoint}" if self.checkpoint else ""
        return f"{OWNER}{self.run}, at={self.tag}{checkpoint}"

    def __str__(self) -> str:
        if not self.checkpoint:
            return f"run {self.run}, which had no checkpoint"
        return f"run {self.run} (checkpoint '{unquote(self.checkpoint)}')"


def claim(
    folder: Path, what: str, run: str, checkpoint: Place, results: Sequence[str], private: bool,
    temporary: bool,
) -> Claim:  # fmt: skip
    """Takes a folder for a run, or raises an error that says whose it is or why it cannot be written.

    `what` is what it is to hold, e.g. "The sink of 'flows'"; `results` the patterns of what makes it used.
    """
    owner = Owner.of(run, checkpoint, temporary)
    _refuse_nested(folder, what, owner)
    try:
        make_folder(folder, private)
        make_file(folder / LOCK, private)
        lock = open(folder / LOCK, "a")  # noqa: SIM115 - held until it is closed
    except (OSError, ValueError) as error:
        raise _unwritable(what, folder, error) from error
    try:
        _lock(lock, what, folder, owner)
        _refuse_other(folder, what, owner, results)
        try:
            for other in Owner.recorded(folder):
                if other != owner:
                    (folder / other.file).unlink(missing_ok=True)
            make_file(folder / owner.file, private)
        except OSError as error:
            raise _unwritable(what, folder, error) from error
    except BaseException:
        lock.close()
        raise
    return Claim(folder, lock)


def _lock(lock: IO[str], what: str, folder: Path, owner: Owner) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        recorded = Owner.recorded(folder)
        if recorded == [owner]:
            return  # of two drivers of one run, the ledger says which may go on
        writing = f"{what} is the folder '{folder}', which {_told(recorded)} is writing to"
        if [other.run for other in recorded] == [owner.run]:
            raise StateError(
                f"{writing}: this checkpoint is a copy of that one, and each would go on by itself. Stop "
                "that run first, or use another folder and a new checkpoint."
            ) from error
        raise StateError(f"{writing}. Stop that run first, or use another folder.") from error


def _refuse_other(folder: Path, what: str, owner: Owner, results: Sequence[str]) -> None:
    used_by = (path for pattern in results for path in folder.glob(pattern))
    first = min((path.relative_to(folder) for path in used_by), default=None)
    recorded = Owner.recorded(folder)
    if first is None or {other.run for other in recorded} == {owner.run}:
        return
    used = f"{what} is the folder '{folder}', which already has '{first}' of {_told(recorded)}"
    if any(other.tag == owner.tag for other in recorded):
        raise StateError(
            f"{used}. That checkpoint begins anew now: was it removed? Restore it to go on, empty the "
            "result folder to begin anew, or use another folder."
        )
    if recorded and not any(other.checkpoint for other in recorded):
        raise StateError(
            f"{used} and cannot go on. Empty the folder or use another one. With a checkpoint, the next run "
            "goes on in the same folder: start(checkpoint='folder')."
        )
    raise StateError(
        f"{used}: that is another run. Use another folder, the checkpoint of that run, or empty the folder."
    )


def _refuse_nested(folder: Path, what: str, owner: Owner) -> None:
    """Refuses a folder within that of another run, or around one: its readers would read both."""
    for above in folder.parents:
        other = _other_within(above, folder, owner)
        if other is not None:
            raise StateError(
                f"{what} is the folder '{folder}', inside '{above}', with results of another run, {other}: "
                "whoever reads that would read both. Choose a folder outside, or one that begins with '_'."
            )
    for below in _shown_folders(folder):
        other = _other_within(below, below, owner)
        if other is not None:
            raise StateError(
                f"{what} is the folder '{folder}', and '{below}' inside has results of another run, {other}: "
                "whoever reads the outer one would read both. Choose another folder."
            )


def _other_within(claimed: Path, folder: Path, owner: Owner) -> Owner | None:
    """The other run whose results are in a claimed folder, that readers of it find beside this folder."""
    others = [other for other in Owner.recorded(claimed) if other.run != owner.run]
    way = folder.relative_to(claimed).parts
    if not others or any(name.startswith(HIDDEN) for name in way):
        return None
    used = (name for name in os.listdir(claimed) if name not in (LOCK, *way[:1]))
    return others[0] if any(not name.startswith(OWNER) for name in used) else None


def _shown_folders(folder: Path) -> Iterator[Path]:
    """The folders below that readers look into, but those of epochs; the first of them, nearest first."""
    waiting, seen = deque([folder]), 0
    while waiting and seen < MOST_LOOKED_INTO:
        current, seen = waiting.popleft(), seen + 1
        with contextlib.suppress(OSError), os.scandir(current) as entries:
            for entry in entries:
                if entry.name.startswith(("epoch=", *HIDDEN)) or not entry.is_dir(
                    follow_symlinks=False
                ):
                    continue
                yield Path(entry.path)
                waiting.append(Path(entry.path))


def _told(owners: list[Owner]) -> str:
    return str(owners[0]) if owners else "a run that is not named there"


def _tail(name: bytes) -> str:
    """The end of a name as part of another one."""
    kept = name[-LONGEST:]
    while len(quote(kept, safe="")) > LONGEST or (kept and kept[0] & 0xC0 == 0x80):
        kept = kept[1:]
    return quote(kept, safe="")


def _unwritable(what: str, folder: Path, error: OSError | ValueError) -> SettingsError:
    return SettingsError(
        f"{what} cannot be written to '{folder}': {getattr(error, 'strerror', None) or error}. Choose "
        "another folder, or change what is in its way."
    )
