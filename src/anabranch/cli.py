"""The command line: `anabranch demo`, `run`, `explain`, `bench`, `checkpoint` and so on.

Commands only put together what other modules do, and load it when they are called. Errors that are raised on
purpose become one paragraph on standard error and exit code 1; Ctrl-C ends a run after its epoch (code 130).
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from rich.console import Console

import anabranch
from anabranch.errors import SettingsError
from anabranch.observe.commands import AsJson, Commands, ShowTraceback, Told, complain

if TYPE_CHECKING:
    from anabranch.engine.run import Run
    from anabranch.spec import Spec


InProcess = Annotated[
    bool, typer.Option("--in-process", help="Without Spark, for trying things out.")
]
Ui = Annotated[bool, typer.Option("--ui", help="Open Spark's web pages while the run lasts.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Without a progress bar.")]
SpecFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="SQL (.sql) or YAML (.yml): streams, queries, sinks."),
]

app = Commands(
    cls=Told,
    help="Continuous queries on Spark: columnar, partitioned, exactly once.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
if find_spec("anabranch.bench") is not None:
    compares = "Measure Anabranch beside Spark Structured Streaming on this machine."
    app.later("bench", compares, "anabranch.bench.cli")
models = "Simulate a cluster under the policies of the engine."
app.later("simulate", models, "anabranch.simulate.cli")
looks = "Look at a checkpoint, verify it, copy it to go on from later."
app.later("checkpoint", looks, "anabranch.observe.checkpoints")


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"anabranch {anabranch.__version__}")
        raise typer.Exit


@app.callback()
def anywhere(
    show_traceback: ShowTraceback = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Continuous queries on Spark: columnar, partitioned, exactly once."""


