"""Plans and load together on many sites, under the policies and the protocol of the engine.

Figs 7 and 8 of the paper on plan-aware balancing, on its seven sites and on up to a thousand. Load policy,
arbiter, the choice of shapes by site and the moving state protocol are those of the engine; the join is a
model, see `simulate/plan_model.py`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np

from anabranch.adapt.actions import Move
from anabranch.adapt.arbiter import Arbiter, Limits
from anabranch.adapt.controller import POLICIES, Controller
from anabranch.adapt.policies.plans import CONVINCED, propose_shape, usual_shape
from anabranch.adapt.protocols.replanning import next_turn, validate
from anabranch.adapt.tuning import by_itself
from anabranch.language.shape import read_shape
from anabranch.observe.bars import Bar
from anabranch.observe.steps import Steps
from anabranch.routing.shaped import Shaped, Shapes
from anabranch.simulate.plan_model import ROW_BYTES, PlanModel, PlanScenario
from anabranch.simulate.service import EPOCH, SERVICE

WAYS = {
    "none": (False, False),
    "balancing": (True, False),
    "reoptimising": (False, True),
    "both": (True, True),
}
"""Whether load is balanced, and whether plans are chosen anew."""
COMPARED_AT = 120.0
"""Seconds at which results are compared, as in `bench plans`."""
LOOK = 4
"""Epochs from one look at plans to the next."""
REMADE_BYTES = 64 * 1024 * 1024
"""State of which a site makes intermediates in one epoch, as in the engine."""
NO_LIMIT = 1 << 62


class PlanSimulation:
    """One cluster in one way."""

    def __init__(self, scene: PlanScenario, balances: bool, replans: bool) -> None:
        self._model = PlanModel(scene)
        self._balances, self._replans = balances, replans
        # Figures are exact here, so a round may follow every epoch
        self._controller = Controller(
            (POLICIES["load"],), by_itself(EPOCH, EPOCH), Arbiter(Limits(NO_LIMIT))
        )
        self._seen: dict[int, int] = {}
        """How often in a row another shape was better for a site."""
        self._wanted: list[str] = list(self._model.shapes)
        self.moved = self.changed = 0
        self._debt = np.zeros(scene.sites)
        """Seconds that sites still need for state that moved or was made again."""

    def run(self) -> dict[str, Any]:
        """Results by the time of comparison and at the end, the most rows in the system."""
        model, scene = self._model, self._model.scene
        now, number, most, by_then = EPOCH, 0, 0.0, 0.0
        while now < scene.seconds:
            model.take_in(min(now, model.read + EPOCH))
            spent = np.bincount(model.site, model.busy(), scene.sites) + self._debt
            self._debt = np.zeros(scene.sites)
            seconds = float(spent.max())
            now = max(now + seconds, model.read + EPOCH)
            if now <= COMPARED_AT:
                by_then = model.results
            most = max(most, self._waiting(now) + float(model.state().sum()))
            number += 1
            if self._balances:
                self._balance(seconds)
            if self._replans and number % LOOK == 0:
                self._look()
            self._change()
        return {
            "results": round(by_then), "results_at_end": round(model.results),
            "most_in_system": round(most), "moves": self.moved, "partitions_changed": self.changed,
        }  # fmt: skip

    def _waiting(self, now: float) -> float:
        """Rows that have come and were not read."""
        scene, read = self._model.scene, self._model.read
        upto = min(now, scene.seconds)
        early = max(0.0, min(upto, scene.change) - min(read, scene.change))
        late = max(0.0, upto - max(read, scene.change))
        return (sum(scene.rates) * early + sum(scene.later) * late) * scene.sites / 7

    def _balance(self, seconds: float) -> None:
        """Moves what the policy proposes and the arbiter accepts; it costs both sites."""
        model = self._model
        rows = model.state()
        for verdict in self._controller.decide(model.view(seconds)):
            move = verdict.action
            if verdict.accepted and isinstance(move, Move):
                self._debt[[move.source, move.target]] += rows[move.partition] * SERVICE.moved
                model.site[move.partition] = move.target
                self.moved += 1
        self._controller.finished(0.0)

    def _look(self) -> None:
        """Each site considers its own plan, as in the paper; two looks in a row must agree."""
        model = self._model
        counted = model.counted()
        usual = usual_shape(3, counted)
        order = np.argsort(model.site, kind="stable")
        edges = np.searchsorted(model.site[order], [*counted, model.scene.sites])
        for (site, figures), begin, end in zip(counted.items(), edges, edges[1:], strict=False):
            mine = order[begin:end].tolist()
            better = propose_shape(3, figures, read_shape(self._wanted[mine[0]], 3), usual)
            self._seen[site] = self._seen.get(site, 0) + 1 if better is not None else 0
            if better is not None and self._seen[site] >= CONVINCED:
                self._seen[site] = 0
                for one in mine:
                    self._wanted[one] = str(better.shape)

    def _change(self) -> None:
        """Takes the next turn of the protocol; what is made again costs the sites."""
        model = self._model
        if self._wanted == model.shapes:
            return
        now, sizes = _shapes(model.shapes), ROW_BYTES * model.state()
        wanted = _shapes(self._wanted)
        turn = next_turn(now, wanted, [], [], sizes, model.site, REMADE_BYTES)
        validate(turn, now, [], [])
        after = [*model.shapes]
        for first, end in turn.slots:
            after[first:end] = self._wanted[first:end]
        for before, shape in {*zip(model.shapes, after, strict=True)}:
            if before == shape:
                continue
            pairs = zip(model.shapes, after, strict=True)
            mine = np.array([pair == (before, shape) for pair in pairs])
            self.changed += int(mine.sum())
            known = read_shape(before, 3).intermediates
            for inputs in read_shape(shape, 3).intermediates:
                if inputs not in known:
                    remade = np.where(mine, model.held(inputs) + model.made(inputs), 0.0)
                    cost = SERVICE.intermediate * remade
                    self._debt += np.bincount(model.site, cost, model.scene.sites)
        model.shapes = after


def _shapes(texts: list[str]) -> Shapes:
    """The shapes of partitions of one slot each."""
    found = []
    for slot, text in enumerate(texts):
        shape = read_shape(text, 3)
        found += [] if shape.flat else [Shaped(slot, slot + 1, str(shape))]
    return tuple(found)


def run_plans_simulation(quick: bool, steps: Steps) -> dict[str, Any]:
    """Figs 7 and 8 on 7 to 1,000 sites."""
    begun = time.monotonic()
    sizes = (7, 35, 105) if quick else (7, 35, 105, 350, 1000)
    steps.expect(len(sizes))
    found: dict[str, Any] = {}
    for sites in sizes:
        steps.begin(f"{sites:,} sites")
        since = time.monotonic()
        scene = replace(PlanScenario(), sites=sites)
        runs = {name: PlanSimulation(scene, *way).run() for name, way in WAYS.items()}
        base = runs["none"]["results"]
        most = {name: run["most_in_system"] for name, run in runs.items()}
        found[str(sites)] = {
            **{
                name: round(run["results"] / base, 4)
                for name, run in runs.items()
                if name != "none"
            },
            "rows_ratio": round(
                max(most["reoptimising"] / most["none"], most["both"] / most["balancing"]), 4
            ),
            "runs": runs,
            "seconds": round(time.monotonic() - since, 2),
        }
    least = {name: min(one[name] for one in found.values()) for name in [*WAYS][1:]}
    bars = [
        Bar("balancing", least["balancing"], ">=", 1.6),
        Bar("reoptimising", least["reoptimising"], ">=", 1.6),
        Bar("both", least["both"], ">=", 2.5),
        Bar("rows_ratio", max(one["rows_ratio"] for one in found.values()), "<=", 0.5),
    ]
    return {
        "quick": quick, **least, "sites": found, "bars": [bar.plain() for bar in bars],
        "seconds": round(time.monotonic() - begun, 2),
    }  # fmt: skip
