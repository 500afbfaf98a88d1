"""The command line: `anabranch demo`, `run`, `explain`, `bench`, `checkpoint` and so on.

Commands only put together what other modules do, and load it when they are called. Errors that are raised on
purpose become one paragraph on standard error and exit code 1; Ctrl-C ends a run after its epoch (code 130).
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import anabranch
from anabranch.errors import SettingsError
from anabranch.observe.commands import AsJson, Commands, ShowTraceback, TellingGroup, complain
from anabranch.observe.running import SpecFile, Ui, read, run
from anabranch.observe.seeing import OnPage, page, report, top
from anabranch.processor import settle_numpy

Quiet = Annotated[bool, typer.Option("--quiet", help="Without a progress bar.")]

app = Commands(
    cls=TellingGroup,
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
    rows: Annotated[int, typer.Option(min=1, help="How many packets.")] = 600_000,
    out: Annotated[Path, typer.Option(help="Folder for results and checkpoint.")] = Path(
        "anabranch-demo"
    ),
    cores: Annotated[int, typer.Option(min=1, help="Tasks at once, if more than needed.")] = 2,
    sites: Annotated[int, typer.Option(min=1, help="Sites of each of the two runs.")] = 4,
    page: OnPage = None,
    as_json: AsJson = False,
    ui: Ui = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """A skewed key, a slow site, too much state, another best join order: with adaptation and without."""
    from anabranch.demo.command import show_demo
    from anabranch.demo.scenario import Demo

    show_demo(Demo(rows, out, sites), cores, as_json, ui, page)


app.command()(run)
app.command()(page)
app.command()(top)
app.command()(report)


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

    asked = read(spec)
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
def package(
    target: Annotated[Path, typer.Argument(metavar="FILE.tar.gz", help="The archive to write.")],
    as_json: AsJson = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Pack Anabranch and its libraries for executors that lack them."""
    from anabranch.engine.shipping import LIBRARIES, machine, write_libraries

    made = write_libraries(target)
    given = f"spark.archives={made.absolute()}#{LIBRARIES}"
    if as_json:
        print(json.dumps({"archive": str(made), "bytes": made.stat().st_size, "conf": given}))
    else:
        print(
            f"{made}: {made.stat().st_size / 1e6:.0f} MB, for {machine()}.\n"
            f"Give it to Spark with --conf {given}"
        )


@app.command()
def version(as_json: AsJson = False) -> None:
    """Show the version of Anabranch."""
    found = anabranch.__version__
    print(json.dumps({"anabranch": found}) if as_json else f"anabranch {found}")


@app.command()
def warm(
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Leave what was kept before as it is.")
    ] = False,
    show_traceback: ShowTraceback = False,
) -> None:
    """Keep Spark's classes in a file, once: later runs on this machine start sooner."""
    from anabranch.engine.class_archive import archive_path
    from anabranch.observe.warming import warm as keep

    path = archive_path()
    if not (if_missing and path is not None and path.is_file()):
        print("Running a small query on Spark, to keep the classes it loads ...", file=sys.stderr)
        path = keep()
    print(f"Kept Spark's classes, {path.stat().st_size >> 20} MB: {path}")


def main() -> None:
    """The entry of the `anabranch` command."""
    settle_numpy()
    app()
