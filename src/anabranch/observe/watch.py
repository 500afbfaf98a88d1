"""Following a run to its end: new reports are added up and handed to a view; Ctrl-C ends it cleanly."""

from __future__ import annotations

import json
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, Protocol, Self, TextIO

from anabranch.amount import in_bytes, several
from anabranch.engine.run import Run
from anabranch.errors import AnabranchError
from anabranch.events.event import EpochHappened, RunEvent
from anabranch.observe.losses import bad_input
from anabranch.observe.silence import Silence
from anabranch.observe.totals import Totals

POLL_SECONDS = 0.2
STOPPING = "stopping after the epoch under way (Ctrl-C again: at once)"


class RunView(Protocol):
    """Something that shows a run."""

    def epoch(self, progress: dict[str, Any], totals: Totals) -> None:
        """Called once for each epoch."""

    def tick(self, totals: Totals, message: str) -> None:
        """Called several times a second."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...  # fmt: skip


class LineView:
    """A line for each epoch, and for each warning: for logs and pipes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._message = ""

    def __enter__(self) -> Self:
        return self

    def epoch(self, progress: dict[str, Any], totals: Totals) -> None:
        self._write(epoch_line(progress, totals))
        for warning in progress["customMetrics"]["warnings"]:
            self._write(f"warning in epoch {progress['batchId']}: {warning}")

    def tick(self, totals: Totals, message: str) -> None:
        if message and message != self._message:
            self._write(message)
        self._message = message

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        pass


class JsonView(LineView):
    """A JSON object for each epoch; the message goes to standard error."""

    def __init__(self, output: TextIO) -> None:
        super().__init__(lambda line: print(line, file=sys.stderr, flush=True))
        self._output = output

    def epoch(self, progress: dict[str, Any], totals: Totals) -> None:
        print(json.dumps(progress), file=self._output, flush=True)


def epoch_line(progress: dict[str, Any], totals: Totals) -> str:
    """An epoch in one line: counts are those of the epoch, watermarks and state as they are after it."""
    state = progress["stateOperators"]
    rows = sum(part["numRowsTotal"] for part in state)
    size = in_bytes(sum(part["memoryUsedBytes"] for part in state))
    counts = [source["customMetrics"] for source in progress["sources"]]
    late = sum(count["lateRows"] for count in counts)
    bad = bad_input(sum(one["badRows"] for one in counts), sum(one["badFiles"] for one in counts))
    results = [f"{sink['query']} {sink['numOutputRows']:,}" for sink in progress["sinks"]]
    marks = [f"{name} {stream.watermark}" for name, stream in totals.streams.items()]
    moved = progress["customMetrics"].get("adaptation", {}).get("moved", 0)
    return (
        f"epoch {progress['batchId']}: {several(progress['numInputRows'], 'row')} in "
        f"{progress['durationMs']['triggerExecution'] / 1000:.2f} s "
        f"({progress['processedRowsPerSecond']:,.0f} rows/s); late {late:,}; bad {bad}; "
        f"results {', '.join(results)}; watermark {', '.join(marks)}; "
        f"state {several(rows, 'row')}, {size}"
        + (f"; {several(moved, 'partition')} moved" if moved else "")
    )


def watch(run: Run, view: RunView, interrupted: threading.Event) -> Totals:
    """Shows the run until it has ended; raises the error that ended it, if one did."""
    totals, heard = Totals(), queue.SimpleQueue[EpochHappened]()

    def hear(event: RunEvent) -> None:
        if isinstance(event, EpochHappened):
            heard.put(event)

    run.listen(hear, recent=True)
    stopper: threading.Thread | None = None
    silence = Silence(run.reads)
    with view:
        active = True
        while active:
            with suppress(AnabranchError):  # raised below, once all reports have been read
                run.await_termination(POLL_SECONDS)
            active = run.is_active
            while not heard.empty():
                progress = heard.get().progress
                totals.add(progress)
                view.epoch(progress, totals)
                silence.broken()
            if interrupted.is_set() and stopper is None:
                stopper = threading.Thread(target=run.stop, daemon=True)
                stopper.start()
            waiting = silence.told(run.status) if active else ""
            view.tick(totals, STOPPING if stopper and active else waiting)
    if stopper:
        stopper.join()
    run.await_termination()
    return totals


@contextmanager
def interruptions() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C (or SIGTERM) sets; the second one interrupts as usual.

    To be entered after Spark's start, whose own handler would cancel the epoch under way.
    """
    interrupted = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
