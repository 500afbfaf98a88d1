"""A run under a command: its session, which is stopped in the end, its view, and how the command ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout

import typer
from rich.console import Console

from anabranch.engine.run import Run
from anabranch.observe.commands import INTERRUPTED, complain
from anabranch.observe.terminal import LiveView
from anabranch.observe.totals import Totals
from anabranch.observe.watch import LineView, RunView, interruptions, watch
from anabranch.session import Session


@contextmanager
def started(
    console: Console, quiet: bool, ui: bool, start: Callable[[], Session]
) -> Iterator[Session]:
    """A session that is stopped in the end; its slow start is shown."""
    waiting = not quiet and console.is_terminal
    with console.status("Starting Spark …") if waiting else nullcontext():
        session = start()
    try:
        if ui and session.spark is not None:
            complain(f"Spark's pages: {session.spark.sparkContext.uiWebUrl}", "dim")
        yield session
    finally:
        session.stop()


def view_on(console: Console, title: str, goal: int | None = None) -> RunView:
    """A live view in a terminal, else lines."""
    if console.is_terminal:
        return LiveView(console, title, goal)
    return LineView(lambda line: print(line, flush=True))


def follow(start: Callable[[], Run], view: RunView, as_json: bool) -> tuple[Totals, bool]:
    """Starts a run and shows it to its end; whether it was stopped before."""
    # Console sinks print: where JSON is asked for, standard output belongs to it alone
    with redirect_stdout(sys.stderr) if as_json else nullcontext(), interruptions() as interrupted:
        totals = watch(start(), view, interrupted)
        return totals, interrupted.is_set()


def end(stopped: bool, what_next: str) -> None:
    """Leaves with the exit code of an interruption if the run was stopped before its end."""
    if stopped:
        complain(f"Stopped after a whole epoch. {what_next}".rstrip(), "yellow")
        raise typer.Exit(INTERRUPTED)