@app.command()
def demo(
    rows: Annotated[int, typer.Option(min=1, help="How many packets.")] = 2_000_000,
    out: Annotated[Path, typer.Option(help="Folder for results and checkpoint.")] = Path(
        "anabranch-demo"
    ),
    cores: Annotated[int, typer.Option(min=1, help="Cores for Spark.")] = 2,
    sites: Annotated[
        int | None, typer.Option(min=1, help="Sites; by default one per core.")
    ] = None,
    as_json: AsJson = False,
    ui: Ui = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Two million generated packets through four network queries, with a live view."""
    from anabranch.demo import Demo, show_results, summary
    from anabranch.observe.follow import end, follow, started, view_on
    from anabranch.observe.watch import SilentView
    from anabranch.session import Session

    console, plan = Console(), Demo(rows, out)
    plan.clear()
    with started(console, as_json, ui, lambda: Session.local(cores, sites, ui=ui)) as session:
        plan.define(session)
        view = SilentView() if as_json else view_on(console, "anabranch demo", rows)
        totals, stopped = follow(lambda: plan.start(session), view, as_json)
    if as_json:
        print(json.dumps({**summary(plan, totals), "stopped": stopped}))
    else:
        show_results(plan, totals, console)
    end(stopped, "The next demo starts anew.")


@app.command()
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
    as_json: AsJson = False,
    in_process: InProcess = False,
    ui: Ui = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Run the queries of a file. With --json: a report per epoch and line, then a summary."""
    from anabranch.observe.follow import end, follow, started, view_on
    from anabranch.observe.losses import discarded, losses
    from anabranch.observe.terminal import show_end
    from anabranch.observe.watch import JsonView
    from anabranch.spec.override import override

    instead: dict[str, str | bool | None] = {"checkpoint": checkpoint, "trigger": trigger}
    instead |= {"changed": changed, "backfill": backfill or None}
    console, asked = Console(), override(_read(spec), assignments or (), instead)
    # Spark takes seconds to start: look for faults before
    with asked.placing():
        asked.session(in_process=True).plan()
    asked.check_sinks()
    quiet = as_json or in_process
    with started(console, quiet, ui, lambda: asked.session(in_process, ui)) as session:
        output = sys.stdout if as_json else None
        view = JsonView(output) if output else view_on(console, f"anabranch run {spec.name}")
        totals, stopped = follow(lambda: _told(asked.start(session), output), view, as_json)
    gone = discarded(totals) if "checkpoint" not in asked.run else None
    warnings = [*losses(totals, asked.run.get("dead_letter")), *([gone] if gone else [])]
    if as_json:
        told = {**totals.summary(), "stopped": stopped, "warnings": warnings}
        print(json.dumps({"summary": told}))
    else:
        show_end(console, totals)
    for warning in warnings:
        complain(f"Warning: {warning}", "yellow")
    end(stopped, "" if gone else "With the same checkpoint, the next run goes on from here.")


@app.command()
def explain(
    spec: SpecFile,
    as_json: AsJson = False,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the plan into this file.")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Show what the run with this checkpoint, also a running one, has measured."
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Show all candidates, with the cost at each node.")
    ] = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Show how the queries of a file would run, or do: partitioning, subqueries, outputs, figures."""
    from anabranch.explain.draw import draw_svg
    from anabranch.explain.json import describe_plan
    from anabranch.explain.text import explain_text

    asked = _read(spec)
    with asked.placing():
        told = asked.session(in_process=True).explanation(checkpoint, asked.sinks)
    if checkpoint is not None and told.measured is None:
        complain(f"The checkpoint '{checkpoint}' has no epoch yet: nothing is measured.", "yellow")
    if svg is not None:
        _write(svg, draw_svg(told))
        complain(f"The plan is drawn in '{svg}'.", "dim")
    if as_json:
        print(json.dumps(describe_plan(told), indent=1))
    elif svg is None:
        print(explain_text(told, verbose))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(
            f"Cannot write '{path}': {error.strerror}. Choose another file."
        ) from error


@app.command()
def chaos(
    seeds: Annotated[str, typer.Option(help="The seeds, as a range or one number.")] = "0..199",
    jobs: Annotated[int, typer.Option(help="Processes; 0 for one on each core.")] = 0,
    planted: Annotated[
        str | None, typer.Option(help="Plant a bug, or 'all' in turn: which seed catches it?")
    ] = None,
    exhaustive: Annotated[
        bool, typer.Option("--exhaustive", help="Ledger and moves in every order of events.")
    ] = False,
    depth: Annotated[int | None, typer.Option(min=1, help="Steps of --exhaustive.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Random queries, moves, slow sites and crashes: results must be DuckDB's (about 2 minutes)."""
    from anabranch.testing.cli import show_chaos, show_exploration, show_planted

    if exhaustive or depth is not None:
        good = show_exploration(exhaustive, depth, as_json, quiet)
    elif planted:
        good = show_planted(planted, as_json)
    else:
        good = show_chaos(seeds, jobs, as_json, quiet)
    if not good:
        raise typer.Exit(1)


@app.command()
def fuzz(
    cases: Annotated[int, typer.Option(min=1, help="How many cases.")] = 500,
    first: Annotated[
        int,
        typer.Option("--first", "--seed", min=0, help="The first of them, to repeat a failure."),
    ] = 0,
    nonsense: Annotated[
        int | None, typer.Option(min=1, help="Instead, so many mutated texts, settings and files.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    as_json: AsJson = False,
    quiet: Quiet = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Random SQL over random files, cuts and restarts: results must be DuckDB's (about a minute).

    With --nonsense, what is mutated must be taken or refused cleanly, within seconds.
    """
    from anabranch.testing.fuzz.cli import show_fuzz, show_nonsense

    if nonsense is None:
        good = show_fuzz(first, cases, jobs, as_json, quiet)
    else:
        good = show_nonsense(first, nonsense, jobs, as_json, quiet)
    if not good:
        raise typer.Exit(1)


@app.command()
def version(as_json: AsJson = False) -> None:
    """Show the version of Anabranch."""
    found = anabranch.__version__
    print(json.dumps({"anabranch": found}) if as_json else f"anabranch {found}")


def _read(spec: Path) -> Spec:
    from anabranch.spec import read_spec

    return read_spec(spec)


def _told(run: Run, output: TextIO | None) -> Run:
    """Says what has become of the queries of the checkpoint, if it had others."""
    if run.evolution and output:
        print(json.dumps({"evolution": run.evolution.described()}), file=output, flush=True)
    elif run.evolution:
        complain(f"The query set has changed. {'; '.join(run.evolution.lines())}.", "yellow")
    return run


def main() -> None:
    """The entry of the `anabranch` command."""
    app()
