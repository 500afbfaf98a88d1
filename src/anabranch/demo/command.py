"""`anabranch demo`: starts both runs, shows them to their end, checks the results, says how to go on."""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from contextlib import ExitStack, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.live import Live

from anabranch.amount import several
from anabranch.demo.check import checked
from anabranch.demo.course import RunCourse, described, times_as_fast
from anabranch.demo.results import show_results, summary
from anabranch.demo.scenario import PHASES, Demo
from anabranch.demo.view import ending, picture
from anabranch.engine.run import Run
from anabranch.events.event import EpochHappened, RunEvent
from anabranch.observe.follow import end, started
from anabranch.observe.seeing import Shown
from anabranch.observe.watch import STOPPING, epoch_line, interruptions
from anabranch.session import Session

POLL_SECONDS = 0.2
PATIENCE = 38.0
"""Seconds after which the run without adaptation is stopped once the other has ended."""


def show_demo(demo: Demo, cores: int, as_json: bool, ui: bool, page: int | None) -> None:
    """The demonstration from its start to its last word."""
    console, adapted, fixed = Console(), RunCourse(), RunCourse()
    demo.clear()
    demo.write_input()
    # Each site and each reader of both runs has a place: they wait in it more than they work
    places = max(cores, 2 * (demo.sites + 1))
    settings = demo.settings(True)
    with ExitStack() as stack:
        if as_json:
            stack.enter_context(redirect_stdout(sys.stderr))
        start = partial(Session.local, places, demo.sites, settings, ui)
        session = stack.enter_context(started(console, as_json, ui, start))
        beside = Session(session.spark, demo.sites, demo.settings(False))
        shown = stack.enter_context(Shown(page))
        interrupted = stack.enter_context(interruptions())
        runs = shown.on(demo.start(session)), demo.start(beside, adaptive=False)
        live = None
        if console.is_terminal and not as_json:
            live = stack.enter_context(Live(console=console, auto_refresh=False))
        _follow(demo, runs, (adapted, fixed), interrupted, live, as_json)
    stopped = interrupted.is_set()
    same = None if stopped else checked(demo)
    if as_json:
        print(json.dumps(_told(demo, adapted, fixed, same) | {"stopped": stopped}))
    else:
        _show_end(demo, adapted, fixed, same, console)
    if same is not None and not all(same.values()):
        raise typer.Exit(1)
    end(stopped, "The next demo starts anew.")


def _follow(
    demo: Demo, runs: tuple[Run, Run], courses: tuple[RunCourse, RunCourse], interrupted: threading.Event,
    live: Live | None, silent: bool,
) -> None:  # fmt: skip
    """Shows both runs until they have ended; raises the error that ended one, if one did."""
    began, heard = time.monotonic(), queue.SimpleQueue[tuple[int, EpochHappened]]()
    for number, run in enumerate(runs):
        run.listen(partial(_hear, heard, number), recent=True)
    stopping: list[threading.Thread] = []
    shown = -1
    while True:
        active = [run.is_active for run in runs]
        elapsed = time.monotonic() - began
        while not heard.empty():
            number, event = heard.get()
            courses[number].add(event.progress)
            if live is None and not silent and number == 0:
                shown = _say(courses[0], event.progress, shown)
        late = not active[0] and elapsed > PATIENCE
        if not stopping and (interrupted.is_set() or (late and active[1])):
            stopping = [threading.Thread(target=run.stop, daemon=True) for run in runs]
            for one in stopping:
                one.start()
        if live is not None:
            message = STOPPING if interrupted.is_set() and any(active) else ""
            height = live.console.height
            live.update(picture(demo, *courses, elapsed, message, height), refresh=True)
        if not any(active):
            break
        time.sleep(POLL_SECONDS)
    for thread in stopping:
        thread.join()
    for run, course in zip(runs, courses, strict=True):
        run.await_termination()
        course.ended = course.totals.rows >= demo.all_rows


def _hear(
    heard: queue.SimpleQueue[tuple[int, EpochHappened]], number: int, event: RunEvent
) -> None:
    if isinstance(event, EpochHappened):
        heard.put((number, event))


def _say(course: RunCourse, progress: dict[str, Any], shown: int) -> int:
    """An epoch as a line, after one for its phase if that is new."""
    if course.phase != shown:
        print(f"{PHASES[course.phase].title}: {PHASES[course.phase].trouble}")
    print(epoch_line(progress, course.totals), flush=True)
    for one in course.done:
        if one.epoch == progress["batchId"]:
            more = f" and {one.count - 1} more" if one.count > 1 else ""
            print(f"  {one.action}{more} ({one.cause})", flush=True)
    return course.phase


def _told(
    demo: Demo, adapted: RunCourse, fixed: RunCourse, same: dict[str, bool] | None
) -> dict[str, Any]:
    won = times_as_fast(adapted, fixed)
    return {
        **summary(demo, adapted.totals),
        "phases": described(adapted)["phases"],
        "adaptationOff": described(fixed),
        "timesAsFast": None if won is None else round(won, 3),
        "equalToPlainQueries": same,
    }


def _show_end(
    demo: Demo, adapted: RunCourse, fixed: RunCourse, same: dict[str, bool] | None, console: Console
) -> None:
    totals = adapted.totals
    show_results(demo, console)
    written = several(adapted.results, "result row")
    rows = several(totals.rows, "row")
    console.print(f"\n{rows} in {totals.seconds:.1f} s, {written}", highlight=False)
    console.print()
    for part in ending(adapted, fixed):
        console.print(part)
    _show_check(same, console)
    if adapted.results:
        _show_ways(demo.out, console)


def _show_check(same: dict[str, bool] | None, console: Console) -> None:
    if same is None:
        text = (
            "The results were not checked: that needs a whole run, and DuckDB (pip install duckdb)."
        )
        console.print(f"\n[yellow]{text}[/]", highlight=False)
        return
    wrong = [query for query, equal in same.items() if not equal]
    if wrong:
        console.print(f"\n[bold red]Not the plain queries' results: {', '.join(wrong)}.[/]")
    else:
        text = f"The results of all {len(same)} queries are those of the plain queries (DuckDB, all at once)."
        console.print(f"\n[bold green]{text}[/]", highlight=False)


def _show_ways(out: Path, console: Console) -> None:
    """Commands to go on with."""
    console.print(f"\nResults and history lie in [bold]{out}/[/]. To go on:", highlight=False)
    for line, what in (
        (f"anabranch report {out}/checkpoint -o demo.html", "the run as a file to mail"),
        (f"anabranch page {out}/checkpoint", "the same on a page, with every decision"),
        (f"anabranch checkpoint describe {out}/checkpoint", "what lies in a checkpoint"),
        (f'pl.read_parquet("{out}/flows")', "results in Polars"),
        (f"FROM '{out}/flows/*/*.parquet'", "results in DuckDB"),
    ):
        console.print(f"  [green]{line}[/]  [dim]{what}[/]", highlight=False, soft_wrap=True)
