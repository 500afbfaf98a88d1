"""Whose a result folder is: the id of its run stands in it, and a lock is held while that run goes on.

    out/flows/_lock
    out/flows/_run=1c0e…, checkpoint=%2Fdata%2Fckpt

Both files are empty, for there are tools that read every file of a folder with anything in it. The lock is on
a file in the folder, so it holds however the folder is spelt: through links, with `..`, mounted twice. A
folder without results may change hands, for its run has nothing in it to lose.
"""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

from anabranch.errors import SettingsError, StateError
from anabranch.state.folders import make_file, make_folder

LOCK, OWNER = "_lock", "_run="
LONGEST = 120
"""Letters of a checkpoint's name, the last ones, that are kept in the name of a file."""


@dataclass(frozen=True)
class Claim:
    """A folder that a run holds."""

    folder: Path
    lock: IO[str]

    def release(self) -> None:
        self.lock.close()


def claim(folder: Path, what: str, run: str, checkpoint: str, results: str, private: bool) -> Claim:
    """Takes a folder for a run, or raises an error that says whose it is or why it cannot be written.

    `what` is what it is to hold, e.g. "The sink of 'flows'"; `results` the pattern of what makes it used.
    """
    try:
        make_folder(folder, private)
        make_file(folder / LOCK, private)
        lock = open(folder / LOCK, "a")  # noqa: SIM115 - held until released
    except OSError as error:
        raise _unwritable(what, folder, error) from error
    try:
        _lock(lock, what, folder, run)
        _refuse_other(folder, what, run, results)
        try:
            for other in folder.glob(f"{OWNER}*"):
                if _id(other.name) != run:
                    other.unlink()
            tail = quote(checkpoint[-LONGEST:], safe="")
            make_file(folder / f"{OWNER}{run}, checkpoint={tail}", private)
        except OSError as error:
            raise _unwritable(what, folder, error) from error
    except BaseException:
        lock.close()
        raise
    return Claim(folder, lock)


def _lock(lock: IO[str], what: str, folder: Path, run: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if _owners(folder) == {run}:
            return  # of two drivers of one run, the ledger says which may go on
        raise StateError(
            f"{what} is the folder '{folder}', which {_whose(folder)} is writing to. Stop that run first, "
            "or use another folder."
        ) from error


def _refuse_other(folder: Path, what: str, run: str, results: str) -> None:
    first = min((path.relative_to(folder) for path in folder.glob(results)), default=None)
    if first is not None and _owners(folder) != {run}:
        raise StateError(
            f"{what} is the folder '{folder}', which already has '{first}' of {_whose(folder)}: that is "
            "another run. Use another folder, or the checkpoint of that run."
        )


def _owners(folder: Path) -> set[str]:
    return {_id(path.name) for path in folder.glob(f"{OWNER}*")}


def _id(name: str) -> str:
    return name.removeprefix(OWNER).split(",")[0]


def _whose(folder: Path) -> str:
    for path in sorted(folder.glob(f"{OWNER}*")):
        checkpoint = unquote(path.name.partition("checkpoint=")[2])
        return f"run {_id(path.name)} (checkpoint '{checkpoint}')"
    return "a run that is not named there"


def _unwritable(what: str, folder: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"{what} cannot be written to '{folder}': {error.strerror}. Choose another folder, or change "
        "what is in its way."
    )
