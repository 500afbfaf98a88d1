"""Grids of joins without an equality follow the rates of their inputs and the sites, while they run."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from anabranch import Session
from anabranch.adapt.policies.grids import GridLoad, propose_grids
from anabranch.routing.grid import Grid
from anabranch.testing.sources import EpochSource

NEAR = "SELECT a.time AS t, a.v AS v, b.v AS w FROM a JOIN b ON a.v < b.v AND ABS(a.time - b.time) <= 2"


def load(bands: tuple[int, ...], left: float, right: float, **known: Any) -> GridLoad:
    return GridLoad("near", Grid(bands), left, right, **{"state": 0.0, "measured": True, **known})


def proposed(one: GridLoad, alive: int = 8) -> list[tuple[int, ...]]:
    return [action.bands for action in propose_grids([one], alive)]


def test_a_grid_follows_its_rates() -> None:
    assert proposed(load((4, 4), 100, 800)) == [(8,)]
    assert proposed(load((4, 4), 100, 100)) == []
    # A little worse than the best is good enough
    assert proposed(load((4, 4), 100, 110)) == []
    # What is to be moved must be won back
    assert proposed(load((4, 4), 100, 800, state=1e6)) == []
    assert proposed(load((4, 4), 100, 800, measured=False)) == []
    # Nothing comes from one side: it may begin to, but need not be thought of more than that
    assert proposed(load((4, 4), 0, 800)) == [(8,)]
    assert proposed(load((4, 4), 0, 0)) == []


def test_a_grid_follows_the_sites() -> None:
    assert proposed(load((2, 2), 1, 1, state=1e9, measured=False), alive=6) == [(3, 3)]
    assert proposed(load((2, 2), 1, 1), alive=3) == [(2, 1)]


def frames(counts: list[int], seed: int) -> list[pl.DataFrame]:
    random = np.random.default_rng(seed)
    return [
        pl.DataFrame(
            {
                "time": np.sort(random.integers(4 * epoch, 4 * epoch + 4, rows)),
                "v": random.integers(0, 100, rows),
            }
        )
        for epoch, rows in enumerate(counts)
    ]


def pairs(left: list[pl.DataFrame], right: list[pl.DataFrame]) -> list[Any]:
    with duckdb.connect() as duck:
        duck.register("a", pl.concat(left))
        duck.register("b", pl.concat(right))
        return sorted(duck.sql(NEAR).fetchall())


def run_near(left: list[pl.DataFrame], right: list[pl.DataFrame], **options: Any) -> Any:
    made = Session.in_process(
        options.pop("sites", 4), {"fsync": False, "least_gain_seconds": 1000.0}
    )  # however noisy the machine is, no cell moves
    made.stream("a", EpochSource(left), ordered="time")
    made.stream("b", EpochSource(right), ordered="time")
    made.query("near", NEAR)
    holder: list[Any] = []
    on_step = options.pop("on_step", None)
    if on_step:
        options["on_step"] = lambda step, epoch: on_step(holder, step, epoch)
    run = made.start(sinks={"near": "memory"}, at_end="close", **options)
    holder.append(run)
    assert run.await_termination(120)
    return run


def test_rates_that_are_swapped_swap_the_grid() -> None:
    many, few = [1000] * 4 + [50] * 8, [50] * 4 + [1000] * 8
    left, right = frames(many, 1), frames(few, 2)
    run = run_near(left, right)
    laid = [line for line in run.history() if line["kind"] == "regrid"]
    grids = [epoch["stateOperators"][0]["customMetrics"]["grid"] for epoch in run.recent_progress]
    assert grids[0] == [1, 1, 1, 1], "what the plan knows of the streams"
    assert grids[-1] == [4]
    assert "bands of 4 cells" in laid[-1]["action"]
    assert laid[-1]["cause"].startswith("rates: ")
    assert sorted(run.results("near").rows()) == pairs(left, right)


@pytest.mark.parametrize(("before", "after"), [(2, 6), (6, 2)])
def test_every_site_has_a_cell(before: int, after: int) -> None:
    left, right = frames([60] * 10, 1), frames([60] * 10, 2)

    def resize(holder: list[Any], step: str, epoch: int) -> None:
        if step == "begin" and epoch == 3:
            holder[0].set_sites(after)

    run = run_near(left, right, sites=before, on_step=resize)
    record = run._checkpoint.manifest.exchanges["near@1"]
    assert sorted(record.sites) == list(range(after))
    assert sum(record.grid) == after
    assert sorted(run.results("near").rows()) == pairs(left, right)
