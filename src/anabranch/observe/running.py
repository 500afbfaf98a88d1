"""`anabranch run`: the queries of a file, shown in the terminal, as JSON, and on a page."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.console import Console

from anabranch.errors import SettingsError
from anabranch.observe.commands import AsJson, ShowTraceback, complain
from anabranch.observe.seeing import (
    LOOPBACK,
    Log,
    MetricsFile,
    OnMetrics,
    OnPage,
    PageHost,
    PageNames,
    Shown,
)

if TYPE_CHECKING:
    from anabranch.engine.run import Run
    from anabranch.spec import Spec

InProcess = Annotated[
    bool, typer.Option("--in-process", help="Without Spark, for trying things out.")
]
Ui = Annotated[bool, typer.Option("--ui", help="Open Spark's web pages while the run lasts.")]
SpecFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="SQL (.sql) or YAML (.yml): streams, queries, sinks."),
]


def run(
    spec: SpecFile,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Instead of the file's checkpoint.")
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="Instead of the file's: available-now, continuous, or a length such as '10 seconds'.",
        ),
    ] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="An option or setting instead of the file's; may be given several times.",
        ),
    ] = None,
    changed: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="If the checkpoint has other queries: refuse, or keep-same to go on with what is the same.",
        ),
    ] = None,
    backfill: Annotated[
        bool,
        typer.Option("--backfill", help="New queries begin with all that the sources still have."),
    ] = False,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A cluster: spark://HOST:PORT, yarn, k8s://…; not with spark-submit.",
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be given several times."),
    ] = None,
    page: OnPage = None,
    page_control: Annotated[
        bool, typer.Option("--page-control", help="The page may steer the run, not only show it.")
    ] = False,
    page_host: PageHost = LOOPBACK,
    page_name: PageNames = None,
    metrics: OnMetrics = None,
    metrics_file: MetricsFile = None,
    log: Log = None,
    as_json: AsJson = False,
    in_process: InProcess = False,
    ui: Ui = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Run the queries of a file. With --json: a report per epoch and line, then a summary."""
    # Help need not wait for any of it
    from anabranch.observe.follow import end, follow, started, view_on
    from anabranch.observe.losses import discarded, losses, waiting
    from anabranch.observe.terminal import show_end
    from anabranch.observe.watch import JsonView
    from anabranch.spec.override import override

    instead: dict[str, str | bool | None] = {"checkpoint": checkpoint, "trigger": trigger}
    instead |= {"changed": changed, "backfill": backfill or None, "master": master}
    spark = _spark_settings(conf or ())
    console, asked = Console(), override(read(spec), assignments or (), instead)
    # Spark takes seconds to start: look for faults before
    with asked.placing():
        asked.session(in_process=True).plan()
    asked.check_sinks()
    quiet = as_json or in_process
    with started(console, quiet, ui, lambda: asked.session(in_process, ui, spark)) as session:
        output = sys.stdout if as_json else None
        view = JsonView(output) if output else view_on(console, f"anabranch run {spec.name}")
        shown = Shown(page, page_control, page_host, page_name, metrics, metrics_file, log)
        with shown:
            totals, stopped = follow(
                lambda: shown.on(_told(asked.start(session), output)), view, as_json
            )
    gone = discarded(totals) if "checkpoint" not in asked.run else None
    warnings = [*losses(totals, asked.run.get("dead_letter")), *([gone] if gone else [])]
    if as_json:
        told = {**totals.summary(), "stopped": stopped, "warnings": warnings}
        print(json.dumps({"summary": told}))
    else:
        show_end(console, totals)
        if "checkpoint" in asked.run and not stopped and (still := waiting(totals)):
            console.print(still, highlight=False, soft_wrap=True)
    for warning in warnings:
        complain(f"Warning: {warning}", "yellow")
    end(stopped, "" if gone else "With the same checkpoint, the next run goes on from here.")


def read(spec: Path) -> Spec:
    """The specification in a file."""
    from anabranch.spec import read_spec  # loads sqlglot, for which --help should not wait

    return read_spec(spec)


def _spark_settings(given: Sequence[str]) -> dict[str, str]:
    for one in given:
        if not re.fullmatch(r"spark\.[\w.-]+=.*", one, re.DOTALL):
            raise SettingsError(
                f"--conf {one}: expected spark.NAME=VALUE, e.g. --conf spark.executor.memory=2g."
            )
    return dict(one.split("=", 1) for one in given)


def _told(run: Run, output: TextIO | None) -> Run:
    """Says what has become of the queries of the checkpoint, if it had others."""
    if run.evolution and output:
        print(json.dumps({"evolution": run.evolution.described()}), file=output, flush=True)
    elif run.evolution:
        complain(f"The query set has changed ({'; '.join(run.evolution.lines())}).", "yellow")
    return run
