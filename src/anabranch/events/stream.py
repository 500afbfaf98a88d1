"""The stream of a run's events: from the run, which never waits for it, to listeners and to the journal.

Events are handed on in a thread of their own, in order. A listener that raises is told of, and left
out from then on.
"""

from __future__ import annotations

import operator
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from anabranch.errors import SettingsError
from anabranch.events.event import EpochHappened, RunEvent, RunStarted, Warned
from anabranch.events.journal import Journal

Listener = Callable[[RunEvent], object]
FLUSH_SECONDS = 1.0
FAR_FLUSH_SECONDS = 15.0
"""How often the journal is written: a store elsewhere takes time, and money, for each file."""
RECENT_EPOCHS, RECENT_BYTES = 600, 32 * 1024 * 1024
"""Epochs that are remembered for those who begin to listen later, and the bytes of their figures."""
RECENT_EVENTS = 10_000
"""Other events that are."""
PATIENCE = 10.0
"""Seconds for which the end of a run waits for its listeners."""


class EventStream:
    """The events of one run."""

    def __init__(self, journal: Journal | None, flush_seconds: float = FLUSH_SECONDS) -> None:
        self._journal, self._flush_seconds = journal, flush_seconds
        self._waiting: queue.SimpleQueue[RunEvent | None] = queue.SimpleQueue()
        self._listeners: list[Listener] = []
        self._first: RunStarted | None = None
        self._epochs: deque[tuple[int, EpochHappened]] = deque()
        self._bytes = 0
        self._others: deque[tuple[int, RunEvent]] = deque(maxlen=RECENT_EVENTS)
        self._count = 0
        self._unwritten: list[RunEvent] = []
        self._written = time.monotonic()
        self._changing = threading.RLock()
        self._thread: threading.Thread | None = None

    def tell(self, event: RunEvent) -> None:
        """Hands an event on; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._hand_on, name="anabranch-events", daemon=True
            )
            self._thread.start()
        self._waiting.put(event)

    def listen(self, listener: Listener, recent: bool = False) -> Callable[[], None]:
        """Calls a function with every event from now on; with `recent`, first with those remembered.

        Returns a function that ends it.
        """
        require_function(listener)
        with self._changing:
            if recent:
                others = sorted([*self._epochs, *self._others], key=operator.itemgetter(0))
                for event in [*([self._first] if self._first else []), *(one for _, one in others)]:
                    listener(event)
            self._listeners.append(listener)

        def end() -> None:
            with self._changing:
                if listener in self._listeners:
                    self._listeners.remove(listener)

        return end

    def close(self) -> None:
        """Waits until everything has been handed on, for a while."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._waiting.put(None)
            self._thread.join(PATIENCE)

    def _hand_on(self) -> None:
        while True:
            left = self._flush_seconds - (time.monotonic() - self._written)
            try:
                event = self._waiting.get(timeout=max(0.0, left) if self._unwritten else None)
            except queue.Empty:
                self._write()
                continue
            if event is None:
                break
            self._one(event)
            if time.monotonic() - self._written >= self._flush_seconds:
                self._write()
        self._write()

    def _one(self, event: RunEvent) -> None:
        with self._changing:
            self._count += 1
            self._remember(event)
            if self._journal is not None:
                self._unwritten.append(event)
            for listener in list(self._listeners):
                try:
                    listener(event)
                except Exception as error:
                    self._listeners.remove(listener)
                    self._warn(event, f"A listener failed and hears no more: {error!r}")

    def _remember(self, event: RunEvent) -> None:
        if isinstance(event, RunStarted):
            self._first = event
        elif isinstance(event, EpochHappened):
            self._epochs.append((self._count, event))
            self._bytes += event.size
            while len(self._epochs) > 1 and (
                len(self._epochs) > RECENT_EPOCHS or self._bytes > RECENT_BYTES
            ):
                self._bytes -= self._epochs.popleft()[1].size
        else:
            self._others.append((self._count, event))

    def _write(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        self._written = time.monotonic()
        try:
            if self._journal is not None:
                self._journal.write(unwritten)
        except Exception as error:
            # History is no reason for a run to end: it goes on without
            self._journal = None
            self._warn(unwritten[-1], f"The history of the run is written no more: {error!r}")

    def _warn(self, event: RunEvent, text: str) -> None:
        print(f"anabranch: {text}", file=sys.stderr, flush=True)
        self._one(Warned(at=event.at, epoch=event.epoch, text=text))


class Talking(Protocol):
    """Something that has events to listen to."""

    def listen(self, listener: Listener, recent: bool = False) -> Callable[[], None]: ...


class Listeners:
    """Those who listen to several runs, also to runs that begin later."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def add(self, listener: Listener, runs: Iterable[Talking]) -> Callable[[], None]:
        """One more, from now on; returns a function that ends it."""
        require_function(listener)
        self._listeners.append(listener)
        ends = [run.listen(listener) for run in runs]

        def end() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)
            for one in ends:
                one()

        return end

    def join(self, run: Talking) -> None:
        """Lets them all hear a run that begins."""
        for listener in self._listeners:
            run.listen(listener)


def require_function(listener: object) -> None:
    """Raises SettingsError if nothing can be told to it."""
    if not callable(listener):
        raise SettingsError(f"Expected a function of an event to listen with, got {listener!r}.")
