"""StreamCloud's scale-out: each operator on 1 to 8 sites of the engine, and in a model on up to 256.

Every row goes through the engine, in this process; how long sites take for it is emulated, and an epoch takes
as long as its busiest site (`bench/plan_service.py`). So the figures are the same on every machine, and say
how evenly work is divided, not how fast this machine is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from anabranch.bench.measure import load, machine
from anabranch.bench.result import Result
from anabranch.bench.scaleout_runs import NUMBERING, ScalePoint, run_scaled
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.simulate.scaleout import OPERATORS, PARTITIONS, Hosts, ScaledOperator, ScaleModel

FIGURES = {
    "fig7a": ("map", "filter"),
    "fig7b": ("join",),
    "fig7c": ("aggregate",),
    "fig7d": ("product",),
    "fig7e": ("fixed",),
}
SITES = (1, 2, 4, 8)
FAR = (8, 16, 32, 64, 128, 256)
"""Sites of the model."""
LOADS = (0.4, 0.8, 1.0, 1.3)
"""Rows that come, against what all sites could do at best."""
SECONDS = 30.0
"""Of the streams that count at each load; before it, windows fill."""
SETTLING = 10.0
CORES = 4
"""Of the hosts of Fig 10."""
PER_HOST = (1, 2, 3, 4, 8)
HOSTS = (1, 2)
FAR_HOSTS = (4, 20, 64)
LIMIT = 0.9
PAPER: dict[str, dict[str, Any]] = {
    "fig7a": {"statement": "linear", "unit": "rows/s", "sites": [20, 40], "most": [30_000, 60_000]},
    "fig7b": {"statement": "almost linear: nearly twice the comparisons from 20 to 40 processors"},
    "fig7c": {"statement": "linear", "unit": "rows/s", "sites": [20, 40], "most": [40_000, 80_000]},
    "fig7d": {
        "statement": "almost linear", "unit": "pairs/s", "sites": [20, 40], "most": [2e9, 4e9],
    },
    "fig7e": {
        "statement": "super-linear: the more processors, the fewer comparisons for each row at each",
        "unit": "rows/s", "sites": [4, 16, 36, 64], "most": [200, 600, 1400, 2500],
    },
    "fig10": {"statement": "the more sites on a host, up to its 4 cores, the more throughput"},
}  # fmt: skip
NOTES = (
    "Emulated, by rates that the paper states: 1/1500 s for a row of map and filter, 1/2000 s of the "
    "aggregate; 0.5 ms for a row of a join, 2 ms for a pair of the equi-join, 0.01 ms for a pair of the "
    "product. Pairs are fewer and dearer than the paper's, since the engine does compare them all. Reading "
    "and sending cost nothing.",
    "An epoch takes as long as its busiest site or host, level after level; the fixed cost of an epoch, "
    "Spark and the network have no part in it. So efficiency is how evenly the work is divided, copies of "
    "rows included.",
    "Throughput is of rows in fig7a, fig7c and fig7e, of pairs compared in fig7b, fig7d and fig10, as in the "
    "paper: with windows of time twice the rows are four times the pairs. Loads are "
    f"{LOADS[0]:g} to {LOADS[-1]:g} of what the sites could do, were the work divided without any rest. "
    "efficiency: the most throughput against that of as many single sites.",
    f"fig7e: the last {OPERATORS['fixed'].window_rows:,} rows of the other stream (the paper: 20,000); "
    "received_per_s counts copies, as the paper seems to: it is what is super-linear. Rows are numbered on "
    f"one site, which takes {NUMBERING:g} of a row's time.",
    f"{PARTITIONS} partitions a site, the load policy moves them. simulated: a model with the engine's "
    "hashing, grids and load policy, rows counted and not kept. model_off: how far it is from the engine at "
    "8 sites.",
    f"fig10: the equi-join on hosts of {CORES} cores; a core that is done with one site takes the next.",
    "Results of all runs of the engine are DuckDB's.",
)


class ScaleOut:
    """All runs of the benchmark; `equal` while all of them give what DuckDB gives."""

    def __init__(self, quick: bool, steps: Steps) -> None:
        self._quick, self._steps = quick, steps
        self.sites = (SITES[0], SITES[-1]) if quick else SITES
        self.far = (8, 64) if quick else FAR
        self._loads = LOADS[-1:] if quick else LOADS
        self._seconds = SECONDS / 3 if quick else SECONDS
        self.equal = True

    def operator(self, operator: ScaledOperator) -> dict[str, Any]:
        """Load against throughput on all numbers of sites."""
        engine = {sites: self._curve(operator, sites) for sites in self.sites}
        model = {
            sites: [self._model(operator, sites, part) for part in self._loads]
            for sites in self.far
        }
        alone, eight = _most(engine[1]), _most(engine[8])
        efficiency = {sites: _most(points) / sites / alone for sites, points in engine.items()}
        efficiency |= {
            sites: _most(points) / sites / alone for sites, points in model.items() if sites > 8
        }
        received = [max(point["received_per_s"] for point in engine[sites]) for sites in (1, 8)]
        return {
            "unit": operator.unit,
            "sites": {str(sites): points for sites, points in engine.items()},
            "simulated": {str(sites): points for sites, points in model.items()},
            "efficiency": {str(sites): round(value, 4) for sites, value in efficiency.items()},
            "received_ratio": round(received[1] / received[0] / 8, 4) if received[0] else None,
            "model_off": round(abs(_most(model[8]) / eight - 1), 4),
        }

    def hosts(self) -> dict[str, Any]:
        """Fig 10: the most throughput of the equi-join by sites on each host."""
        operator = OPERATORS["join"]
        per_host = (1, 4, 8) if self._quick else PER_HOST
        engine, model = dict[str, dict[str, float]](), dict[str, dict[str, float]]()
        for count in HOSTS[-1:] if self._quick else HOSTS:
            engine[str(count)] = {
                str(each): self._run(
                    operator, count * each, LOADS[-1], Hosts(CORES, each)
                ).throughput
                for each in per_host
            }
        for count in FAR_HOSTS:
            model[str(count)] = {
                str(each): self._model(operator, count * each, LOADS[-1], Hosts(CORES, each))["throughput"]
                for each in per_host
            }  # fmt: skip
        most = engine[str(HOSTS[-1])]
        return {
            "cores": CORES, "hosts": engine, "simulated": model,
            "cores_used": round(most[str(CORES)] / most["1"] / CORES, 4),
            "beyond_cores": round(most["8"] / most[str(CORES)], 4),
        }  # fmt: skip

    def _curve(self, operator: ScaledOperator, sites: int) -> list[dict[str, Any]]:
        return [asdict(self._run(operator, sites, part, Hosts())) for part in self._loads]

    def _run(self, operator: ScaledOperator, sites: int, part: float, hosts: Hosts) -> ScalePoint:
        self._steps.begin(f"{operator.name}, {sites} sites, {part:g} of what they could do")
        rate = part * operator.capacity(_able(sites, hosts))
        point = run_scaled(operator, sites, rate, self._span(operator, rate), hosts)
        self.equal = self.equal and point.equal
        return point

    def _model(
        self, operator: ScaledOperator, sites: int, part: float, hosts: Hosts | None = None
    ) -> dict[str, float]:
        hosts = hosts or Hosts()
        rate = part * operator.capacity(_able(sites, hosts))
        found = ScaleModel(operator, sites, rate, hosts).run(*self._span(operator, rate))
        return {"load": round(rate, 1), **found}

    def _span(self, operator: ScaledOperator, rate: float) -> tuple[float, float]:
        """Seconds in which windows fill, and those that count; the streams end with an epoch."""
        fills = operator.window or 2 * operator.window_rows / rate
        epochs = math.ceil((fills + SETTLING) / operator.epoch)
        return epochs * operator.epoch, self._seconds


def _able(sites: int, hosts: Hosts) -> int:
    """How many of the sites can work at the same time."""
    return min(sites, sites // hosts.sites * hosts.cores)


def _most(points: Sequence[dict[str, Any]]) -> float:
    return max(float(point["throughput"]) for point in points)


def run_scaleout(quick: bool, steps: Steps) -> Result:
    """All figures; with `quick`, 1 and 8 sites at the highest load, for a third of the time."""
    before = load()
    bench = ScaleOut(quick, steps)
    steps.expect(12 + 2 if quick else len(OPERATORS) * len(SITES) * len(LOADS) + 10)
    figures: dict[str, Any] = {"quick": quick}
    for name, operators in FIGURES.items():
        figures[name] = {one: bench.operator(OPERATORS[one]) for one in operators}
        figures[name]["paper"] = PAPER[name]
    figures["fig10"] = bench.hosts() | {"paper": PAPER["fig10"]}
    curves = [figures[name][one] for name, operators in FIGURES.items() for one in operators]
    figures["least_efficiency"] = min(curve["efficiency"]["8"] for curve in curves)
    figures["least_efficiency_far"] = min(
        curve["efficiency"][str(bench.far[-1])] for curve in curves
    )
    figures["model_off"] = max(curve["model_off"] for curve in curves)
    figures["equal"] = bench.equal
    circumstances = {"loadavg": {"before": before, "after": load()}, **machine()}
    return Result("scaleout", figures, _bars(figures), NOTES, bench.equal, circumstances)


def _bars(figures: dict[str, Any]) -> tuple[Bar, ...]:
    return (
        Bar("least_efficiency", figures["least_efficiency"], ">=", LIMIT),
        Bar("fig7e.received_ratio", figures["fig7e"]["fixed"]["received_ratio"], ">", 1.0),
        Bar("fig10.cores_used", figures["fig10"]["cores_used"], ">=", LIMIT),
        Bar("model_off", figures["model_off"], "<=", 0.1),
    )


def scaleout_lines(figures: dict[str, Any]) -> Iterator[str]:
    """What it says beside its bars."""
    for name, operators in FIGURES.items():
        for one in operators:
            curve = figures[name][one]
            most = ", ".join(
                f"{sites}: {_most(points):,.0f}" for sites, points in curve["sites"].items()
            )
            far = ", ".join(f"{sites}: {share:.1%}" for sites, share in curve["efficiency"].items())
            yield f"{name} {one}, most {curve['unit']}/s by sites: {most}; of linear: {far}"
        yield f"  the paper: {figures[name]['paper']['statement']}"
    for count, rates in figures["fig10"]["hosts"].items():
        told = ", ".join(f"{each}: {rate:,.0f}" for each, rate in rates.items())
        yield f"fig10 {count} hosts, pairs/s by sites on each: {told}"
    yield f"results equal to DuckDB's: {str(figures['equal']).lower()}"
