"""Work spread over processes: one that hangs or dies is told, and another takes its place."""

from __future__ import annotations

import multiprocessing as mp
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

STARTED = "started"
STARTING = 60.0
"""Seconds that a process may take to start, on a machine with much to do."""
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class LostItem:
    """What is left of an item whose process did not come to an end with it."""

    what: str


@dataclass
class _Worker(Generic[Item]):
    """A process that works on item after item, and the one it is at."""

    process: Any
    pipe: Connection
    item: Item | None = None
    since: float = 0.0
    """When it began with the item."""
    started: bool = False
    """Whether its process is up: until then it has a longer time."""

    def give(self, item: Item) -> None:
        self.item, self.since = item, time.monotonic()
        self.pipe.send(item)

    def over(self, longest: float) -> bool:
        """Whether it takes longer than so many seconds."""
        return time.monotonic() - self.since > (longest if self.started else longest + STARTING)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def spread(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int, longest: float
) -> Iterator[tuple[Item, Result | LostItem]]:
    """Each item with what `work` makes of it, as they are ready; `longest` is in seconds.

    `work` is a function of a module: the processes import it.
    """
    # Frames are tiny in tests: more threads would only wait for each other
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    waiting = iter(items)
    workers: list[_Worker[Item]] = []
    for _ in range(jobs):
        for item in waiting:
            workers.append(_begin(work))
            workers[-1].give(item)
            break
    try:
        while workers:
            pause = min(1.0, max(0.01, longest))
            ready = wait([worker.pipe for worker in workers], timeout=pause)
            for place, worker in enumerate(list(workers)):
                at = worker.item
                assert at is not None
                if worker.pipe in ready:
                    try:
                        if not worker.started:
                            worker.started = worker.pipe.recv() == STARTED
                            worker.since = time.monotonic()
                            continue
                        yield at, worker.pipe.recv()
                    except EOFError:
                        yield at, LostItem("the process died")
                        worker = workers[place] = _again(work, worker)
                elif worker.over(longest):
                    yield at, LostItem(f"no end after {longest:.0f} s")
                    worker = workers[place] = _again(work, worker)
                else:
                    continue
                worker.item = None
                for following in waiting:
                    worker.give(following)
                    break
            for worker in [one for one in workers if one.item is None]:
                worker.end()
                workers.remove(worker)
    finally:
        for worker in workers:
            worker.end()


def _begin(work: Callable[[Item], Any]) -> _Worker[Item]:
    context = mp.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _again(work: Callable[[Item], Any], worker: _Worker[Item]) -> _Worker[Item]:
    worker.end()
    return _begin(work)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    # What anything prints meanwhile is not for whoever reads the report on standard output
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    pipe.send(STARTED)
    while True:
        pipe.send(work(pipe.recv()))
