"""`anabranch bench`: the benchmarks on the command line. What they do is in their own modules."""

from __future__ import annotations

import functools
import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer
from rich.console import Console

from anabranch.bench.every import BENCHMARKS, Benchmark
from anabranch.bench.latency import run_latency
from anabranch.bench.report import show
from anabranch.bench.result import Result
from anabranch.errors import AnabranchError
from anabranch.observe.commands import Commands
from anabranch.observe.steps import live

app = Commands(
    help="Measure Anabranch beside Spark Structured Streaming on this machine.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="A tenth of the data, each run once: to see that it works.")
]
Against = Annotated[
    Path | None,
    typer.Option(
        "--against",
        exists=True,
        help="The folder above the package of another version, to measure in turn.",
    ),
]
Save = Annotated[
    Path | None, typer.Option("--save", help="Also write <benchmark>.json into this folder.")
]


@app.command()
def aggregate(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """W1: 10 million rows in 60 s windows, rate against Spark's (about 15 minutes)."""
    _finish(_measure(["aggregate"], quick, save), as_json)


@app.command("state-growth")
def state_growth(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Epoch time while the open state grows from 1 to 50 million rows (about 4 minutes)."""
    _finish(_measure(["state-growth"], quick, save), as_json)


@app.command()
def latency(
    as_json: AsJson = False, quick: Quick = False, save: Save = None, against: Against = None
) -> None:
    """Time of epochs of 1,000 rows against Spark's (about 4 minutes)."""
    measured = BENCHMARKS["latency"]
    if against is not None:
        measured = functools.partial(run_latency, against=str(against.absolute()))
    _finish(_measure(["latency"], quick, save, {"latency": measured}), as_json)


@app.command()
def join(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """W2: two streams within 60 s, rate against Spark's, ten times the state (about 30 minutes)."""
    _finish(_measure(["join"], quick, save), as_json)


@app.command()
def multijoin(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """W3: three streams within 60 s, rate against Spark's (about 30 minutes)."""
    _finish(_measure(["multijoin"], quick, save), as_json)


@app.command()
def hotjoin(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """3 million rows of few keys joined within a narrow bound, in epochs of any size (about 5 minutes)."""
    _finish(_measure(["hotjoin"], quick, save), as_json)


@app.command()
def timeline(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Where the milliseconds of an epoch go: W1, W2 and epochs of 1,000 rows (about 2 minutes)."""
    _finish(_measure(["timeline"], quick, save), as_json)


@app.command()
def zipf(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """W4: W1 with sources by Zipf's law, rate against Spark's (about 6 minutes)."""
    _finish(_measure(["zipf"], quick, save), as_json)


@app.command()
def dataframe(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """W1 whose rows a streaming DataFrame brings, rate against Spark's (about 8 minutes)."""
    _finish(_measure(["dataframe"], quick, save), as_json)


@app.command()
def start(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """From the command to the first result of a small file, beside a script of Spark's (about 3 minutes)."""
    _finish(_measure(["start"], quick, save), as_json)


@app.command()
def reorder(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Three streams whose rates change: fixed shapes of their join, and shapes that follow (7 minutes)."""
    _finish(_measure(["reorder"], quick, save), as_json)


@app.command()
def plans(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Plans and load together, on emulated sites: the paper on plan-aware balancing (6 minutes)."""
    _finish(_measure(["plans"], quick, save), as_json)


@app.command()
def topn(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """The best rows of windows and the rows before: what is kept, rate against Spark's (about 3 minutes)."""
    _finish(_measure(["topn"], quick, save), as_json)


@app.command()
def partitioning(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Load on the busiest site with 1 to 4 hosts, for good and bad partitionings (about 4 minutes)."""
    _finish(_measure(["partitioning"], quick, save), as_json)


@app.command()
def strategies(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """One query under the three ways to give operators sites (about 4 minutes)."""
    _finish(_measure(["strategies"], quick, save), as_json)


@app.command()
def sharing(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """One to ten queries on one stream: bytes through the exchange, rows a second (about 3 minutes)."""
    _finish(_measure(["sharing"], quick, save), as_json)


@app.command()
def driver(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """What an epoch costs the driver with 8 to 1,024 sites and over 5,000 epochs (about 8 minutes)."""
    _finish(_measure(["driver"], quick, save), as_json)


@app.command()
def theta(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Joins without equal keys in grids of 1 to 6 sites (about 5 minutes)."""
    _finish(_measure(["theta"], quick, save), as_json)


@app.command()
def balance(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Slowed sites and skewed keys on 8 emulated sites, against the best placement (about 13 minutes)."""
    _finish(_measure(["balance"], quick, save), as_json)


@app.command()
def skew(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Skewed keys as two real cores feel them, with adaptation and without (about 7 minutes)."""
    _finish(_measure(["skew"], quick, save), as_json)


@app.command()
def spill(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """State beyond memory: the experiments of the paper on state adaptation (about 18 minutes)."""
    _finish(_measure(["spill"], quick, save), as_json)


@app.command()
def overflow(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Joins with four times the state of a control group's memory, beside Spark's (about 30 minutes)."""
    _finish(_measure(["overflow"], quick, save), as_json)


@app.command()
def idle(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """What a limit of memory costs that is never reached (about 5 minutes)."""
    _finish(_measure(["idle"], quick, save), as_json)


@app.command()
def observe(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """What it costs to be seen: history, page and metrics on W1 (about 2 minutes)."""
    _finish(_measure(["observe"], quick, save), as_json)


@app.command()
def kafka(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """A topic of 5 million messages through an aggregate, JSON and Avro, and latency (about 4 minutes)."""
    _finish(_measure(["kafka"], quick, save), as_json)


@app.command()
def store(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Requests an epoch to an S3 server that holds everything, and while it fails (about 2 minutes)."""
    _finish(_measure(["store"], quick, save), as_json)


@app.command()
def scaleout(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Each operator on 1 to 8 emulated sites and to 256 in a model, as StreamCloud's (about 6 minutes)."""
    _finish(_measure(["scaleout"], quick, save), as_json)


@app.command()
def nexmark(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """Queries of Nexmark over 10 million events, rate against Spark's (about 20 minutes)."""
    _finish(_measure(["nexmark"], quick, save), as_json)


@app.command()
def scale(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """W1 and W2 on one core and two; growing state, queries, files and sites (about 15 minutes)."""
    _finish(_measure(["scale"], quick, save), as_json)


@app.command("all")
def all_(as_json: AsJson = False, quick: Quick = False, save: Save = None) -> None:
    """All benchmarks, one after another."""
    _finish(_measure(list(BENCHMARKS), quick, save), as_json)


def _measure(
    names: list[str], quick: bool, save: Path | None,
    benchmarks: Mapping[str, Benchmark] = MappingProxyType(BENCHMARKS),
) -> list[Result]:  # fmt: skip
    # As with Ctrl-C: the worker under way is ended, the scratch folder removed
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    results = []
    for name in names:
        try:
            with live(name) as steps:
                result = benchmarks[name](quick, steps)
        except AnabranchError as error:
            Console(stderr=True).print(f"[red]{name}:[/] {error}", highlight=False)
            raise typer.Exit(2) from error
        results.append(result)
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
            (save / f"{name}.json").write_text(json.dumps(result.plain(), indent=1) + "\n")
    return results


def _finish(results: list[Result], as_json: bool) -> None:
    """Prints the results; wrong results are a failure, a missed bar is a figure."""
    if as_json:
        whole = [result.plain() for result in results]
        named = {result["benchmark"]: result for result in whole}
        print(json.dumps(whole[0] if len(whole) == 1 else named))
    else:
        console = Console()
        for result in results:
            show(result, console)
    if not all(result.sound for result in results):
        raise typer.Exit(1)
