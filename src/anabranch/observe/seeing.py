"""Commands and options for those who look at a run: `page`, `top`, `report`; `--page`, `--metrics`."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from anabranch.errors import SettingsError, StateError
from anabranch.observe.commands import AsJson, ShowTraceback, complain
from anabranch.observe.hosts import EVERYWHERE

if TYPE_CHECKING:
    from anabranch.engine.run import Run
    from anabranch.events.stream import Listener

LOOPBACK = "127.0.0.1"
OnPage = Annotated[
    int | None,
    typer.Option(
        "--page", metavar="[PORT]", min=0, max=65535, help="Show the run on a page; 0: any port."
    ),
]
PageHost = Annotated[
    str,
    typer.Option(
        "--page-host", metavar="ADDRESS", help="Where the page listens: loopback, by default."
    ),
]
PageNames = Annotated[
    list[str] | None,
    typer.Option(
        "--page-name",
        metavar="NAME",
        help="What other machines call the page, or a proxy before it; may be given several times.",
    ),
]
OnMetrics = Annotated[
    int | None,
    typer.Option(
        "--metrics", metavar="PORT", min=0, max=65535, help="Serve metrics for Prometheus."
    ),
]
MetricsFile = Annotated[
    Path | None,
    typer.Option("--metrics-file", metavar="FILE", help="Keep metrics in a file (.prom)."),
]
Log = Annotated[
    str | None, typer.Option("--log", metavar="json", help="A JSON line for each event on stderr.")
]
JSON = "json"
Checkpoint = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="Its folder or URI.")]


def opening() -> Any:
    """The module that opens pages; raises SettingsError if what it needs is not installed."""
    return _module("page", "The page", "anabranch.observe.page.opening")


def _module(extra: str, what: str, name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingsError(
            f"{what} needs a package that is not there ({error.name}): pip install 'anabranch[{extra}]'."
        ) from error


class Shown:
    """What shows a run as long as it lasts: closed when the block ends."""

    def __init__(
        self, port: int | None = None, control: bool = False, host: str = LOOPBACK,
        names: Sequence[str] | None = None, metrics: int | None = None, metrics_file: Path | None = None,
        log: str | None = None,
    ) -> None:  # fmt: skip
        if control and port is None:
            raise SettingsError("--page-control is for a page: give --page too.")
        if names and port is None:
            raise SettingsError("--page-name is for a page: give --page too.")
        if log not in (None, JSON):
            raise SettingsError(f"Expected '{JSON}' for --log, got '{log}'.")
        self._open: Callable[[Run], Any] | None = None
        if port is not None:
            module = opening()
            self._open = lambda run: module.page_of_run(run, port, control, host, names or ())
            _warn_of(host, names)
        from anabranch.observe.log import JsonLog

        self._closing = ExitStack()
        self._listeners: list[Listener] = [JsonLog(sys.stderr).add] if log else []
        self._count(metrics, metrics_file)

    def _count(self, port: int | None, file: Path | None) -> None:
        from anabranch.observe.metrics import Metrics, serve_metrics, write_metrics

        counted = Metrics()
        if port is not None:
            at, close = serve_metrics(counted, port)
            self._closing.callback(close)
            complain(f"Metrics: http://{LOOPBACK}:{at}/metrics", "cyan")
        if file is not None:
            self._closing.callback(write_metrics(counted, file))
        if port is not None or file is not None:
            self._listeners.append(counted.add)

    def on(self, run: Run) -> Run:
        """Shows a run from now on."""
        for listener in self._listeners:
            run.listen(listener, recent=True)
        if self._open is not None:
            page = self._open(run)
            self._closing.callback(page.close)
            complain(f"The page: {page.url}", "cyan")
        return run

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.close()


def _warn_of(host: str, names: Sequence[str] | None) -> None:
    if host not in (LOOPBACK, "localhost", "::1"):
        complain(
            f"The page listens on {host}: whoever has its address and its token can see it, and what is sent "
            "is not encrypted. Behind a proxy with TLS it is.", "yellow",
        )  # fmt: skip
    if host in EVERYWHERE and not names:
        complain(
            f"The page listens on {host} but answers to names of loopback only: say with --page-name "
            "what other machines call this one.", "yellow",
        )  # fmt: skip


def page(
    checkpoint: Checkpoint,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    host: PageHost = LOOPBACK,
    names: PageNames = None,
    show_traceback: ShowTraceback = False,
) -> None:
    """Show a run of another process, or one that has ended, on a page, until Ctrl-C."""
    _warn_of(host, names)
    tell_of_no_history(checkpoint, waits=True)
    opened = opening().page_of_checkpoint(checkpoint, port, host, names or ())
    print(opened.url, flush=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        opened.close()


def tell_of_no_history(checkpoint: str, waits: bool) -> None:
    """Refuses a place that is no checkpoint, unless one may still begin there and it `waits` for it."""
    from anabranch.events import journal
    from anabranch.state import line
    from anabranch.state.place import place

    held = place(checkpoint)
    if held.names(journal.FOLDER, journal.SUFFIX):
        return
    folder = None if "://" in checkpoint else Path(checkpoint)
    may_begin = folder is None or not folder.exists() or _empty(folder)
    if held.names(line.FOLDER, line.SUFFIX):
        told = f"The checkpoint '{checkpoint}' has no history: its runs keep none (event_history_bytes=0)."
    elif waits and may_begin:
        told = f"There is no checkpoint in '{held}' yet: this waits for a run to begin one."
    else:
        raise StateError(
            f"There is no checkpoint in '{held}'. Expected the folder or the URI that a run was given as "
            "its checkpoint (SET checkpoint = 'folder', checkpoint=, checkpointLocation)."
        )
    complain(told, "yellow")


def _empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.iterdir())


def top(
    checkpoint: Checkpoint,
    once: Annotated[bool, typer.Option("--once", help="Print it once, as text.")] = False,
    as_json: AsJson = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Show a run of another process, or one that has ended, in the terminal, until q."""
    from anabranch.observe.story import story_of
    from anabranch.observe.top.plain import as_text, described

    screen = not (once or as_json) and _on_terminal()
    tell_of_no_history(checkpoint, waits=screen)
    story, history = story_of(checkpoint)
    if as_json:
        print(json.dumps(described(story), indent=2))
    elif not screen:
        print(as_text(story))
    else:
        _module("top", "The command", "anabranch.observe.top.app").Top(story, history.look).run()


def _on_terminal() -> bool:
    """Whether keys can be read and a screen be drawn; textual draws it on standard error."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    return all(one.isatty() for one in streams) and os.environ.get("TERM", "") != "dumb"


def report(
    checkpoint: Checkpoint,
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The HTML file.")],
    show_traceback: ShowTraceback = False,
) -> None:
    """Write a finished or failed run as one HTML file: plan, charts, decisions, settings."""
    from anabranch.observe.report import report as written
    from anabranch.observe.story import story_of

    story, _ = story_of(checkpoint)
    if story.started is None:
        raise StateError(
            f"The checkpoint '{checkpoint}' has no history: no run has written there, or with "
            "event_history_bytes=0."
        )
    try:
        output.write_text(written(story), encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"Cannot write '{output}': {error.strerror}. Choose another file."
        ) from error
    complain(f"The report is in '{output}'.", "dim")
