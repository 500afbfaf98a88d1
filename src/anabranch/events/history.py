"""The history of a checkpoint: the events of its runs, read from their journals, also while one goes on."""

from __future__ import annotations

import time

import msgspec
import pyarrow as pa

from anabranch.events.event import AnyEvent, Warned
from anabranch.events.journal import FOLDER, MAGIC, SUFFIX, unframe
from anabranch.state.place import Place


class EventHistory:
    """Reads the journals of a checkpoint; each look gives what came since the last."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._read: dict[str, int] = {}
        """Up to which byte each file has been read."""
        self._full: set[str] = set()
        """The files that have a successor: they do not grow."""

    def look(self) -> list[AnyEvent]:
        """The events that have come since the last look, oldest first."""
        names = self._place.names(FOLDER, SUFFIX)
        found: list[AnyEvent] = []
        for name in names:
            if name not in self._full:
                found += self._events(name)
        # The newest file of each run may still grow
        newest = {_run(name): name for name in names}
        self._full = {name for name in names if newest[_run(name)] != name}
        return found

    def _events(self, name: str) -> list[AnyEvent]:
        try:
            data = self._place.read(name)
        except FileNotFoundError:
            return []  # cleared away meanwhile
        start = self._read.get(name, len(MAGIC))
        if start == len(data):
            return []
        try:
            if not data.startswith(MAGIC):
                raise ValueError("it is no file of events, or one of another version")
            found, self._read[name] = unframe(data, start)
        except (ValueError, OSError, msgspec.MsgspecError, pa.ArrowException) as error:
            self._read[name] = len(data)
            text = f"The history in '{name}' cannot be read: {error}. The rest is shown."
            return [Warned(at=time.time(), epoch=-1, text=text)]
        return found


def _run(name: str) -> str:
    return name.rsplit("-", 1)[0]
