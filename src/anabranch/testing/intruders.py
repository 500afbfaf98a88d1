"""Who else is there: a second run of the same session, a second driver on the same checkpoint.

Both run at a step of the first, not beside it in time, so that a seed does the same whenever it is run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from anabranch.engine.run import Run
from anabranch.errors import StateError
from anabranch.session import Session
from anabranch.sinks.driver import MemorySink

SPELLINGS = ("again", "uri", "link", "dots")
"""Ways to name the same checkpoint."""


@dataclass(frozen=True)
class EpochStep:
    """A step of an epoch of the run that was there first."""

    epoch: int
    step: str


@dataclass(frozen=True)
class Rival(EpochStep):
    """A second driver, which names the checkpoint in its own way.

    It is refused, unless the lock has been deleted: then it takes over for some epochs, and the first one
    must notice at its next commit.
    """

    spelling: str = SPELLINGS[0]
    epochs: int | None = None
    """How many epochs it runs after the lock is deleted; None for a lock that is left alone."""


def spelled(folder: Path, spelling: str) -> str:
    """A checkpoint folder by another name."""
    match spelling:
        case "uri":
            return folder.as_uri()
        case "link":
            link = folder.with_name("link")
            if not link.is_symlink():
                link.symlink_to(folder, target_is_directory=True)
            return str(link)
        case "dots":
            return os.path.join(folder.parent, "checkpoint", "..", "checkpoint")
    return str(folder)


def must_be_refused(
    session: Session, sinks: Mapping[str, MemorySink], checkpoint: str, letters: Path
) -> None:
    """Raises AssertionError unless a run on a checkpoint in use is refused, with that as the reason."""
    try:
        run = session.start(sinks=sinks, checkpoint=checkpoint, dead_letter=letters)
    except StateError as error:
        if "in use" not in str(error):
            raise
        return
    run.stop()
    raise AssertionError(f"a second driver was let in on '{checkpoint}'")


class Beside:
    """A second run of the same session with a checkpoint of its own, step by step in turn with the first."""

    def __init__(self, session: Session, sinks: Mapping[str, MemorySink], base: Path, close: bool):
        self.sinks = sinks
        self._turn, self._arrived = threading.Semaphore(0), threading.Semaphore(0)
        self._alone = False
        self._run: Run = session.start(
            sinks=sinks,
            checkpoint=base / "checkpoint",
            at_end="close" if close else "keep",
            dead_letter=base / "letters",
            on_step=self._wait,
        )
        self._follow()

    def _wait(self, step: str, epoch: int) -> None:
        self._arrived.release()
        if not self._alone:
            self._turn.acquire()

    def _follow(self) -> None:
        while not self._arrived.acquire(timeout=0.02) and self._run.is_active:
            pass

    def step(self) -> None:
        """Lets it go on to its next step, or to its end."""
        if self._run.is_active:
            self._turn.release()
            self._follow()

    def finish(self) -> None:
        """Lets it run to its end; raises what went wrong in it."""
        self._alone = True
        self._turn.release()
        self._run.await_termination()
