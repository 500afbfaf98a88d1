"""`anabranch simulate`: the simulator on the command line. What is simulated is in its own modules."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from anabranch.amount import several
from anabranch.observe.commands import Commands
from anabranch.observe.steps import live
from anabranch.settings import ACTIVE_DISK, LAZY_DISK, NONE
from anabranch.simulate.cluster import LOADED, Cluster, Event
from anabranch.simulate.demand import even, skewed
from anabranch.simulate.flux import run_flux, simulations
from anabranch.simulate.governing import as_published, self_tuning
from anabranch.simulate.model import Simulation
from anabranch.simulate.plans import run_plans_simulation
from anabranch.simulate.state import run_state

app = Commands(help="Simulate a cluster under the policies of the engine.", no_args_is_help=True)


class Policy(StrEnum):
    """Who moves partitions."""

    none = "none"
    flux = "flux"
    self_tuning = "self-tuning"


AsJson = Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")]
Seed = Annotated[int, typer.Option(min=0, help="All chance comes from this number.")]


@app.command()
def flux(
    as_json: AsJson = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Few points: to see that it works.")
    ] = False,
    seed: Seed = 1,
    save: Annotated[
        Path | None, typer.Option("--save", help="Also write flux.json into this folder.")
    ] = None,
) -> None:
    """The experiments of the Flux paper beside its own values (about 5 minutes, --quick about one)."""
    with live("flux") as steps:
        steps.expect(simulations(quick))
        found = run_flux(seed, quick, steps)
    if save is not None:
        save.mkdir(parents=True, exist_ok=True)
        (save / "flux.json").write_text(json.dumps(found, indent=1) + "\n")
    if as_json:
        print(json.dumps(found))
    else:
        title = f"simulate flux, seed {found['seed']}, {found['seconds']:.0f} s"
        _show(found, Console(), title)


@app.command()
def cluster(
    sites: Annotated[int, typer.Option(min=2, help="Sites.")] = 32,
    partitions: Annotated[int, typer.Option(min=2, help="Partitions of all sites.")] = 2048,
    loaded: Annotated[
        int, typer.Option(min=0, help="Sites with an external load from 1 s on.")
    ] = 1,
    seconds: Annotated[int, typer.Option(min=4, help="Simulated seconds.")] = 20,
    policy: Annotated[Policy, typer.Option(help="Who moves partitions.")] = Policy.self_tuning,
    skew: Annotated[
        bool, typer.Option("--skew", help="Rows of 80/20 instead of even ones.")
    ] = False,
    seed: Seed = 1,
    as_json: AsJson = False,
) -> None:
    """One loaded cluster of any size: throughput, moves and how long it took to simulate."""
    if loaded > sites:
        raise typer.BadParameter(
            f"{loaded} of {sites} sites cannot be loaded.", param_hint="--loaded"
        )
    begun, rng = time.monotonic(), np.random.default_rng(seed)
    parts = replace(Cluster(), sites=sites, partitions=partitions, lanes=min(sites, 32))
    chances = skewed(partitions, rng, 8 * partitions) if skew else even(partitions)
    slow = rng.permutation(sites)[:loaded].tolist()
    events = [Event(1.0, site, rate=LOADED) for site in slow]
    governed = {
        Policy.none: None,
        Policy.flux: as_published(),
        Policy.self_tuning: self_tuning(),
    }
    record = Simulation(parts, chances, seed, governed[policy], events).run(seconds)
    left = 1 - (1 - LOADED) * len(slow) / sites
    found = {
        "sites": sites, "partitions": partitions, "loaded": len(slow), "policy": policy.value,
        "rows_per_s": record.rows.round().tolist(),
        "rows_per_s_before": round(record.rate(0, 1)),
        "rows_per_s_after": round(record.rate(seconds - 2)),
        "rows_per_s_best": round(record.rate(0, 1) * left),
        "moves": len(record.moves), "seconds": seconds,
        "wall_seconds": round(time.monotonic() - begun, 1),
    }  # fmt: skip
    if as_json:
        print(json.dumps(found))
        return
    Console().print(
        f"{sites:,} sites, {partitions:,} partitions, policy {policy.value}; "
        f"{several(len(slow), 'site')} loaded from 1 s on\n"
        f"  before: {found['rows_per_s_before']:,} rows/s\n"
        f"  in the last 2 s: {found['rows_per_s_after']:,} rows/s, "
        f"best possible {found['rows_per_s_best']:,}, after {several(found['moves'], 'move')}\n"
        f"  {seconds} s simulated in {found['wall_seconds']} s",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


@app.command()
def state(
    as_json: AsJson = False,
    quick: Annotated[bool, typer.Option("--quick", help="Up to 100 sites.")] = False,
) -> None:
    """State larger than memory on 3 to 1,000 sites, under the engine's policies (about 10 seconds)."""
    with live("state") as steps:
        found = run_state(quick, steps)
    if as_json:
        print(json.dumps(found))
        return
    console = Console()
    _show(found, console, f"simulate state, {found['seconds']:.1f} s")
    for sites, one in found["sites"].items():
        told = ", ".join(
            f"{policy} {one[policy]['results']:,} results and a clean-up of "
            f"{one[policy]['cleanup_seconds']:,.0f} s"
            for policy in (NONE, LAZY_DISK, ACTIVE_DISK)
        )
        console.print(f"{int(sites):,} sites: {told}", highlight=False, soft_wrap=True)


@app.command()
def plans(
    as_json: AsJson = False,
    quick: Annotated[bool, typer.Option("--quick", help="Up to 105 sites.")] = False,
) -> None:
    """Plans and load together on 7 to 1,000 sites, under the engine's policies (about a minute)."""
    with live("plans") as steps:
        found = run_plans_simulation(quick, steps)
    if as_json:
        print(json.dumps(found))
        return
    console = Console()
    _show(found, console, f"simulate plans, {found['seconds']:.1f} s")
    for sites, one in found["sites"].items():
        console.print(
            f"{int(sites):,} sites: balancing {one['balancing']:.2f} times the results of none, "
            f"re-optimising {one['reoptimising']:.2f}, both {one['both']:.2f}",
            highlight=False, soft_wrap=True,
        )  # fmt: skip


def _show(found: dict[str, Any], console: Console, title: str) -> None:
    table = Table(title=title)
    for heading in ("bar", "value", "wanted", ""):
        table.add_column(heading, justify="left" if heading == "bar" else "right")
    for bar in found["bars"]:
        said = "[green]met[/]" if bar["met"] else "[red]not met[/]"
        table.add_row(bar["name"], f"{bar['value']:,.3g}", bar["bar"], said)
    console.print(table)
